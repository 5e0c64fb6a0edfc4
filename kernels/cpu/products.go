//go:build blas

package cpu

import (
	"sync"
	"sync/atomic"

	"fluentps/kernels/gemm"
)

// A library of products gives an element other last bits where it stands at another place of a product, and where another
// number of threads takes part. So a product is cut into tiles, by its sizes alone, and each tile is a product of its own
// on one thread: any number of threads shares them out and has the same bits. Tiles of 256 x 256 cost a few per cent of
// speed on one thread, because operands are packed once for each tile; half as large they cost up to an eighth.
const (
	tileSide   = 256
	tileStrip  = 128     // where one side of the result is at most tileSide, and is not cut
	tileFactor = 2 << 20 // multiplications of a product from which on it is cut
)

// tileOf is how many rows and columns of C one tile has.
func tileOf(m, n, k int) (rows, columns int) {
	switch {
	case m*n*k < tileFactor:
		return m, n
	case m <= tileSide:
		return m, tileStrip
	case n <= tileSide:
		return tileStrip, n
	}
	return tileSide, tileSide
}

// product computes C = A·B + beta*C + bias; a bias is put into C first. The lengths have been checked by Launch, because C
// code would write past the end.
func product(threads int, op gemm.Op, m, n, k int, a, b, c, bias []float32, beta float32) {
	if m == 0 || n == 0 {
		return
	}
	if len(bias) > 0 || k == 0 {
		gemm.Rows(op, 0, m, m, n, 0, nil, nil, c, bias, beta)
		beta = 1
	}
	if k == 0 {
		return
	}
	p := tiles{op: op, m: m, n: n, k: k, a: a, b: b, c: c, beta: beta}
	p.rows, p.columns = tileOf(m, n, k)
	if threads == 1 || p.count() == 1 {
		for number := range p.count() {
			p.tile(number)
		}
		return
	}
	share(p, min(threads, p.count()))
}

// tiles is a product that is cut.
type tiles struct {
	op            gemm.Op
	m, n, k       int
	a, b, c       []float32
	beta          float32
	rows, columns int // of a tile; the last ones may have fewer
}

func (p *tiles) across() int { return (p.n + p.columns - 1) / p.columns }

func (p *tiles) count() int { return (p.m + p.rows - 1) / p.rows * p.across() }

// share has threads take one tile after the other.
func share(p tiles, threads int) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range threads {
		done.Go(func() {
			for number := int(next.Add(1)) - 1; number < p.count(); number = int(next.Add(1)) - 1 {
				p.tile(number)
			}
		})
	}
	done.Wait()
}

func (p *tiles) tile(number int) {
	i, j := number/p.across()*p.rows, number%p.across()*p.columns
	a, lda, b, ldb := p.a[i*p.k:], p.k, p.b[j:], p.n
	switch p.op {
	case gemm.NT:
		b, ldb = p.b[j*p.k:], p.k
	case gemm.TN:
		a, lda = p.a[i:], p.m
	}
	multiply(p.op, min(p.rows, p.m-i), min(p.columns, p.n-j), p.k, a, lda, b, ldb, p.beta, p.c[i*p.n+j:], p.n)
}
