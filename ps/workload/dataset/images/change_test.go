package images

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A plane that is turned by no angle, or by whole circles, is itself; by a quarter it is the one whose rows are the columns; and turned
// there and back, what is smooth and far from the edge comes back.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 9).Draw(t, "side")
		from, to := make([]float32, side*side), make([]float32, side*side)
		for i := range from {
			from[i] = float32(rapid.IntRange(-50, 50).Draw(t, "value"))
		}
		near := func(name string, angle float64, want func(y, x int) float32) {
			turn(to, from, side, angle)
			for y := range side {
				for x := range side {
					if d := math.Abs(float64(to[y*side+x] - want(y, x))); d > 1e-4 {
						t.Fatalf("%s: %d, %d is %v, want %v", name, y, x, to[y*side+x], want(y, x))
					}
				}
			}
		}
		near("no angle", 0, func(y, x int) float32 { return from[y*side+x] })
		near("a circle", 2*math.Pi, func(y, x int) float32 { return from[y*side+x] })
		near("a quarter", math.Pi/2, func(y, x int) float32 { return from[(side-1-x)*side+y] })
		near("a half", math.Pi, func(y, x int) float32 { return from[(side-1-y)*side+side-1-x] })
	})
	const side = 41
	smooth, there, back := make([]float32, side*side), make([]float32, side*side), make([]float32, side*side)
	for i := range smooth {
		smooth[i] = float32(math.Sin(float64(i/side)/9) + math.Cos(float64(i%side)/11))
	}
	turn(there, smooth, side, 0.3)
	turn(back, there, side, -0.3)
	for y := 12; y < side-12; y++ {
		for x := 12; x < side-12; x++ {
			if d := math.Abs(float64(back[y*side+x] - smooth[y*side+x])); d > 0.01 {
				t.Fatalf("%d, %d comes back as %v, was %v", y, x, back[y*side+x], smooth[y*side+x])
			}
		}
	}
}

// Each value of an image is multiplied by one number and shifted by another, both within their bounds, other ones for each image.
func TestJitter(t *testing.T) {
	const rows = 400
	image := Shape{2, 3, 3}
	x := numbered(rows, image)
	for i := range x {
		x[i] = float32(i%18) / 18
	}
	want := slices.Clone(x)
	NewAugmenter(Augment{Jitter: 0.25}, image, 5, 1).Apply(x, 3)
	var factors, shifts []float64
	for r := range rows {
		before, after := want[r*18:][:18], x[r*18:][:18]
		factor := float64(after[17]-after[0]) / float64(before[17]-before[0])
		more := float64(after[0]) - factor*float64(before[0])
		for i, v := range before {
			if d := math.Abs(float64(after[i]) - (factor*float64(v) + more)); d > 1e-6 {
				t.Fatalf("image %d: value %d is %v, want %v", r, i, after[i], factor*float64(v)+more)
			}
		}
		factors, shifts = append(factors, factor), append(shifts, more)
	}
	low, high := slices.Min(factors), slices.Max(factors)
	if low < 0.7499 || high > 1.2501 || low > 0.76 || high < 1.24 {
		t.Errorf("factors from %v to %v, want from about 0.75 to about 1.25", low, high)
	}
	if low, high := slices.Min(shifts), slices.Max(shifts); low < -0.2501 || high > 0.2501 || low > -0.24 || high < 0.24 {
		t.Errorf("shifts from %v to %v, want from about -0.25 to about 0.25", low, high)
	}
}

// A square of zeros is cut out, the same in all channels, the rest stays, and its middle is in each place as often.
func TestCutout(t *testing.T) {
	const rows, side = 6000, 3
	image := Shape{2, 4, 5}
	x := numbered(rows, image)
	for i := range x {
		x[i]++ // none is 0
	}
	before := slices.Clone(x)
	NewAugmenter(Augment{Cutout: side}, image, 5, 1).Apply(x, 3)
	var count [4][5]int
	for r := range rows {
		found := 0
		for top := range 4 {
			for left := range 5 {
				fits := true
				for i, v := range x[r*40:][:40] {
					y, c := i%20/5, i%5
					inside := y >= top-side/2 && y < top-side/2+side && c >= left-side/2 && c < left-side/2+side
					fits = fits && (inside && v == 0 || !inside && v == before[r*40+i])
				}
				if fits {
					count[top][left]++
					found++
				}
			}
		}
		if found != 1 {
			t.Fatalf("image %d has a square at %d places", r, found)
		}
	}
	for top, row := range count {
		for left, n := range row {
			if n < 220 || n > 380 { // 300, with a deviation of 17
				t.Errorf("the square is at %d, %d in %d of %d images", top, left, n, rows)
			}
		}
	}
}

// All changes of one image follow from its draws; these may not change: runs of an older version depend on them.
func TestChangesArePinned(t *testing.T) {
	image := Shape{1, 4, 4}
	spec := Augment{Crop: 1, Flip: true, Rotate: 30, Jitter: 0.1, Cutout: 1}
	x := numbered(3, image)
	NewAugmenter(spec, image, 7, 1).Apply(x, 9)
	again := numbered(3, image)
	NewAugmenter(spec, image, 7, 1).Apply(again, 9)
	if !slices.Equal(x, again) {
		t.Error("the same iteration is changed in another way")
	}
	other := numbered(3, image)
	if NewAugmenter(spec, image, 7, 2).Apply(other, 9); slices.Equal(x, other) {
		t.Error("another worker sees the same changes")
	}
	want := []float32{2.82722, 5.9589424, 8.634986, 5.447547, 6.7814355, 9.270683, 11.759932, 13.151814}
	for i, v := range want {
		if math.Abs(float64(x[i]-v)) > 1e-5*math.Abs(float64(v))+1e-6 {
			t.Errorf("value %d is %v, want %v", i, x[i], v)
		}
	}
	a, batch := NewAugmenter(Augment{Rotate: 9, Jitter: 0.1, Cutout: 2}, Shape{3, 8, 8}, 1, 0), make([]float32, 192)
	if n := testing.AllocsPerRun(20, func() { a.Apply(batch, 1) }); n > 0 {
		t.Errorf("%v allocations in an iteration", n)
	}
}
