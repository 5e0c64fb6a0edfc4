// Package gemm holds the matrix product kernels gemm_nn, gemm_nt and gemm_tn.
package gemm

// Op says which operand is stored transposed.
type Op uint8

const (
	NN Op = iota // A is m x k, B is k x n
	NT           // A is m x k, B is n x k
	TN           // A is k x m, B is k x n
)

// A tile of the result is tileM x tileN. Its sums and one column of operands fit the 15 vector
// registers of amd64. A panel holds blockK terms of a tile's operands. blockM packed rows of A stay
// in the first-level cache while B streams through it.
const (
	tileM  = 2
	tileN  = 4
	unroll = 4
	blockM = 32
	blockK = 256
)

// Rows computes rows lo to hi-1 of C (m x n) = A·B + beta*C + bias, all row-major float32. It adds bias
// to every row; a nil or empty bias adds nothing. With beta 0 it does not read C.
// The value of an element does not depend on lo and hi, so callers may split rows among threads.
func Rows(op Op, lo, hi, m, n, k int, a, b, c, bias []float32, beta float32) {
	scaleAndBias(lo, hi, n, c, bias, beta)
	var packedA [blockM * blockK]float32
	var packedB [tileN * blockK]float32
	for p := 0; p < k; p += blockK {
		terms := min(blockK, k-p)
		padded := (terms + unroll - 1) / unroll * unroll
		for i := lo; i < hi; i += blockM {
			rows := min(blockM, hi-i)
			packA(packedA[:], op, a, i, rows, p, terms, padded, m, k)
			for j := 0; j < n; j += tileN {
				cols := min(tileN, n-j)
				packB(packedB[:], op, b, j, cols, p, terms, padded, n, k)
				for r := 0; r < rows; r += tileM {
					sums := tile(packedA[r*padded:(r+tileM)*padded], packedB[:tileN*padded])
					add(c, sums[:tileN], (i+r)*n+j, cols)
					if r+1 < rows {
						add(c, sums[tileN:], (i+r+1)*n+j, cols)
					}
				}
			}
		}
	}
}

// scaleAndBias sets C to beta*C + bias, to which Rows then adds the products.
func scaleAndBias(lo, hi, n int, c, bias []float32, beta float32) {
	for i := lo; i < hi; i++ {
		row := c[i*n : (i+1)*n]
		if beta == 0 {
			clear(row)
		} else if beta != 1 {
			for j := range row {
				row[j] *= beta
			}
		}
		if len(bias) > 0 {
			for j, v := range bias[:n] {
				row[j] += v
			}
		}
	}
}

func add(c, sums []float32, at, cols int) {
	row := c[at : at+cols]
	for j, v := range sums[:cols] {
		row[j] += v
	}
}

// tile multiplies one packed panel of A by one of B. The panels' lengths are multiples of unroll.
func tile(a, b []float32) (sums [tileM * tileN]float32) {
	var c0, c1, c2, c3, d0, d1, d2, d3 float32
	for len(a) >= tileM*unroll && len(b) >= tileN*unroll {
		x, y := (*[tileM * unroll]float32)(a), (*[tileN * unroll]float32)(b)
		a, b = a[tileM*unroll:], b[tileN*unroll:]

		c0, c1, c2, c3 = c0+x[0]*y[0], c1+x[0]*y[1], c2+x[0]*y[2], c3+x[0]*y[3]
		d0, d1, d2, d3 = d0+x[1]*y[0], d1+x[1]*y[1], d2+x[1]*y[2], d3+x[1]*y[3]

		c0, c1, c2, c3 = c0+x[2]*y[4], c1+x[2]*y[5], c2+x[2]*y[6], c3+x[2]*y[7]
		d0, d1, d2, d3 = d0+x[3]*y[4], d1+x[3]*y[5], d2+x[3]*y[6], d3+x[3]*y[7]

		c0, c1, c2, c3 = c0+x[4]*y[8], c1+x[4]*y[9], c2+x[4]*y[10], c3+x[4]*y[11]
		d0, d1, d2, d3 = d0+x[5]*y[8], d1+x[5]*y[9], d2+x[5]*y[10], d3+x[5]*y[11]

		c0, c1, c2, c3 = c0+x[6]*y[12], c1+x[6]*y[13], c2+x[6]*y[14], c3+x[6]*y[15]
		d0, d1, d2, d3 = d0+x[7]*y[12], d1+x[7]*y[13], d2+x[7]*y[14], d3+x[7]*y[15]
	}
	return [...]float32{c0, c1, c2, c3, d0, d1, d2, d3}
}

// packA copies rows i to i+rows-1 and terms p to p+terms-1 of A into panels of tileM rows, term by
// term. It pads rows and terms with zeros, so that tile needs no special case.
func packA(dst []float32, op Op, a []float32, i, rows, p, terms, padded, m, k int) {
	for r := 0; r < rows; r += tileM {
		panel := dst[r*padded : (r+tileM)*padded]
		clear(panel[tileM*terms:])
		for s := range tileM {
			if r+s >= rows {
				for t := range terms {
					panel[t*tileM+s] = 0
				}
				continue
			}
			if op == TN {
				for t := range terms {
					panel[t*tileM+s] = a[(p+t)*m+i+r+s]
				}
				continue
			}
			for t, v := range a[(i+r+s)*k+p:][:terms] {
				panel[t*tileM+s] = v
			}
		}
	}
}

// packB copies columns j to j+cols-1 and the same terms of B into one panel of tileN columns, padded with zeros.
func packB(dst []float32, op Op, b []float32, j, cols, p, terms, padded, n, k int) {
	panel := dst[:tileN*padded]
	if cols < tileN {
		clear(panel)
	}
	clear(panel[tileN*terms:])
	if op == NT {
		for s := range cols {
			for t, v := range b[(j+s)*k+p:][:terms] {
				panel[t*tileN+s] = v
			}
		}
		return
	}
	for t := range terms {
		copy(panel[t*tileN:(t+1)*tileN], b[(p+t)*n+j:][:cols])
	}
}
