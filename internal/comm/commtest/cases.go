package commtest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"fluentps/internal/comm"
)

// All returns every case that a Transport must pass.
func All() []Case {
	return append(Order(), []Case{
		{"truncation", truncation},
		{"cancel", cancel},
		{"empty messages", empty},
		{"buffers intact", intact},
		{"64 MiB", large},
		{"ten thousand short messages", manyShort},
		{"random all-to-all", allToAll},
		{"post wakes", postWakes},
		{"barrier waits for all", barrier},
		{"one clock", oneClock},
		{"the clock again", clockAgain},
		{"ranks of the host", hostRanks},
		{"writes to windows are visible", windowVisible},
		{"messages between windows", windowMessages},
		{"several windows", windowsSeveral},
		{"a window too large", windowTooLarge},
	}...)
}

// A message longer than its receive fails that receive only; the send completes, the next message
// is received.
func truncation(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	for i, n := range []int{100, comm.CtlMax, 100_000, 3 << 20} {
		tag := uint32(20 + i)
		out, in := r.alloc(n), r.alloc(n)
		fill(out.Bytes(), uint64(r.me))
		r.recv(comm.Peer(from), comm.Data, tag, in, 0, n/2, func(d comm.Done) {
			if !errors.Is(d.Err, comm.ErrTruncated) || int(d.Peer) != from || d.N != 0 {
				t.Errorf("%d bytes into %d completed with %+v", n, n/2, d)
			}
			// The contract demands this of short messages only.
			if n <= comm.CtlMax && in.Bytes()[n/2] != 0 {
				t.Errorf("%d bytes into %d: the byte behind was written", n, n/2)
			}
		})
		r.send(to, comm.Data, tag, out, 0, n, nil)
		r.drain()
		r.recv(comm.Peer(from), comm.Data, tag, in, 0, n, func(d comm.Done) {
			if r.must(d); d.N != n || !holds(in.Bytes(), uint64(from)) {
				t.Errorf("%d bytes after a truncated message: %+v or the wrong bytes", n, d)
			}
		})
		r.send(to, comm.Data, tag, out, 0, n, nil)
		r.drain()
	}
	r.end()
}

// A cancelled receive completes with ErrCancelled and takes no message; cancelling a send or a completed operation
// changes nothing.
func cancel(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	out, in := r.alloc(8), r.alloc(16)
	copy(out.Bytes(), "message.")
	for _, source := range []comm.Peer{comm.Peer(from), comm.AnyPeer} {
		for victim := range 2 {
			var errs [2]error
			var ops [2]comm.Op
			for i := range ops {
				ops[i] = r.recv(source, comm.Data, 30, in, 8*i, 8, func(d comm.Done) { errs[i] = d.Err })
			}
			r.Cancel(ops[victim])
			r.drive(func() bool { return errs[victim] != nil })
			if err := r.Barrier(); err != nil { // before the barrier a message might have met the victim
				t.Fatalf("Barrier: %v", err)
			}
			r.open++
			r.Cancel(r.Isend(comm.Peer(to), comm.Data, 30, out, 0, 8, func(d comm.Done) { r.must(d); r.open-- }))
			r.drain()
			r.Cancel(ops[0])
			r.Cancel(ops[1])
			other := 1 - victim
			if !errors.Is(errs[victim], comm.ErrCancelled) || errs[other] != nil {
				t.Errorf("cancelled %d of two receives, they completed with %v", victim, errs)
			}
			if got := string(in.Bytes()[8*other : 8*other+8]); got != "message." {
				t.Errorf("the other receive holds %q", got)
			}
			clear(in.Bytes())
		}
	}
	r.end()
}

func empty(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	in := r.alloc(8)
	for peer := range r.n {
		for ch := comm.Ctl; ch < comm.Chans; ch++ {
			zero := func(d comm.Done) {
				if r.must(d); d.N != 0 {
					t.Errorf("empty message has %d bytes", d.N)
				}
			}
			r.recv(comm.Peer(peer), ch, 40, nil, 0, 0, zero)
			r.recv(comm.Peer(peer), ch, 41, in, 0, 8, zero)
			r.send(peer, ch, 40, in, 8, 0, nil)
			r.send(peer, ch, 41, nil, 0, 0, nil)
		}
	}
	r.end()
}

// Only the bytes asked for are sent, only these are written, and the sender's buffer stays as it was; two sends and a
// reply may share one buffer.
func intact(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	for i, n := range []int{8, 2048, comm.CtlMax, 1 << 20} {
		out, in := r.alloc(n+200), r.alloc(2*n+300)
		fill(out.Bytes(), uint64(r.me+1000))
		fill(in.Bytes(), 7)
		want := append([]byte(nil), in.Bytes()...)
		theirs := make([]byte, n+200)
		fill(theirs, uint64(from+1000))
		copy(want[100:], theirs[100:100+n])
		copy(want[200+n:], theirs[100:100+n])
		r.recv(comm.Peer(from), comm.Data, uint32(50+i), in, 100, n, r.must)
		r.recv(comm.Peer(from), comm.Data, uint32(50+i), in, 200+n, n, r.must)
		r.send(to, comm.Data, uint32(50+i), out, 100, n, nil)
		r.send(to, comm.Data, uint32(50+i), out, 100, n, nil)
		r.drain()
		if string(in.Bytes()) != string(want) {
			t.Errorf("%d bytes: the receiver's buffer differs", n)
		}
		if !holds(out.Bytes(), uint64(r.me+1000)) {
			t.Errorf("%d bytes: the sender's buffer changed", n)
		}
	}
	r.end()
}

// The longest message, from the last rank to the first.
func large(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	if r.me == r.n-1 {
		out := r.alloc(comm.MessageMax)
		fill(out.Bytes(), 64)
		r.send(0, comm.Data, 60, out, 0, comm.MessageMax, nil)
	}
	if r.me == 0 {
		in := r.alloc(comm.MessageMax)
		r.recv(comm.Peer(r.n-1), comm.Data, 60, in, 0, comm.MessageMax, func(d comm.Done) {
			if r.must(d); d.N != comm.MessageMax || !holds(in.Bytes(), 64) {
				t.Errorf("%d bytes arrived, or the wrong ones", d.N)
			}
		})
	}
	r.end()
}

// Ten thousand messages in the world, sent without waiting for the receiver; each rank has at most 64 in flight.
func manyShort(t testing.TB, tr comm.Transport) {
	const window, size = 64, 64
	r := begin(t, tr)
	count := 10_000 / r.n
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	out, in := r.alloc(window*size), r.alloc(window*size)
	sent, posted, got := 0, 0, 0
	var send func(slot int)
	send = func(slot int) {
		if sent < count {
			binary.LittleEndian.PutUint64(out.Bytes()[slot*size:], uint64(sent))
			sent++
			r.send(to, comm.Ctl, 70, out, slot*size, size, func() { send(slot) })
		}
	}
	var recv func(slot int)
	recv = func(slot int) {
		if posted < count {
			posted++
			r.recv(comm.Peer(from), comm.Ctl, 70, in, slot*size, size, func(d comm.Done) {
				r.must(d)
				if v := binary.LittleEndian.Uint64(in.Bytes()[slot*size:]); v != uint64(got) {
					t.Errorf("message %d holds %d", got, v)
				}
				got++
				recv(slot)
			})
		}
	}
	for slot := range window {
		send(slot)
		recv(slot)
	}
	r.drain()
	if got != count {
		t.Errorf("%d of %d messages arrived", got, count)
	}
	r.end()
}

// Random traffic that all ranks derive from one seed: sizes, channels, order of posting, receives posted before or
// after the send. Every message is checked byte for byte.
func allToAll(t testing.TB, tr comm.Transport) {
	const rounds, perRound = 4, 60
	sizes := []int{0, 1, 8, 80, 1000, 2048, 4096, comm.CtlMax, comm.CtlMax + 1, 20_000, 66_000, 300_000}
	r := begin(t, tr)
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 42)) // the same on all ranks
		mine := rand.New(rand.NewPCG(uint64(round), uint64(r.me)))
		var steps []func()
		for i := range perRound {
			src, dst, n := rng.IntN(r.n), rng.IntN(r.n), sizes[rng.IntN(len(sizes))]
			ch, seed, tag := comm.Data, uint64(round*1000+i), uint32(100+i)
			if n <= comm.CtlMax && rng.IntN(2) == 0 {
				ch = comm.Ctl
			}
			if src == r.me {
				out := r.alloc(n)
				fill(out.Bytes(), seed)
				steps = append(steps, func() { r.send(dst, ch, tag, out, 0, n, nil) })
			}
			if dst == r.me {
				in, from := r.alloc(n), comm.Peer(src)
				if mine.IntN(3) == 0 {
					from = comm.AnyPeer
				}
				steps = append(steps, func() {
					r.recv(from, ch, tag, in, 0, n, func(d comm.Done) {
						if r.must(d); int(d.Peer) != src || d.N != n || !holds(in.Bytes(), seed) {
							t.Errorf("round %d, message %d of %d bytes from %d: %+v or the wrong bytes", round, i, n, src, d)
						}
					})
				})
			}
		}
		for _, i := range mine.Perm(len(steps)) {
			steps[i]()
			if mine.IntN(4) == 0 {
				r.Tick()
			}
		}
		r.drain() // the next round uses the same tags
		if err := r.Barrier(); err != nil {
			t.Fatalf("Barrier: %v", err)
		}
	}
	r.end()
}

// Post from another goroutine reaches a rank that sleeps in Drive, and runs on the driver.
func postWakes(t testing.TB, tr comm.Transport) {
	const posters, each = 3, 50
	r := begin(t, tr)
	ran := 0 // no lock: only the driver touches it, which -race checks
	var wg sync.WaitGroup
	for range posters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				if i%10 == 0 {
					time.Sleep(2 * time.Millisecond) // let the driver fall asleep
				}
				tr.Post(func() { ran++ })
			}
		}()
	}
	r.drive(func() bool { return ran == posters*each })
	wg.Wait()
	r.end()
}

// No rank leaves the barrier before all have entered: messages sent before it are in flight, and the counts of entries
// that ranks exchange agree.
func barrier(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	in, out := r.alloc(r.n), r.alloc(1)
	for round := range 5 {
		entered := 0
		for peer := range r.n {
			r.recv(comm.Peer(peer), comm.Ctl, 80, in, peer, 1, func(d comm.Done) {
				if r.must(d); in.Bytes()[peer] != byte(round) {
					t.Errorf("round %d: rank %d is in round %d", round, peer, in.Bytes()[peer])
				}
				entered++
			})
		}
		if r.me == round%r.n {
			time.Sleep(3 * time.Millisecond)
		}
		before := r.Now()
		out.Bytes()[0] = byte(round)
		for peer := range r.n {
			r.send(peer, comm.Ctl, 80, out, 0, 1, nil)
		}
		if err := r.Barrier(); err != nil {
			t.Fatalf("Barrier: %v", err)
		}
		if r.Now() < before {
			t.Errorf("round %d: time went back", round)
		}
		r.drive(func() bool { return entered == r.n && r.open == 0 })
	}
	r.end()
}

// A message is not received before it was sent, by the one clock of all ranks.
func oneClock(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	for range 20 {
		in, out := r.alloc(8*r.n), r.alloc(8)
		binary.LittleEndian.PutUint64(out.Bytes(), uint64(r.Now()))
		for peer := range r.n {
			r.recv(comm.Peer(peer), comm.Ctl, 90, in, 8*peer, 8, func(d comm.Done) {
				sent := time.Duration(binary.LittleEndian.Uint64(in.Bytes()[8*peer:]))
				if now := r.Now(); now < sent || sent < 0 {
					t.Errorf("received at %v a message that rank %d sent at %v", now, peer, sent)
				}
			})
			r.send(peer, comm.Ctl, 90, out, 0, 8, nil)
		}
		r.drain()
	}
	r.end()
}

// Measured again, beside a receive like a server's, the clock shows no drift on one host, and does not go back.
func clockAgain(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	to, from := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	in, out := r.alloc(8), r.alloc(8)
	copy(out.Bytes(), "message.")
	r.recv(comm.AnyPeer, comm.Ctl, 0, in, 0, 8, func(d comm.Done) {
		if r.must(d); int(d.Peer) != from || string(in.Bytes()) != "message." {
			t.Errorf("the receive beside SyncClock met %q of rank %d", in.Bytes(), d.Peer)
		}
	})
	for range 2 {
		before := r.Now()
		drift, err := r.SyncClock()
		if after := r.Now(); err != nil || drift != 0 || after < before {
			t.Errorf("SyncClock: drift %v, error %v, the clock went from %v to %v", drift, err, before, after)
		}
	}
	r.send(to, comm.Ctl, 0, out, 0, 8, nil)
	r.end()
}

// Ranks of a host are numbered without gaps, in order.
func hostRanks(t testing.TB, tr comm.Transport) {
	r := begin(t, tr)
	me, n := r.NodeRank()
	peers := r.NodePeers()
	if me < 0 || me >= n || len(peers) != n || int(peers[me]) != r.me || !slices.IsSorted(peers) || int(peers[n-1]) >= r.n {
		t.Errorf("NodeRank %d of %d in a world of %d, with peers %v", me, n, r.n, peers)
	}
	r.end()
}
