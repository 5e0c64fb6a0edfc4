package commtest

import (
	"encoding/binary"
	"errors"
	"testing"

	"fluentps/internal/comm"
)

// Order returns the cases about which message meets which receive, and when handlers run.
func Order() []Case {
	return []Case{
		{"order per source and tag", orderPerStream},
		{"order on a ring of AnyPeer receives", orderOnRing},
		{"order of a long message before a short one", orderLongShort},
		{"unexpected before posted", unexpected},
		{"order on a ring with cancelled receives", orderPastCancelled},
		{"channels do not mix", channelsApart},
		{"AnyPeer starves no rank", fairness},
		{"handlers do not run inside submit", handlersLater},
		{"chained ping-pong", pingPong},
	}
}

// Every rank sends numbered messages to every rank, itself included, on both channels and two tags.
func orderPerStream(t testing.TB, tr comm.Transport) {
	const count = 40
	r := begin(t, tr)
	for ch := comm.Ctl; ch < comm.Chans; ch++ {
		for tag := uint32(5); tag < 7; tag++ {
			for peer := range r.n {
				out, in := r.alloc(8*count), r.alloc(8*count)
				next := 0
				for i := range count {
					binary.LittleEndian.PutUint64(out.Bytes()[8*i:], uint64(i))
					r.recv(comm.Peer(peer), ch, tag, in, 8*i, 8, func(d comm.Done) {
						r.must(d)
						if got := binary.LittleEndian.Uint64(in.Bytes()[8*i:]); got != uint64(i) || i != next {
							t.Errorf("channel %d, tag %d, from %d: receive %d was handled at place %d with message %d", ch, tag, peer, i, next, got)
						}
						next++
					})
					r.send(peer, ch, tag, out, 8*i, 8, nil)
				}
			}
		}
	}
	r.end()
}

// A server listens like this: few receives from AnyPeer, posted again before the message is handled. The numbers of
// each source must arrive in order.
func orderOnRing(t testing.TB, tr comm.Transport) {
	const count, ring = 300, 8
	r := begin(t, tr)
	next := make([]uint64, r.n)
	left := count * r.n
	slots := r.alloc(ring * comm.CtlMax)
	var listen func(slot int)
	listen = func(slot int) {
		r.recv(comm.AnyPeer, comm.Ctl, 1, slots, slot*comm.CtlMax, comm.CtlMax, func(d comm.Done) {
			r.must(d)
			got := binary.LittleEndian.Uint64(slots.Bytes()[slot*comm.CtlMax:])
			if got != next[d.Peer] || d.N != 8+int(got)%100 {
				t.Errorf("message %d of %d bytes from %d, want number %d", got, d.N, d.Peer, next[d.Peer])
			}
			next[d.Peer]++
			if left--; left >= ring {
				listen(slot)
			}
		})
	}
	for slot := range min(ring, left) {
		listen(slot)
	}
	out := r.alloc(count * 128)
	for i := range count {
		binary.LittleEndian.PutUint64(out.Bytes()[128*i:], uint64(i))
		for peer := range r.n {
			r.send((r.me+peer)%r.n, comm.Ctl, 1, out, 128*i, 8+i%100, nil)
		}
	}
	r.end()
}

// Receives cancelled in the middle of a ring, before and while messages arrive, take none of them: the remaining
// receives see every message, in order. Receives posted after cancelled ones take part.
func orderPastCancelled(t testing.TB, tr comm.Transport) {
	const ring, keep, extra = 24, 12, 6
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	in, out := r.alloc(8*(ring+extra)), r.alloc(8*(keep+extra))
	next, cancelled := uint64(0), 0
	listen := func(i int) comm.Op {
		return r.recv(comm.Peer(from), comm.Ctl, 11, in, 8*i, 8, func(d comm.Done) {
			if errors.Is(d.Err, comm.ErrCancelled) {
				cancelled++
				return
			}
			if got := binary.LittleEndian.Uint64(in.Bytes()[8*i:]); d.Err != nil || got != next {
				t.Errorf("receive %d completed with %+v and message %d, want message %d", i, d, got, next)
			}
			next++
		})
	}
	var ops []comm.Op
	for i := range ring {
		ops = append(ops, listen(i))
	}
	for i := 1; i < ring; i += 2 { // every second one, from the last on
		r.Cancel(ops[ring-i])
	}
	for i := range extra {
		listen(ring + i)
	}
	r.drive(func() bool { return cancelled == ring-keep })
	if err := r.Barrier(); err != nil { // before the barrier a message might have met a receive to be cancelled
		t.Fatalf("Barrier: %v", err)
	}
	for i := range keep + extra {
		binary.LittleEndian.PutUint64(out.Bytes()[8*i:], uint64(i))
		r.send(to, comm.Ctl, 11, out, 8*i, 8, nil)
	}
	r.drain()
	if next != keep+extra {
		t.Errorf("%d of %d messages arrived", next, keep+extra)
	}
	r.end()
}

// A long message takes longer than the short one sent after it, yet is handled first.
func orderLongShort(t testing.TB, tr comm.Transport) {
	const long = 1 << 20
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	out, in := r.alloc(long+4), r.alloc(long+4)
	fill(out.Bytes(), uint64(r.me))
	var seen []int
	r.recv(comm.Peer(from), comm.Data, 9, in, 0, long, func(d comm.Done) { r.must(d); seen = append(seen, d.N) })
	r.recv(comm.Peer(from), comm.Data, 9, in, long, 4, func(d comm.Done) { r.must(d); seen = append(seen, d.N) })
	r.send(to, comm.Data, 9, out, 0, long, nil)
	r.send(to, comm.Data, 9, out, long, 4, nil)
	r.drain()
	if len(seen) != 2 || seen[0] != long || seen[1] != 4 || !holds(in.Bytes(), uint64(from)) {
		t.Errorf("lengths %v, want %d then 4", seen, long)
	}
	r.end()
}

// Messages that arrive before their receives are posted wait for them, short and long, in order.
func unexpected(t testing.TB, tr comm.Transport) {
	sizes := []int{1, 2000, comm.CtlMax, comm.CtlMax + 1, 16_000, 70_000, 300_000}
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	var in []*comm.Buf
	for i, n := range sizes {
		out := r.alloc(n)
		in = append(in, r.alloc(n))
		fill(out.Bytes(), uint64(r.me*100+i))
		r.send(to, comm.Data, 3, out, 0, n, nil)
	}
	if err := r.Barrier(); err != nil {
		t.Fatalf("Barrier: %v", err)
	}
	for range 100 {
		r.Tick()
	}
	for i, n := range sizes {
		r.recv(comm.Peer(from), comm.Data, 3, in[i], 0, n, func(d comm.Done) {
			if r.must(d); d.N != n || !holds(in[i].Bytes(), uint64(from*100+i)) {
				t.Errorf("message %d: %d bytes of %d, or the wrong ones", i, d.N, n)
			}
		})
	}
	r.end()
}

// The same tag on both channels: each receive gets its own channel's message.
func channelsApart(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	out, in := r.alloc(2), r.alloc(2)
	copy(out.Bytes(), "DC")
	r.send(to, comm.Data, 4, out, 0, 1, nil)
	r.send(to, comm.Ctl, 4, out, 1, 1, nil)
	r.recv(comm.Peer(from), comm.Ctl, 4, in, 1, 1, r.must)
	r.recv(comm.AnyPeer, comm.Data, 4, in, 0, 1, r.must)
	r.drain()
	if got := string(in.Bytes()); got != "DC" {
		t.Errorf("received %q, want DC", got)
	}
	r.end()
}

// All other ranks flood rank 0, four messages each, the next as soon as one is answered, until rank 0 has the first
// four of every rank. If one source starves, the rest of the flood exceeds the bound. The first four are sent before
// rank 0 listens, so that none is late because its sender had no core for a while.
func fairness(t testing.TB, tr comm.Transport) {
	const rounds, tooMany, window = 5, 60_000, 4
	r := begin(t, tr)
	in, out := r.alloc(window), r.alloc(window)
	for i := range window {
		out.Bytes()[i] = byte(i)
	}
	for range rounds {
		if r.me == 0 {
			r.meet()
			answerFlood(r, tooMany, window)
		} else {
			flood(r, in, out, window)
		}
		r.drain()
		r.meet()
	}
	r.end()
}

// flood sends a message per slot, meets the others, and repeats a message while its answer says so.
func flood(r *rank, in, out *comm.Buf, window int) {
	for i := range window {
		var again func()
		again = func() {
			r.recv(0, comm.Ctl, uint32(10+i), in, i, 1, func(d comm.Done) {
				if r.must(d); in.Bytes()[i] == 0 {
					again()
				}
			})
			r.send(0, comm.Ctl, 2, out, i, 1, nil)
		}
		again()
	}
	for range 1000 { // for transports that hold messages back for a number of rounds
		r.Tick()
	}
	r.meet()
}

// answerFlood tells each flooder to continue (0) or to stop (1); then it cancels its remaining receives.
func answerFlood(r *rank, tooMany, window int) {
	in, out := r.alloc(2*window), r.alloc(2)
	out.Bytes()[1] = 1 // short: sources seen fewer than window times
	seen := make([]int, r.n)
	total, short, stopped := 0, r.n-1, 0 // short: sources seen less than window times
	posted := make([]comm.Op, 2*window)
	var listen func(slot int)
	listen = func(slot int) {
		posted[slot] = r.recv(comm.AnyPeer, comm.Ctl, 2, in, slot, 1, func(d comm.Done) {
			if errors.Is(d.Err, comm.ErrCancelled) {
				return
			}
			r.must(d)
			total++
			if seen[d.Peer]++; seen[d.Peer] == window {
				short--
			}
			answer := 0
			if short == 0 || total > tooMany {
				answer = 1
				stopped++
			}
			r.send(int(d.Peer), comm.Ctl, 10+uint32(in.Bytes()[slot]), out, answer, 1, nil)
			listen(slot)
		})
	}
	for slot := range posted {
		listen(slot)
	}
	r.drive(func() bool { return stopped == (r.n-1)*window })
	for _, op := range posted {
		r.Cancel(op)
	}
	if short > 0 {
		r.t.Errorf("after %d messages rank 0 has seen %v of its peers, want %d of each other", total, seen, window)
	}
}

// An operation that could complete at once still completes only when the rank drives.
func handlersLater(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	out, in := r.alloc(8), r.alloc(8)
	submitting := true
	late := func() {
		if submitting {
			t.Errorf("a handler ran inside Isend, Irecv or Cancel")
		}
	}
	r.send(r.me, comm.Data, 1, out, 0, 8, late)
	r.recv(comm.Peer(r.me), comm.Data, 1, in, 0, 8, func(comm.Done) { late() })
	r.Cancel(r.recv(comm.AnyPeer, comm.Data, 2, in, 0, 8, func(comm.Done) { late() }))
	submitting = false
	r.end()
}

// Handlers submit: a token goes round the ring many times, passed on by handlers alone.
func pingPong(t testing.TB, tr comm.Transport) {
	const laps = 100
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	token := r.alloc(8)
	pass := func() {
		binary.LittleEndian.PutUint64(token.Bytes(), binary.LittleEndian.Uint64(token.Bytes())+1)
		r.send(to, comm.Ctl, 6, token, 0, 8, nil)
	}
	lap := 0
	var wait func()
	wait = func() {
		r.recv(comm.Peer(from), comm.Ctl, 6, token, 0, 8, func(d comm.Done) {
			r.must(d)
			want := uint64(lap*r.n + r.me)
			if r.me == 0 {
				want = uint64((lap + 1) * r.n)
			}
			if got := binary.LittleEndian.Uint64(token.Bytes()); got != want {
				t.Errorf("lap %d: token is %d, want %d", lap, got, want)
			}
			if lap++; lap < laps {
				wait()
			}
			if r.me != 0 || lap < laps {
				pass()
			}
		})
	}
	wait()
	if r.me == 0 {
		pass()
	}
	r.end()
}
