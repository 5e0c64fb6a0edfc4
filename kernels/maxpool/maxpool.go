// Package maxpool holds the kernels max_pool and max_pool_grad.
package maxpool

// forward writes the largest value of each 2 x 2 block of the planes x (planes x height x width) to
// y (planes x height/2 x width/2), and its row-major index in the block, 0 to 3, to which. Ties go to the first
// value, and NaN counts as the largest. A last odd row or column belongs to no block.
func forward(y, which, x []float32, planes, height, width int) {
	outH, outW := height/2, width/2
	for p := range planes {
		for i := range outH {
			at := (p*outH + i) * outW
			y, which := y[at:at+outW], which[at:at+outW]
			top := x[(p*height+2*i)*width:][:2*width]
			bottom := top[width:]
			for j := range y {
				best, k := top[2*j], float32(0)
				if v := top[2*j+1]; v > best || v != v {
					best, k = v, 1
				}
				if v := bottom[2*j]; v > best || v != v {
					best, k = v, 2
				}
				if v := bottom[2*j+1]; v > best || v != v {
					best, k = v, 3
				}
				y[j], which[j] = best, k
			}
		}
	}
}

// backward sets dx (planes x height x width) to dy where forward took the value from, and to 0 elsewhere.
func backward(dx, dy, which []float32, planes, height, width int) {
	clear(dx[:planes*height*width])
	outH, outW := height/2, width/2
	for p := range planes {
		for i := range outH {
			at := (p*outH + i) * outW
			dy, which := dy[at:at+outW], which[at:at+outW]
			block := dx[(p*height+2*i)*width:][:2*width]
			for j, v := range dy {
				k := int(which[j])
				block[(k>>1)*width+2*j+k&1] = v
			}
		}
	}
}
