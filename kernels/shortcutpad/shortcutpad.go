// Package shortcutpad holds the kernels shortcut_pad and shortcut_pad_grad.
package shortcutpad

// shape describes the input: images with Channels planes of Height x Width. The output has Out planes for each image, at
// least as many as the input, of (Height+1)/2 x (Width+1)/2.
type shape struct {
	Images, Channels, Height, Width, Out int
}

// Inputs and Outputs return the numbers of values of the input and of the output.
func (s shape) Inputs() int { return s.Images * s.Channels * s.Height * s.Width }

func (s shape) Outputs() int { return s.Images * s.Out * ((s.Height + 1) / 2) * ((s.Width + 1) / 2) }

// forward sets y to every second row and column of x, from the first on. The channels that x lacks become 0.
func forward(y, x []float32, s shape) {
	s.rows(func(to, from int, width int) {
		if from < 0 {
			clear(y[to : to+width])
			return
		}
		for j := range width {
			y[to+j] = x[from+2*j]
		}
	})
}

// backward adds dy to dx where forward took its values from.
func backward(dx, dy []float32, s shape) {
	s.rows(func(to, from int, width int) {
		if from < 0 {
			return
		}
		for j := range width {
			dx[from+2*j] += dy[to+j]
		}
	})
}

// rows calls do for each row of the output, with its offset, the offset of its row in the input, and the width of the
// output row. The offset in the input is -1 for a channel that the input lacks.
func (s shape) rows(do func(to, from, width int)) {
	height, width := (s.Height+1)/2, (s.Width+1)/2
	for p := range s.Images * s.Out {
		image, channel := p/s.Out, p%s.Out
		for i := range height {
			from := -1
			if channel < s.Channels {
				from = ((image*s.Channels+channel)*s.Height + 2*i) * s.Width
			}
			do((p*height+i)*width, from, width)
		}
	}
}
