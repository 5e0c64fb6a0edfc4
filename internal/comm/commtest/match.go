package commtest

import (
	"testing"

	"fluentps/internal/comm"
)

// Matches returns the cases of a Transport that implements comm.Matching.
func Matches() []Case {
	return []Case{{"matched sends wait for their receives", matchedSends}}
}

// Sends of all lengths complete after their receives were posted, and not before; the last of a stream that is received first completes no
// earlier than it is met.
func matchedSends(t testing.TB, tr comm.Transport) {
	sizes := []int{0, 1, 2000, comm.CtlMax, comm.CtlMax + 1, 60_000, 300_000}
	r := begin(t, tr)
	m, ok := tr.(comm.Matching)
	if !ok {
		t.Fatalf("%T is no comm.Matching", tr)
	}
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	met := make([]bool, len(sizes)) // by message: its send has completed
	var in []*comm.Buf
	for i, n := range sizes {
		out := r.alloc(max(1, n))
		in = append(in, r.alloc(max(1, n)))
		fill(out.Bytes(), uint64(r.me*100+i))
		r.open++
		var op comm.Op
		op = m.IsendMatched(comm.Peer(to), comm.Data, uint32(20+i), out, 0, n, func(d comm.Done) {
			r.open--
			met[i] = true
			if want := (comm.Done{Op: op, Peer: comm.Peer(to), Tag: uint32(20 + i), N: n}); d != want {
				t.Errorf("send completed with %+v, want %+v", d, want)
			}
		})
	}
	for i, n := range sizes {
		for range 50 {
			r.Tick()
		}
		r.meet() // nobody has posted the receive of message i
		for k := i; k < len(sizes); k++ {
			if met[k] {
				t.Errorf("the send of %d bytes has completed, and no receive was posted", sizes[k])
			}
		}
		r.meet()
		r.recv(comm.Peer(from), comm.Data, uint32(20+i), in[i], 0, n, func(d comm.Done) {
			if r.must(d); d.N != n || n > 0 && !holds(in[i].Bytes()[:n], uint64(from*100+i)) {
				t.Errorf("message %d: %d bytes of %d, or the wrong ones", i, d.N, n)
			}
		})
		r.drive(func() bool { return met[i] })
	}
	r.end()
}
