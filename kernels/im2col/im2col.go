// Package im2col turns convolutions into products of matrices, for devices whose products are fast.
package im2col

// Shape is an image (channels x height x width) and the windows that slide over it.
type Shape struct {
	Channels, Height, Width int
	Kernel                  int // windows are Kernel x Kernel; at least 1
	Stride                  int // between neighbouring windows, both ways; at least 1
	Pad                     int // zeros around the image, on each side
}

// Outputs returns how many windows fit in each direction. Values past the last whole window
// belong to no window.
func (s Shape) Outputs() (rows, cols int) {
	return s.windows(s.Height), s.windows(s.Width)
}

func (s Shape) windows(size int) int {
	room := size + 2*s.Pad - s.Kernel
	if room < 0 {
		return 0
	}
	return room/s.Stride + 1
}

// Inputs returns the number of values of the image.
func (s Shape) Inputs() int { return s.Channels * s.Height * s.Width }

// Columns returns the size of the matrix of windows: rows (channels x Kernel x Kernel) by windows.
func (s Shape) Columns() (rows, windows int) {
	h, w := s.Outputs()
	return s.Channels * s.Kernel * s.Kernel, h * w
}

// Gather writes the windows of image x as the columns of col: row (c*Kernel + ky)*Kernel + kx holds
// value (c, ky, kx) of every window, and 0 where a window extends beyond the image.
func Gather(col, x []float32, s Shape) {
	outH, outW := s.Outputs()
	at := 0
	for c := range s.Channels {
		plane := x[c*s.Height*s.Width : (c+1)*s.Height*s.Width]
		for ky := range s.Kernel {
			for kx := range s.Kernel {
				lo, hi := s.inside(kx, s.Width, outW)
				for oy := range outH {
					row := col[at : at+outW]
					at += outW
					y := oy*s.Stride + ky - s.Pad
					if y < 0 || y >= s.Height || lo >= hi {
						clear(row)
						continue
					}
					clear(row[:lo])
					clear(row[hi:])
					from := plane[y*s.Width+lo*s.Stride+kx-s.Pad:]
					if s.Stride == 1 {
						copy(row[lo:hi], from)
						continue
					}
					for i := range row[lo:hi] {
						row[lo+i] = from[i*s.Stride]
					}
				}
			}
		}
	}
}

// Scatter is the transpose of Gather: each value of image dx becomes beta times itself plus the sum of its copies in
// col, added in the order of col's rows. With beta 0 it does not read dx.
func Scatter(dx, col []float32, beta float32, s Shape) {
	dx = dx[:s.Inputs()]
	switch beta {
	case 0:
		clear(dx)
	case 1:
	default:
		for i := range dx {
			dx[i] *= beta
		}
	}
	outH, outW := s.Outputs()
	at := 0
	for c := range s.Channels {
		plane := dx[c*s.Height*s.Width : (c+1)*s.Height*s.Width]
		for ky := range s.Kernel {
			for kx := range s.Kernel {
				lo, hi := s.inside(kx, s.Width, outW)
				for oy := range outH {
					row := col[at : at+outW]
					at += outW
					y := oy*s.Stride + ky - s.Pad
					if y < 0 || y >= s.Height || lo >= hi {
						continue
					}
					add(plane[y*s.Width+lo*s.Stride+kx-s.Pad:], row[lo:hi], s.Stride)
				}
			}
		}
	}
}

func add(to, row []float32, stride int) {
	if stride == 1 {
		to = to[:len(row)]
		for i, v := range row {
			to[i] += v
		}
		return
	}
	for i, v := range row {
		to[i*stride] += v
	}
}

// inside returns the range lo to hi-1 of the windows whose value at offset k lies inside the image, not in the padding.
func (s Shape) inside(k, size, windows int) (lo, hi int) {
	lo = max(0, (s.Pad-k+s.Stride-1)/s.Stride)
	if last := size - 1 + s.Pad - k; last >= 0 {
		hi = min(windows, last/s.Stride+1)
	}
	return lo, hi
}
