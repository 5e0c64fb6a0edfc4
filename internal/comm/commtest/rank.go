package commtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"fluentps/internal/comm"
)

// rank is a Transport with the steps that the cases share. Every case starts with begin and ends
// with end.
type rank struct {
	comm.Transport
	t     testing.TB
	me, n int
	open  int // operations without their completion
	bufs  []*comm.Buf
}

func begin(t testing.TB, tr comm.Transport) *rank {
	return &rank{Transport: tr, t: t, me: tr.Rank(), n: tr.Size()}
}

// end drains this rank's operations, frees its buffers and waits for the others.
func (r *rank) end() {
	r.t.Helper()
	r.drain()
	r.meet()
	for _, b := range r.bufs {
		b.Free()
	}
}

// meet waits for the others.
func (r *rank) meet() {
	r.t.Helper()
	if err := r.Barrier(); err != nil {
		r.t.Fatalf("Barrier: %v", err)
	}
}

func (r *rank) drain() {
	r.t.Helper()
	r.drive(func() bool { return r.open == 0 })
}

func (r *rank) drive(until func() bool) {
	r.t.Helper()
	if err := r.Drive(until); err != nil {
		r.t.Fatalf("Drive: %v", err)
	}
}

// alloc returns a buffer that lives to the end of the case.
func (r *rank) alloc(n int) *comm.Buf {
	r.t.Helper()
	b, err := r.Alloc(n)
	if err != nil {
		r.t.Fatalf("Alloc(%d): %v", n, err)
	}
	r.bufs = append(r.bufs, b)
	return b
}

// send checks the completion of an Isend and calls then, which may be nil.
func (r *rank) send(to int, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, then func()) {
	r.open++
	var op comm.Op
	op = r.Isend(comm.Peer(to), ch, tag, b, off, n, func(d comm.Done) {
		r.open--
		if want := (comm.Done{Op: op, Peer: comm.Peer(to), Tag: tag, N: n}); d != want {
			r.t.Errorf("send completed with %+v, want %+v", d, want)
		}
		if then != nil {
			then()
		}
	})
	if op == 0 {
		r.t.Errorf("Isend returned operation 0")
	}
}

// recv checks the completion of an Irecv as far as it can and calls then.
func (r *rank) recv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, then func(comm.Done)) comm.Op {
	r.open++
	var op comm.Op
	op = r.Irecv(from, ch, tag, b, off, n, func(d comm.Done) {
		r.open--
		if d.Op != op || d.Tag != tag || d.Err == nil && (from != comm.AnyPeer && d.Peer != from || d.N > n) {
			r.t.Errorf("receive %d from %d, tag %d, %d bytes completed with %+v", op, from, tag, n, d)
		}
		then(d)
	})
	if op == 0 {
		r.t.Errorf("Irecv returned operation 0")
	}
	return op
}

// must fails the case when a completion carries an error.
func (r *rank) must(d comm.Done) {
	if d.Err != nil {
		r.t.Errorf("completed with %+v", d)
	}
}

const block = 1 << 16

// fill writes the pattern of a seed: random blocks, each different from the last.
func fill(p []byte, seed uint64) {
	head := p[:min(len(p), block)]
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range head {
		head[i] = byte(rng.Uint32())
	}
	for at := block; at < len(p); at += block {
		n := copy(p[at:], head)
		p[at] ^= byte(at >> 16)
		p[at+n-1] ^= byte(at >> 16)
	}
}

// holds tells whether p is the pattern of a seed.
func holds(p []byte, seed uint64) bool {
	want := make([]byte, min(len(p), block))
	fill(want, seed)
	if !bytes.Equal(p[:len(want)], want) {
		return false
	}
	for at := block; at < len(p); at += block {
		part := p[at:min(len(p), at+block)]
		expect := append([]byte(nil), want[:len(part)]...)
		expect[0] ^= byte(at >> 16)
		expect[len(part)-1] ^= byte(at >> 16)
		if !bytes.Equal(part, expect) {
			return false
		}
	}
	return true
}
