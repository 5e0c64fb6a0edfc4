package cpu

import (
	"sync"

	"fluentps/kernels/gemm"
)

// In a library of products, the last bits of an element depend on its position in the product and on the number of threads.
// So a product is cut into tiles, by its sizes alone, and one thread computes each tile as a product of its own. The bits are
// then the same with any number of threads. Tiles of 256 x 256 cost OpenBLAS a few per cent of its speed on one thread,
// because it packs operands once for each tile. Tiles half as wide cost up to an eighth. oneDNN loses less.
const (
	tileSide  = 256
	tileStrip = 128     // side of a tile if the other side of the result is at most tileSide, and is not cut
	tiledMin  = 2 << 20 // number of multiplications from which a product is cut
)

// tileOf returns how many rows and columns of C one tile has.
func tileOf(m, n, k int) (rows, columns int) {
	switch {
	case m*n*k < tiledMin:
		return m, n
	case m <= tileSide:
		return m, tileStrip
	case n <= tileSide:
		return tileStrip, n
	}
	return tileSide, tileSide
}

// product computes C = A·B + beta*C + bias. Launch has checked the lengths: the library would write past the end.
func (d *device) product(op gemm.Op, m, n, k int, a, b, c, bias []float32, beta float32) error {
	if m == 0 || n == 0 {
		return nil
	}
	if d.products == nil {
		twinRows(d.threads, op, m, n, k, a, b, c, bias, beta)
		return nil
	}
	if len(bias) > 0 || k == 0 { // the library adds no bias, so C gets it first
		gemm.Rows(op, 0, m, m, n, 0, nil, nil, c, bias, beta)
		beta = 1
	}
	if k == 0 {
		return nil
	}
	p := tiles{op: op, m: m, n: n, k: k, a: a, b: b, c: c, beta: beta, multiply: d.products}
	p.rows, p.columns = tileOf(m, n, k)
	if d.threads == 1 || p.count() == 1 {
		return p.serial()
	}
	return p.parallel(d.threads)
}

// multiplier computes one tile: rows x columns of C.
type multiplier func(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) error

// tiles is a product that is cut into tiles.
type tiles struct {
	op            gemm.Op
	m, n, k       int
	a, b, c       []float32
	beta          float32
	multiply      multiplier
	rows, columns int // of a tile; the last tiles may have fewer
}

func (p *tiles) across() int { return (p.n + p.columns - 1) / p.columns }

func (p *tiles) count() int { return (p.m + p.rows - 1) / p.rows * p.across() }

func (p *tiles) tile(number int) error {
	i, j := number/p.across()*p.rows, number%p.across()*p.columns
	a, lda, b, ldb := p.a[i*p.k:], p.k, p.b[j:], p.n
	switch p.op {
	case gemm.NT:
		a, b, ldb = p.a[i*p.k:], p.b[j*p.k:], p.k
	case gemm.TN:
		a, lda = p.a[i:], p.m
	}
	return p.multiply(p.op, min(p.rows, p.m-i), min(p.columns, p.n-j), p.k, a, lda, b, ldb, p.beta, p.c[i*p.n+j:], p.n)
}

func (p *tiles) serial() error {
	for t := range p.count() {
		if err := p.tile(t); err != nil {
			return err
		}
	}
	return nil
}

// parallel computes the tiles with several threads. Its receiver is a copy, so that only products with several threads
// allocate memory.
func (p tiles) parallel(threads int) error {
	var once sync.Once
	var failed error
	parallelFor(threads, slicesPerThread, p.count(), func(_, first, last int) {
		for t := first; t < last; t++ {
			if err := p.tile(t); err != nil {
				once.Do(func() { failed = err })
				return
			}
		}
	})
	return failed
}

// twinRows computes a product with the Go twin and splits the rows of C among threads. One thread sums each element, in the same
// order whatever the number of threads. Each slice packs all of B again, so there is one slice per thread.
func twinRows(threads int, op gemm.Op, m, n, k int, a, b, c, bias []float32, beta float32) {
	if threads == 1 || m < 2*threads {
		gemm.Rows(op, 0, m, m, n, k, a, b, c, bias, beta)
		return
	}
	parallelFor(threads, 1, m, func(_, first, last int) { gemm.Rows(op, first, last, m, n, k, a, b, c, bias, beta) })
}
