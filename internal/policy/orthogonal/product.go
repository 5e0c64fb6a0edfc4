package orthogonal

// Products of matrices. The right factor is packed so that a tile reads it in order: blocks of depth terms, of width columns, tileCols of
// them side by side. A tile of tileRows x tileCols sums stays in registers for the terms of a block.
const (
	tileRows, tileCols = 4, 32

	depth          = 256 // terms of a block: the right side of a tile takes 32 KiB, which stay in the first-level cache
	width          = 512 // columns of a block: 512 KiB, which stay in the second-level cache
	packedElements = depth * width

	// pieceMin is the fewest products of a block that are worth another core: about 50 us.
	pieceMin = 1 << 20
)

// product adds left times the packed block to dst: terms lo to hi-1, for the columns from col on. Rows before row are left out.
type product struct {
	dst, left      []float32
	rows, inner    int // left is rows x inner
	cols           int // of dst
	row, col, wide int
	lo, hi         int
	pieces         int
}

// timesItsTranspose is dst = x times its transpose, for x of rows x inner. The result is symmetric to the bit, so half of it is computed.
func (m *Maker) timesItsTranspose(dst, x []float32, rows, inner int) {
	clear(dst)
	for col := 0; col < rows; col += width {
		wide := min(width, rows-col)
		for lo := 0; lo < inner; lo += depth {
			hi := min(lo+depth, inner)
			m.packTransposed(x, inner, col, wide, lo, hi)
			m.run(product{dst: dst, left: x, rows: rows, inner: inner, cols: rows, row: col, col: col, wide: wide, lo: lo, hi: hi})
		}
	}
	mirror(dst, rows)
}

// mirror makes a matrix symmetric by the half below its diagonal.
func mirror(a []float32, n int) {
	for i0 := 0; i0 < n; i0 += transposeBlock {
		for j0 := 0; j0 <= i0; j0 += transposeBlock {
			for i := i0; i < min(i0+transposeBlock, n); i++ {
				for j := j0; j < min(j0+transposeBlock, i); j++ {
					a[j*n+i] = a[i*n+j]
				}
			}
		}
	}
}

// addProduct adds left times right to dst: left is rows x rows, right and dst are rows x cols.
func (m *Maker) addProduct(dst, left, right []float32, rows, cols int) {
	for col := 0; col < cols; col += width {
		wide := min(width, cols-col)
		for lo := 0; lo < rows; lo += depth {
			hi := min(lo+depth, rows)
			m.pack(right, cols, col, wide, lo, hi)
			m.run(product{dst: dst, left: left, rows: rows, inner: rows, cols: cols, col: col, wide: wide, lo: lo, hi: hi})
		}
	}
}

// pack packs rows lo to hi-1 of right, columns from col on. Columns that are missing in the last tile are zeros.
func (m *Maker) pack(right []float32, cols, col, wide, lo, hi int) {
	for j := 0; j < wide; j += tileCols {
		n, to := min(tileCols, wide-j), m.packed[j*(hi-lo):]
		for k := lo; k < hi; k++ {
			part := to[(k-lo)*tileCols:][:tileCols]
			clear(part[copy(part, right[k*cols+col+j:][:n]):])
		}
	}
}

// packTransposed packs the transpose of x: its columns are rows of x.
func (m *Maker) packTransposed(x []float32, inner, col, wide, lo, hi int) {
	for j := 0; j < wide; j += tileCols {
		n, to := min(tileCols, wide-j), m.packed[j*(hi-lo):][:tileCols*(hi-lo)]
		if n < tileCols {
			clear(to)
		}
		for i := range n {
			for k, v := range x[(col+j+i)*inner+lo : (col+j+i)*inner+hi] {
				to[k*tileCols+i] = v
			}
		}
	}
}

func (m *Maker) run(p product) {
	p.pieces = max(1, min(m.pieces, (p.rows-p.row)*p.wide*(p.hi-p.lo)/pieceMin))
	m.work = p
	if p.pieces == 1 {
		m.runPiece(0)
	} else {
		m.parallel(p.pieces, m.piece)
	}
	m.work = product{}
}

// runPiece does piece i of the product: some of its rows.
func (m *Maker) runPiece(i int) {
	p := &m.work
	tiles := (p.rows - p.row + tileRows - 1) / tileRows
	var left [tileRows * depth]float32
	var edge [tileRows * tileCols]float32
	terms := p.hi - p.lo
	for t := tiles * i / p.pieces; t < tiles*(i+1)/p.pieces; t++ {
		row := p.row + t*tileRows
		high := min(tileRows, p.rows-row)
		if high < tileRows {
			clear(left[:])
		}
		for k := range high {
			for at, v := range p.left[(row+k)*p.inner+p.lo : (row+k)*p.inner+p.hi] {
				left[at*tileRows+k] = v
			}
		}
		for j := 0; j < p.wide; j += tileCols {
			right, n := m.packed[j*terms:][:tileCols*terms], min(tileCols, p.wide-j)
			dst := p.dst[row*p.cols+p.col+j:]
			if high == tileRows && n == tileCols {
				tile(dst, p.cols, left[:tileRows*terms], right)
				continue
			}
			for k := range high {
				copy(edge[k*tileCols:][:n], dst[k*p.cols:][:n])
			}
			tile(edge[:], tileCols, left[:tileRows*terms], right)
			for k := range high {
				copy(dst[k*p.cols:][:n], edge[k*tileCols:][:n])
			}
		}
	}
}

// tileGo adds left times right to a tile whose rows begin every stride elements: the twin of the vector instructions, to the bit. The sums
// of two rows and four columns stay in registers.
func tileGo(dst []float32, stride int, left, right []float32) {
	for i := 0; i < tileRows; i += 2 {
		for j := 0; j < tileCols; j += 4 {
			upper, lower := (*[4]float32)(dst[i*stride+j:]), (*[4]float32)(dst[(i+1)*stride+j:])
			a0, a1, a2, a3 := upper[0], upper[1], upper[2], upper[3]
			b0, b1, b2, b3 := lower[0], lower[1], lower[2], lower[3]
			x, of := left[i:], right[j:]
			for len(x) >= 2 && len(of) >= 4 {
				r0, r1, r2, r3 := of[0], of[1], of[2], of[3]
				x0, x1 := x[0], x[1]
				a0 += float32(x0 * r0)
				a1 += float32(x0 * r1)
				a2 += float32(x0 * r2)
				a3 += float32(x0 * r3)
				b0 += float32(x1 * r0)
				b1 += float32(x1 * r1)
				b2 += float32(x1 * r2)
				b3 += float32(x1 * r3)
				if len(x) < tileRows || len(of) < tileCols {
					break
				}
				x, of = x[tileRows:], of[tileCols:]
			}
			*upper, *lower = [4]float32{a0, a1, a2, a3}, [4]float32{b0, b1, b2, b3}
		}
	}
}
