//go:build !race

// One goroutine reads and trains here: the race detector would find nothing and take minutes.

package dataset

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"fluentps/ps/workload/dataset/datasettest"
)

func fashion(t *testing.T) Spec { return Spec{Set: "idx", Path: datasettest.Fashion(t)} }

func optdigits(t *testing.T) Spec {
	dir := datasettest.Folder(t, "optdigits")
	return Spec{Set: "csv", Path: filepath.Join(dir, "optdigits.tra.gz"), Test: filepath.Join(dir, "optdigits.tes.gz"), Scale: 16}
}

func a9a(t *testing.T) Spec {
	dir := datasettest.Folder(t, "libsvm")
	return Spec{Set: "libsvm", Path: filepath.Join(dir, "a9a.gz"), Test: filepath.Join(dir, "a9a.t.gz")}
}

func TestRealSets(t *testing.T) {
	for _, c := range []struct {
		name        string
		spec        func(t *testing.T) Spec
		cols        int
		train, test []int
		first       string // SHA-256 of the first file, unpacked
	}{
		{"fashion-mnist", fashion, 784, repeat(10, 6000), repeat(10, 1000), "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
		{"optdigits", optdigits, 64, []int{376, 389, 380, 389, 387, 376, 377, 387, 380, 382},
			[]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"},
		{"a9a", a9a, 123, []int{32561 - 7841, 7841}, []int{16281 - 3846, 3846},
			"f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
		{"cifar10", func(t *testing.T) Spec { return Spec{Set: "cifar10", Path: datasettest.Folder(t, "cifar-10")} }, 3072,
			repeat(10, 5000), repeat(10, 1000), "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := c.spec(t)
			r, err := described(spec)
			if err != nil {
				t.Fatal(err)
			}
			if r.Cols != c.cols || !slices.Equal(r.Train.Counts, c.train) || !slices.Equal(r.Test.Counts, c.test) || r.Files[0].SHA256 != c.first {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// The constants that normalise CIFAR-10 are of its training images, to their four digits: normalised values have mean 0 and deviation 1.
func TestCIFAR10Moments(t *testing.T) {
	set, err := Load(Spec{Set: "cifar10", Path: datasettest.Folder(t, "cifar-10")})
	if err != nil {
		t.Fatal(err)
	}
	train := set.Train.(pixels)
	for c, values := range train.byteValues() {
		var counts [256]float64
		for r := range train.Rows() {
			for _, v := range train.raw(r)[c*1024:][:1024] {
				counts[v]++
			}
		}
		n := float64(train.Rows() * 1024)
		var mean, squares float64
		for v, k := range counts {
			mean += float64(values[v]) * k / n
			squares += float64(values[v]) * float64(values[v]) * k / n
		}
		// half of the last digit of the mean, and of the deviation, in units of a deviation of 0.2435 or more
		if std := math.Sqrt(squares - mean*mean); math.Abs(mean) > 5e-5/0.2435 || math.Abs(std-1) > 5e-5/0.2435 {
			t.Errorf("channel %d has mean %.6f and deviation %.6f after normalising", c, mean, std)
		}
	}
}

func TestA9ASparse(t *testing.T) {
	set, err := Load(a9a(t))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := len(set.Train.(*sparse).index), len(set.Test.(*sparse).index); a != 451592 || b != 225731 {
		t.Errorf("%d and %d entries, want 451592 and 225731", a, b)
	}
}

func repeat(n, v int) []int { return slices.Repeat([]int{v}, n) }
