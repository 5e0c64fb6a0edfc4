package images

import (
	"math"
	"testing"

	"fluentps/ps/workload/dataset/datasettest"
	"fluentps/ps/workload/dataset/files"
)

func TestChannelMoments(t *testing.T) {
	p := &Bytes{data: []byte{1, 3, 10, 10, 20, 0, 5, 7, 10, 30, 20, 200}, y: []int32{0, 1}, image: Shape{3, 1, 2}}
	counts := make([][256]int, 3)
	for r := range 2 {
		count(counts, p.Raw(r))
	}
	for c, want := range [][2]float64{{4, math.Sqrt(5)}, {15, math.Sqrt(75)}, {60, math.Sqrt((1600 + 3600 + 1600 + 140*140) / 4.0)}} {
		if mean, std := moments(&counts[c]); math.Abs(mean-want[0]) > 1e-12 || math.Abs(std-want[1]) > 1e-12 {
			t.Errorf("channel %d has mean %g and deviation %g, want %v", c, mean, std, want)
		}
	}
}

// The constants that normalise CIFAR-10 are of its training images, to their four digits.
func TestCIFAR10Moments(t *testing.T) {
	train, _, _, err := ReadCIFAR10(datasettest.Folder(t, "cifar-10"), files.New(0))
	if err != nil {
		t.Fatal(err)
	}
	counts := make([][256]int, 3)
	for r := range train.Rows() {
		count(counts, train.Raw(r))
	}
	for c := range 3 {
		mean, std := moments(&counts[c])
		if math.Abs(mean/255-cifarMean[c]) > 5e-5 || math.Abs(std/255-cifarStd[c]) > 5e-5 {
			t.Errorf("channel %d has mean %.6f and deviation %.6f, the constants are %g and %g", c, mean/255, std/255, cifarMean[c], cifarStd[c])
		}
	}
}
