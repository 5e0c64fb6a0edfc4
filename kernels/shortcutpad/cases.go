package shortcutpad

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func forwardCases() []kernel.Case {
	return images(func(c *kernel.Case, x, dy []float32, y, dx []float64) {
		c.In[0], c.In[1], c.Want[1] = x, kernel.NaNs(len(dy)), y
	})
}

func backwardCases() []kernel.Case {
	return images(func(c *kernel.Case, x, dy []float32, y, dx []float64) {
		c.In[0], c.In[1], c.Want[1] = dy, x, dx
	})
}

// images include odd heights and widths, a single pixel, and outputs with no additional channels.
func images(complete func(c *kernel.Case, x, dy []float32, y, dx []float64)) (cases []kernel.Case) {
	for _, n := range []kernel.Sizes{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 3}, {2, 3, 5, 7, 6}, {3, 2, 8, 8, 4},
		{2, 16, 32, 32, 32}, {5, 3, 2, 1, 3}, {1, 7, 13, 31, 11}, {0, 2, 4, 4, 4}} {
		count, channels, height, width, outs := n[0], n[1], n[2], n[3], n[4]
		outH, outW := (height+1)/2, (width+1)/2
		c := kernel.Case{Name: fmt.Sprintf("images=%d channels=%d height=%d width=%d out=%d", count, channels, height,
			width, outs), Sizes: n, Terms: 1}
		x, dy := kernel.Random(count*channels*height*width, 30), kernel.Random(count*outs*outH*outW, 31)
		y, dx := make([]float64, len(dy)), kernel.Float64s(x) // the kernel adds to the old value of dX
		for to := range y {
			j, i, channel, image := to%outW, to/outW%outH, to/(outW*outH)%outs, to/(outW*outH*outs)
			if channel < channels {
				from := ((image*channels+channel)*height+2*i)*width + 2*j
				y[to] = float64(x[from])
				dx[from] += float64(dy[to])
			}
		}
		complete(&c, x, dy, y, dx)
		cases = append(cases, c)
	}
	return cases
}
