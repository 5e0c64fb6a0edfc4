package commtest

import (
	"errors"
	"testing"
	"unsafe"

	"fluentps/internal/comm"
)

// Bytes that a rank wrote before it sent are visible to the receiver in that rank's segment; sizes differ, some are
// empty.
func windowVisible(t testing.TB, tr comm.Transport) {
	const rounds = 50
	r := begin(t, tr)
	sizes := func(rank int) int { return []int{5000, 0, 64, 1 << 20, 1}[rank%5] }
	w := r.window(sizes(r.me))
	here := make([]bool, r.n)
	for _, peer := range r.NodePeers() {
		here[peer] = true
	}
	for peer := range r.n {
		b := w.Of(comm.Peer(peer))
		if (b != nil) != here[peer] {
			t.Fatalf("segment of rank %d: %v, on this host: %v", peer, b, here[peer])
		}
		if b == nil {
			continue
		}
		if b.Len() != sizes(peer) || !aligned(b.Bytes()) {
			t.Errorf("segment of rank %d has %d bytes, want %d, or is not aligned", peer, b.Len(), sizes(peer))
		}
		if r.me == peer {
			continue
		}
		for i, v := range b.Bytes() {
			if v != 0 {
				t.Fatalf("segment of rank %d: byte %d is %d", peer, i, v)
			}
		}
	}
	r.barrier()
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	for round := range rounds {
		fill(w.Of(comm.Peer(r.me)).Bytes(), uint64(1000*round+r.me))
		r.send(to, comm.Ctl, 90, nil, 0, 0, nil)
		r.recv(comm.Peer(from), comm.Ctl, 90, nil, 0, 0, func(d comm.Done) {
			r.must(d)
			if b := w.Of(comm.Peer(from)); b != nil && !holds(b.Bytes(), uint64(1000*round+from)) {
				t.Errorf("round %d: the segment of rank %d lacks the bytes written before the message", round, from)
			}
		})
		r.drain()
		r.barrier() // all have read
	}
	r.free(w)
	r.end()
}

// Segments are buffers: messages go from one segment into another, also from a segment of another rank.
func windowMessages(t testing.TB, tr comm.Transport) {
	const n = 70_000
	r := begin(t, tr)
	w := r.window(3 * n)
	own := w.Of(comm.Peer(r.me))
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	fill(own.Bytes()[:n], uint64(r.me))
	r.barrier()
	theirs, of := w.Of(comm.Peer(from)), from
	if theirs == nil {
		theirs, of = own, r.me
	}
	r.send(to, comm.Data, 91, own, 0, n, nil)
	r.send(to, comm.Data, 91, theirs, 0, n, nil)
	r.recv(comm.Peer(from), comm.Data, 91, own, n, n, r.must)
	r.recv(comm.Peer(from), comm.Data, 91, own, 2*n, n, r.must)
	r.drain()
	second := r.alloc(8) // the rank whose bytes the second message held
	second.Bytes()[0] = byte(of)
	r.send(to, comm.Ctl, 92, second, 0, 1, nil)
	r.recv(comm.Peer(from), comm.Ctl, 92, second, 4, 1, r.must)
	r.drain()
	if !holds(own.Bytes()[n:2*n], uint64(from)) || !holds(own.Bytes()[2*n:], uint64(second.Bytes()[4])) {
		t.Errorf("messages between segments arrived wrong")
	}
	r.free(w)
	r.end()
}

// Several windows exist side by side, and ranks free them in any order that all agree on; Close frees the last one.
func windowsSeveral(t testing.TB, tr comm.Transport) {
	const count = 4
	r := begin(t, tr)
	var windows []*comm.Window
	for i := range count {
		w := r.window(1000 + i)
		fill(w.Of(comm.Peer(r.me)).Bytes(), uint64(10*i+r.me))
		windows = append(windows, w)
	}
	r.barrier()
	for _, i := range []int{2, 0, 1} {
		for _, peer := range r.NodePeers() {
			if !holds(windows[i].Of(peer).Bytes(), uint64(10*i+int(peer))) {
				t.Errorf("window %d: the segment of rank %d holds something else", i, peer)
			}
		}
		r.free(windows[i])
	}
	again := r.window(500)
	for _, v := range again.Of(comm.Peer(r.me)).Bytes() {
		if v != 0 {
			t.Fatalf("a segment is not zeroed")
		}
	}
	if !holds(windows[3].Of(comm.Peer(r.me)).Bytes(), uint64(30+r.me)) {
		t.Errorf("freeing windows changed another one")
	}
	r.free(again)
	r.end()
}

// If one rank asks for more than there is, all ranks get the same error, and the world still works.
func windowTooLarge(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	n := 100
	if r.me == r.n-1 {
		n = 1 << 50
	}
	w, err := r.Shared(n)
	if w != nil || err == nil {
		t.Fatalf("a window of %d bytes was made", n)
	}
	in, out := r.alloc(1000*r.n), r.alloc(1000)
	length := copy(out.Bytes(), err.Error())
	for peer := range r.n {
		r.recv(comm.Peer(peer), comm.Ctl, 93, in, 1000*peer, 1000, func(d comm.Done) {
			r.must(d)
			if got := string(in.Bytes()[1000*peer : 1000*peer+d.N]); got != err.Error() {
				t.Errorf("rank %d got the error %q, this one %q", peer, got, err)
			}
		})
		r.send(peer, comm.Ctl, 93, out, 0, length, nil)
	}
	if !errors.Is(err, comm.ErrNoMemory) {
		t.Errorf("Shared: %v", err)
	}
	r.drain()
	r.free(r.window(8))
	r.end()
}

func aligned(p []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%64 == 0 }

func (r *rank) window(n int) *comm.Window {
	r.t.Helper()
	w, err := r.Shared(n)
	if err != nil {
		r.t.Fatalf("Shared(%d): %v", n, err)
	}
	return w
}

func (r *rank) free(w *comm.Window) {
	r.t.Helper()
	if err := w.Free(); err != nil {
		r.t.Fatalf("Free of a window: %v", err)
	}
}

func (r *rank) barrier() {
	r.t.Helper()
	if err := r.Barrier(); err != nil {
		r.t.Fatalf("Barrier: %v", err)
	}
}
