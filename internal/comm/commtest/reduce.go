package commtest

import (
	"math"
	"testing"

	"fluentps/internal/comm"
)

// Sums returns the cases of a Transport that implements comm.Reducer.
func Sums() []Case {
	return []Case{
		{"sums are exact and the same everywhere", sums},
		{"sums beside messages", sumsBesideMessages},
	}
}

// reduce submits a sum of float32 values [lo, hi) and checks its completion.
func (r *rank) reduce(b *comm.Buf, lo, hi int) {
	r.t.Helper()
	red, ok := r.Transport.(comm.Reducer)
	if !ok {
		r.t.Fatalf("%T is no comm.Reducer", r.Transport)
	}
	r.open++
	var op comm.Op
	op = red.Iallreduce(b, lo*4, (hi-lo)*4, func(d comm.Done) {
		r.open--
		if want := (comm.Done{Op: op, Peer: comm.AnyPeer, N: (hi - lo) * 4}); d != want {
			r.t.Errorf("sum completed with %+v, want %+v", d, want)
		}
	})
}

// Small integers add up exactly in any order, so the sums are known. Of other values every rank must have the same
// bits. Values outside the range stay as they are.
func sums(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	long := 1 << 20
	if comm.Invariants { // and the race detector: many pieces of each algorithm, and longer than what any transport sends at once
		long = 1 << 17
	}
	for _, n := range []int{1, 3, 1000, long} {
		b, odd := r.alloc((n+2)*4), r.alloc(n*4)
		v, o := b.F32(), odd.F32()
		for i := range v {
			v[i] = float32((i%1000 + 1) * (r.me + 1))
		}
		for i := range o {
			o[i] = float32(math.Sin(float64(i+1)) / float64(r.me+3))
		}
		r.reduce(b, 1, n+1)
		r.reduce(odd, 0, n)
		r.drain()
		factor := r.n * (r.n + 1) / 2
		for i := range v {
			want := float32((i%1000 + 1) * factor)
			if i == 0 || i == n+1 {
				want = float32((i%1000 + 1) * (r.me + 1))
			}
			if v[i] != want {
				t.Fatalf("value %d of %d is %v, want %v", i, n, v[i], want)
			}
		}
		to, from := comm.Peer((r.me+1)%r.n), comm.Peer((r.me+r.n-1)%r.n)
		in := r.alloc(n * 4)
		r.recv(from, comm.Data, 60, in, 0, n*4, func(d comm.Done) { r.must(d) })
		r.send(int(to), comm.Data, 60, odd, 0, n*4, nil)
		r.drain()
		for i, x := range in.F32() {
			if math.Float32bits(x) != math.Float32bits(o[i]) {
				t.Fatalf("value %d of %d is %v here and %v on rank %d", i, n, o[i], x, from)
			}
		}
	}
	r.end()
}

// Several collectives in flight complete each with its own sum, whatever messages move between them, and no rank waits
// inside the call for a late rank.
func sumsBesideMessages(t testing.TB, tr comm.Transport) {
	const count, n = 20, 5000
	r := begin(t, tr)
	b, out, in := r.alloc(count*n*4), r.alloc(1<<20), r.alloc(1<<20)
	fill(out.Bytes(), uint64(r.me))
	v := b.F32()
	for k := range count {
		for i := range n {
			v[k*n+i] = float32(k + r.me)
		}
	}
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	for k := range count {
		r.reduce(b, k*n, (k+1)*n)
		if k%5 == 0 {
			r.recv(comm.Peer(from), comm.Data, 61, in, 0, 1<<20, func(d comm.Done) { r.must(d) })
			r.send(to, comm.Data, 61, out, 0, 1<<20, nil)
			r.drain()
			if !holds(in.Bytes(), uint64(from)) {
				t.Errorf("a message beside collective %d has the wrong bytes", k)
			}
		}
	}
	r.drain()
	for k := range count {
		want := float32(k*r.n + r.n*(r.n-1)/2)
		for i := range n {
			if v[k*n+i] != want {
				t.Fatalf("collective %d, value %d is %v, want %v", k, i, v[k*n+i], want)
			}
		}
	}
	r.end()
}
