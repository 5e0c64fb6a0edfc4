package images

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset/draw"
)

// numbered returns n images whose values are all different and not 0.
func numbered(n int, image Shape) []float32 {
	x := make([]float32, n*image.Channels*image.Height*image.Width)
	for i := range x {
		x[i] = float32(i + 1)
	}
	return x
}

// cropped is the definition, pixel by pixel: the image that begins at (top, left) of the padded one.
func cropped(x []float32, image Shape, crop, top, left int, flip bool) []float32 {
	h, w := image.Height, image.Width
	out := make([]float32, len(x))
	for c := range image.Channels {
		for row := range h {
			for col := range w {
				from, at := row+top-crop, col+left-crop
				to := col
				if flip {
					to = w - 1 - col
				}
				if from >= 0 && from < h && at >= 0 && at < w {
					out[(c*h+row)*w+to] = x[(c*h+from)*w+at]
				}
			}
		}
	}
	return out
}

func bitsOf(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, v := range x {
		out[i] = math.Float32bits(v)
	}
	return out
}

// Every pixel is one of the padded image, at the same offset in all channels.
func TestAugmentedImagesAreCutFromPaddedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		image := Shape{rapid.IntRange(1, 3).Draw(t, "channels"), rapid.IntRange(1, 6).Draw(t, "height"), rapid.IntRange(1, 6).Draw(t, "width")}
		spec := Augment{Crop: rapid.IntRange(0, min(image.Height, image.Width)-1).Draw(t, "crop"), Flip: rapid.Bool().Draw(t, "flip")}
		a := NewAugmenter(spec, image, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 100).Draw(t, "worker"))
		n := rapid.IntRange(1, 8).Draw(t, "images")
		before := numbered(n, image)
		x := slices.Clone(before)
		a.Apply(x, rapid.Int64Range(0, 1<<40).Draw(t, "iter"))
		size := len(x) / n
		for i := range n {
			from, got := before[i*size:][:size], x[i*size:][:size]
			found := false
			for top := range 2*spec.Crop + 1 {
				for left := range 2*spec.Crop + 1 {
					found = found || slices.Equal(got, cropped(from, image, spec.Crop, top, left, false)) ||
						spec.Flip && slices.Equal(got, cropped(from, image, spec.Crop, top, left, true))
				}
			}
			if !found {
				t.Fatalf("%+v of %+v makes of\n%v\n%v", spec, image, from, got)
			}
		}
	})
}

// shift equals its definition for every offset and both orientations.
func TestShiftIsItsDefinition(t *testing.T) {
	const crop = 2
	image := Shape{1, 3, 5}
	for top := range 2*crop + 1 {
		for left := range 2*crop + 1 {
			for _, flip := range []bool{false, true} {
				x := numbered(1, image)
				want := cropped(x, image, crop, top, left, flip)
				if shift(x, image.Width, top-crop, left-crop, flip); !slices.Equal(x, want) {
					t.Errorf("from (%d, %d), mirrored %t: %v, want %v", top-crop, left-crop, flip, x, want)
				}
			}
		}
	}
}

func TestWithoutCropAndFlipNothingChanges(t *testing.T) {
	for _, spec := range []Augment{{}, {Flip: true}} {
		before := []float32{1, float32(math.Copysign(0, -1)), float32(math.NaN()), math.MaxFloat32, 5e-45, 6}
		x := slices.Clone(before)
		// One column: a mirrored image is the same.
		NewAugmenter(spec, Shape{2, 3, 1}, 1, 0).Apply(x, 7)
		if !slices.Equal(bitsOf(x), bitsOf(before)) {
			t.Errorf("%+v makes %v of %v", spec, x, before)
		}
	}
	x := []float32{1, 2}
	if NewAugmenter(Augment{}, Shape{}, 1, 0).Apply(x, 7); x[0] != 1 || x[1] != 2 {
		t.Errorf("rows that are not images become %v", x)
	}
}

// All places are equally likely, and half of the images are mirrored at each of them: chi-square stays within 5 of its
// standard deviations. The seed is fixed, so the test is, too.
func TestAllOffsetsAndFlipsAreEquallyLikely(t *testing.T) {
	const crop, iterations, batch = 4, 400, 100
	side := 2*crop + 1
	image := Shape{2, side, side}
	counts := make([]int, 2*side*side)
	a := NewAugmenter(Augment{Crop: crop, Flip: true}, image, 5, 3)
	plane := side * side
	for iter := range int64(iterations) {
		x := make([]float32, 0, batch*2*plane)
		for range batch {
			x = append(x, numbered(1, image)...)
		}
		a.Apply(x, iter)
		for i := range batch {
			got := x[2*i*plane:]
			// The middle of the cropped image lies inside the original for all places, and shows which place it is.
			place := int(got[plane/2]) - 1
			if int(got[plane+plane/2])-1 != place+plane {
				t.Fatalf("image %d of iteration %d: the middle of channel 0 is pixel %d, of channel 1 pixel %d", i, iter, place,
					int(got[plane+plane/2])-1-plane)
			}
			mirrored := int(got[plane/2+1]) == place // its right neighbour was its left neighbour
			if place%side == 0 {
				mirrored = got[plane/2+1] == 0
			}
			if mirrored {
				place += side * side
			}
			counts[place]++
		}
	}
	expected := float64(iterations*batch) / float64(len(counts))
	var squares float64
	for _, n := range counts {
		squares += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	free := float64(len(counts) - 1)
	if limit := free + 5*math.Sqrt(2*free); squares > limit || slices.Min(counts) == 0 {
		t.Errorf("chi-square %.1f of %g degrees of freedom, the limit is %.1f; places and mirrored places occur %v times",
			squares, free, limit, counts)
	}
	mirrored := 0
	for _, n := range counts[side*side:] {
		mirrored += n
	}
	if share := float64(mirrored) / (iterations * batch); math.Abs(share-0.5) > 0.01 { // 4 standard deviations
		t.Errorf("%.3f of the images are mirrored", share)
	}
}

// The same (seed, worker, iteration) gives the same bits, and a change of any of the three gives others. The draw of a sample does
// not depend on the number of samples.
func TestAugmentationIsAFunctionOfSeedWorkerAndIteration(t *testing.T) {
	image := Shape{3, 8, 8}
	spec := Augment{Crop: 2, Flip: true}
	of := func(n int, seed uint64, worker int, iter int64) []float32 {
		x := numbered(n, image)
		NewAugmenter(spec, image, seed, worker).Apply(x, iter)
		return x
	}
	first := of(100, 1, 0, 0)
	if !slices.Equal(first, of(100, 1, 0, 0)) || !slices.Equal(first[:10*192], of(10, 1, 0, 0)) {
		t.Error("not a pure function")
	}
	used := NewAugmenter(spec, image, 1, 0)
	for _, iter := range []int64{5, 1 << 40, 0} {
		if x := numbered(100, image); iter == 0 {
			if used.Apply(x, iter); !slices.Equal(x, first) {
				t.Error("earlier iterations change the draws of an iteration")
			}
		} else {
			used.Apply(x, iter)
		}
	}
	for name, other := range map[string][]float32{"seed": of(100, 2, 0, 0), "worker": of(100, 1, 1, 0), "iteration": of(100, 1, 0, 1)} {
		same := 0
		for i := range 100 {
			if slices.Equal(first[i*192:][:192], other[i*192:][:192]) {
				same++
			}
		}
		if same > 10 { // of 50 changes, two agree by chance in 2 of 100 images
			t.Errorf("another %s: %d of 100 images are the same", name, same)
		}
	}
}

// These values may not change: runs of an older version depend on them.
func TestAugmentationIsPinned(t *testing.T) {
	a := NewAugmenter(Augment{Crop: 4, Flip: true}, Shape{3, 32, 32}, 7, 1)
	got := ""
	for i := range uint64(4) {
		down, right, mirror := a.draw(draw.Mix(draw.Mix(a.key, 9), i))
		got += fmt.Sprint(down, right, mirror, " ")
	}
	if want := "4 -1 false 0 -1 false -2 0 true 2 0 false "; got != want {
		t.Errorf("draws are %s, want %s", got, want)
	}
}

func TestAugmentationTakesNoMemory(t *testing.T) {
	a := NewAugmenter(Augment{Crop: 4, Flip: true}, Shape{3, 32, 32}, 1, 0)
	x := make([]float32, 8*3072)
	iter := int64(0)
	if n := testing.AllocsPerRun(100, func() { a.Apply(x, iter); iter++ }); n != 0 {
		t.Errorf("%g allocations in an iteration", n)
	}
}

func TestAugmentCheck(t *testing.T) {
	for _, c := range []struct {
		spec  Augment
		image Shape
		want  string // "": accepted
	}{
		{Augment{}, Shape{}, ""},
		{Augment{Flip: true}, Shape{1, 1, 1}, ""},
		{Augment{Crop: 27}, Shape{1, 28, 40}, ""},
		{Augment{Crop: 28}, Shape{1, 28, 40}, "crop is 28, must be 0 to 27, less than the images have: 28 x 40 pixels"},
		{Augment{Crop: 28}, Shape{1, 40, 28}, "crop is 28, must be 0 to 27, less than the images have: 40 x 28 pixels"},
		{Augment{Crop: -1}, Shape{1, 28, 28}, "crop is -1"},
		{Augment{Rotate: 180, Jitter: 0.99, Cutout: 54}, Shape{1, 28, 40}, ""},
		{Augment{Rotate: 181}, Shape{1, 28, 28}, "rotate is 181, must be 0 to 180 degrees"},
		{Augment{Jitter: 1}, Shape{1, 28, 28}, "jitter is 1, must be at least 0 and below 1"},
		{Augment{Cutout: 55}, Shape{1, 28, 40}, "cutout is 55, must be 0 to 54"},
		{Augment{Cutout: -1}, Shape{1, 28, 40}, "cutout is -1"},
		{Augment{Flip: true}, Shape{}, "the rows of the data set are no images; leave it out"},
	} {
		err := c.spec.Check(c.image)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v of %+v: error %v, want %q in it", c.spec, c.image, err, c.want)
		}
	}
}

// BenchmarkAugment measures the cost for a batch of CIFAR-10, without filling it.
func BenchmarkAugment(b *testing.B) {
	a := NewAugmenter(Augment{Crop: 4, Flip: true}, Shape{3, 32, 32}, 1, 0)
	x := make([]float32, 128*3072)
	b.SetBytes(int64(4 * len(x)))
	b.ReportAllocs()
	for i := range b.N {
		a.Apply(x, int64(i))
	}
}
