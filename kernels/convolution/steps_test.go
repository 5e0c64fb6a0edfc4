package convolution

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/kernels/kernel"
)

// In the layers of a ResNet-20 the gradient of the images takes tiles that keep a large GPU's schedulers busy, and
// its launch sums up the gradient of the filters too.
func TestBackwardStepsOfANetwork(t *testing.T) {
	for _, c := range []struct {
		n    kernel.Sizes
		want string
	}{
		{kernel.Sizes{128, 16, 32, 32, 16, 3, 1, 1}, "conv_backward_filter_3_32 conv_backward_data_3_32+sum"},
		{kernel.Sizes{128, 16, 32, 32, 32, 3, 2, 1}, "conv_backward_filter conv_backward_data_3_halved_16+sum"},
		{kernel.Sizes{128, 32, 16, 16, 32, 3, 1, 1}, "conv_backward_filter_3_16 conv_backward_data_3_16+sum"},
		{kernel.Sizes{32, 32, 16, 16, 32, 3, 1, 1}, "conv_backward_filter_3_16 conv_backward_data_3_16_more+sum"},
		{kernel.Sizes{128, 32, 16, 16, 64, 3, 2, 1}, "conv_backward_filter conv_backward_data_3_halved_8+sum"},
		{kernel.Sizes{128, 64, 8, 8, 64, 3, 1, 1}, "conv_backward_filter_3_8 conv_backward_data_3_8_more+sum"},
		{kernel.Sizes{512, 64, 8, 8, 64, 3, 1, 1}, "conv_backward_filter_3_8 conv_backward_data_3_8+sum"},
		{kernel.Sizes{128, 6, 14, 14, 16, 5, 1, 0}, "conv_backward_filter conv_backward_data_5_16+sum"},
		// products sum nothing up
		{kernel.Sizes{128, 16, 32, 32, 32, 3, 2, 0}, "conv_backward_filter conv_backward_filter_sum conv_backward_data_3"},
		{kernel.Sizes{1, 2, 5, 5, 3, 2, 1, 0}, "conv_backward_filter conv_backward_data"}, // there is one share
		{kernel.Sizes{0, 2, 5, 5, 3, 3, 1, 1}, "conv_backward_filter"},                    // sums of nothing
		{kernel.Sizes{1, 2, 5, 5, 0, 3, 1, 1}, "conv_backward_data_3"},
	} {
		var got []string
		for _, s := range backwardSteps(c.n) {
			if s.Entry == "" {
				break
			}
			if got = append(got, s.Entry); s.Grid[2] == 2 && strings.Contains(s.Entry, "data") {
				got[len(got)-1] += "+sum"
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("sizes %v: %s, want %s", c.n, text, c.want)
		}
	}
}

// A tile in half as many positions a thread has twice as many threads, and covers the same result.
func TestSmallLaunchesTakeShorterStrips(t *testing.T) {
	for _, e := range []*entries{&forwardEntries, &backwardEntries} {
		for images := 1; images <= 512; images *= 2 {
			s := directStep(e.direct3, images, 64, 8, 8)
			warps := s.Grid[0] * s.Grid[1] * s.Block[0] / 32
			if few := strings.HasSuffix(s.Entry, "_more"); few != (images < 198) || s.Grid != [3]int{images, 1, 1} {
				t.Errorf("%d images: %v with %d warps", images, s, warps)
			}
			if want := map[bool]int{false: 128, true: 256}[strings.HasSuffix(s.Entry, "_more")]; s.Block[0] != want {
				t.Errorf("%s: %d threads, want %d", s.Entry, s.Block[0], want)
			}
		}
	}
	if s := fmt.Sprint(directStep(forwardEntries.direct3, 128, 16, 32, 32)); !strings.Contains(s, "conv_forward_3_32 ") {
		t.Errorf("the first group: %s", s)
	}
}
