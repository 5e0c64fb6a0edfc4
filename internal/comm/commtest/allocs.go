package commtest

import (
	"testing"

	"fluentps/internal/comm"
)

// Allocations is the case that a message costs no allocation in steady state. It counts allocations of the whole
// process, so it is not part of All: other goroutines must be idle.
func Allocations() Case { return Case{"no allocation per message", allocations} }

// Two ranks exchange a short and a long message, with receives posted from their own handlers, and a buffer from the
// pool per short message. The other ranks wait.
func allocations(t testing.TB, tr comm.Transport) {
	const warm, runs, perRun, long = 300, 20, 50, 20_000
	r := begin(t, tr)
	if r.n < 2 || r.me > 1 {
		r.end()
		return
	}
	peer := comm.Peer(1 - r.me)
	in, out := r.alloc(2*long), r.alloc(2*long)
	got, sent := 0, 0
	var short *comm.Buf
	arrived := func(d comm.Done) {
		r.must(d)
		got++
	}
	left := func(comm.Done) { sent++ }
	leftShort := func(comm.Done) {
		sent++
		short.Free()
	}
	want := 0
	all := func() bool { return got == want && sent == want }
	post := func() {
		r.Irecv(peer, comm.Ctl, 95, in, 0, 64, arrived)
		r.Irecv(comm.AnyPeer, comm.Data, 96, in, 64, long, arrived)
	}
	throw := func() {
		var err error
		if short, err = r.Alloc(64); err != nil {
			t.Fatal(err)
		}
		r.Isend(peer, comm.Ctl, 95, short, 0, 64, leftShort)
		r.Isend(peer, comm.Data, 96, out, 0, long, left)
	}
	trip := func() {
		for range perRun {
			want += 2
			post()
			throw()
			if err := r.Drive(all); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range warm {
		trip()
	}
	for measurer := range 2 { // one at a time: it stops the other goroutines of its process
		if r.me != measurer {
			for range 1 + runs { // one more, as AllocsPerRun does
				trip()
			}
		} else if n := testing.AllocsPerRun(runs, trip); n > 0 {
			t.Errorf("%v allocations in %d messages", n, 2*perRun)
		}
	}
	r.end()
}
