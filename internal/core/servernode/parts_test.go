package servernode

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// helpers is a dumb user of parts. Each iteration of each worker is cut into parts, of which any may be another
// worker's. Each sender sends its parts in order; otherwise the order is random. A slot of its server holds the names
// of the parts in it.
type helpers struct {
	t        *rapid.T
	r        *rand.Rand
	server   *Server
	workers  int
	slots    map[string][]string // by shard and slot
	unsent   [][]wire.Header     // by sender: pushes that it has not sent
	landing  []int               // by sender: pieces still missing of the push that is landing; -1: none is landing
	waitsFor []int64             // by worker: the iteration that it waits for
	pushed   map[string]int64    // samples that the scheme was told of, by worker and iteration
	want     map[string][]string // the parts of each iteration
	samples  map[string]int64
}

func iterationName(worker int32, iter int64) string { return fmt.Sprintf("w%d@%d", worker, iter) }

// cut makes the parts of an iteration. The owner always has one.
func (h *helpers) cut(owner int32, iter int64) {
	n := int32(1 + h.r.IntN(4))
	for part := range n {
		by := owner
		if part > 0 {
			by = int32(h.r.IntN(h.workers))
		}
		m := wire.Header{Kind: wire.Push, Worker: by, Owner: owner, Part: part, Parts: n, Iter: iter, Samples: int64(1 + h.r.IntN(9)), Loss: 1}
		h.unsent[by] = append(h.unsent[by], m)
		h.want[iterationName(owner, iter)] = append(h.want[iterationName(owner, iter)], fmt.Sprint(part))
		h.samples[iterationName(owner, iter)] += m.Samples
		if h.r.IntN(6) == 0 { // twice
			h.unsent[by] = append(h.unsent[by], m)
		}
	}
	h.waitsFor[owner] = iter + 1
}

func (h *helpers) step(in core.Input) {
	effects := h.server.Step(in, nil)
	if err := h.server.Check(); err != nil {
		h.t.Fatal(err)
	}
	for _, e := range effects {
		key := fmt.Sprint(e.Shard, "/", e.Slot)
		switch e.Kind {
		case core.Stage:
			if h.landing[e.To] >= 0 {
				h.t.Fatalf("two pushes of worker %d are landing", e.To)
			}
			h.landing[e.To], h.slots[key] = 2, nil
		case core.Merge:
			into := fmt.Sprint(e.Shard, "/", e.Dst)
			h.slots[into] = append(h.slots[into], h.slots[key]...)
			h.slots[key] = nil
		case core.Fold:
			if e.From == scheme.SlotPush {
				got := slices.Sorted(slices.Values(h.slots[key]))
				var want []string
				for _, part := range h.want[iterationName(e.Msg.Worker, e.Msg.Iter)] {
					want = append(want, iterationName(e.Msg.Worker, e.Msg.Iter)+"."+part)
				}
				if slices.Sort(want); !slices.Equal(got, want) || e.Msg.Parts != 1 || e.Msg.Owner != e.Msg.Worker {
					h.t.Fatalf("%v is folded of %v, want %v", e, got, want)
				}
			}
		case core.Reply:
			w := e.To
			if got := h.server.shards[e.Shard].peers[w].reached; got < h.waitsFor[w] {
				h.t.Fatalf("worker %d is answered for iteration %d, and has reached %d", w, h.waitsFor[w], got)
			}
			h.server.Step(core.Input{Kind: core.ReplySent, Shard: e.Shard, Buf: e.Src, Worker: w}, nil)
		}
	}
}

// send makes a sender send its next push, or lands a piece of the push that it has sent.
func (h *helpers) send(by int32) bool {
	switch {
	case h.landing[by] > 0:
		sh := h.server.shards[0]
		p := sh.peers[by].landing
		if h.landing[by]--; h.landing[by] == 0 {
			h.landing[by] = -1
			key := fmt.Sprint(0, "/", p.slot)
			h.slots[key] = []string{fmt.Sprintf("%s.%d", iterationName(p.head.Owner, p.head.Iter), p.head.Part)}
		}
		h.step(core.Input{Kind: core.PieceLanded, Worker: by, Slot: p.slot})
	case len(h.unsent[by]) > 0:
		m := h.unsent[by][0]
		h.unsent[by] = h.unsent[by][1:]
		h.step(core.Input{Kind: core.Arrived, Msg: m})
	default:
		return false
	}
	return true
}

// However iterations are cut, whichever workers compute their parts, and in whatever order these land, once or twice:
// the scheme is told of each iteration once, as one push of its owner with all samples; all of its parts are folded;
// and no worker is answered before that.
func TestPartsBecomeOnePush(t *testing.T) {
	for _, name := range []string{"bsp", "asp", "ssp"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { partsBecomeOnePush(t, name) })
		})
	}
}

func partsBecomeOnePush(t *rapid.T, name string) {
	workers := rapid.IntRange(1, 5).Draw(t, "workers")
	h := &helpers{t: t, r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), workers: workers,
		slots: map[string][]string{}, unsent: make([][]wire.Header, workers),
		landing: slices.Repeat([]int{-1}, workers), waitsFor: make([]int64, workers), pushed: map[string]int64{},
		want: map[string][]string{}, samples: map[string]int64{}}
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 2}, {Name: "b", Layer: 1, N: 2}},
		shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	h.server = newPartsServer(t, plan, workers, name, h)
	const iterations = 4
	for w := range int32(workers) {
		h.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Worker: w}})
	}
	next := make([]int64, workers)
	for moved := true; moved; {
		moved = false
		for _, w := range h.r.Perm(workers) {
			w := int32(w)
			if sh := h.server.shards[0]; next[w] < iterations && !sh.peers[w].pullHeld && !sh.peers[w].pullPending &&
				sh.peers[w].reached == next[w] {
				h.cut(w, next[w])
				next[w]++
				h.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Worker: w, Iter: next[w]}})
				moved = true
			}
			moved = h.send(w) || moved
		}
	}
	for w := range int32(workers) {
		for iter := range int64(iterations) {
			if key := iterationName(w, iter); h.pushed[key] != h.samples[key] || h.samples[key] == 0 {
				t.Fatalf("of %s the scheme heard of %d samples, want %d; heard of %s", key, h.pushed[key], h.samples[key],
					strings.Join(slices.Sorted(maps.Keys(h.pushed)), " "))
			}
		}
	}
}

func newPartsServer(t *rapid.T, plan *shard.Plan, workers int, name string, h *helpers) *Server {
	r := rule{name: name}
	if name == "ssp" {
		r.params = &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}
	}
	return New(Config{Plan: plan, Workers: workers, Parts: 4,
		Schemes: map[int32]inturn.ShardScheme{0: mustScheme(r, []int32{0}, 0, workers, false)},
		Decided: func(ev scheme.Event, _ []scheme.Decision) { h.heard(t, ev) }})
}

func (h *helpers) heard(t *rapid.T, ev scheme.Event) {
	if ev.Kind != scheme.Pushed {
		return
	}
	key := iterationName(ev.Worker, ev.Iter)
	if _, twice := h.pushed[key]; twice || ev.Parts != 1 || ev.Owner != ev.Worker {
		t.Fatalf("the scheme hears %v, of %d parts, for worker %d; twice: %v", ev, ev.Parts, ev.Owner, twice)
	}
	h.pushed[key] = ev.Samples
}

// When a worker leaves, the landed parts of its iterations are dropped, and so are parts that others send for it
// afterwards. No slot is lost.
func TestPartsOfAWorkerThatHasLeft(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Plan: plan, Workers: 3, Parts: 3,
		Schemes: map[int32]inturn.ShardScheme{0: mustScheme(rule{name: "asp"}, []int32{0}, 0, 3, false)}})
	sh := s.shards[0]
	land := func(by, part int32) {
		s.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: by, Owner: 2, Part: part, Parts: 3, Samples: 1}}, nil)
		if p := sh.peers[by].landing; p != nil {
			s.Step(core.Input{Kind: core.PieceLanded, Worker: by, Slot: p.slot}, nil)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	land(2, 0)
	land(0, 1)
	if len(sh.peers[2].parts) != 1 || len(sh.slots.free) != 1 {
		t.Fatalf("%d iterations in parts, %d slots free", len(sh.peers[2].parts), len(sh.slots.free))
	}
	s.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Left, Worker: 2}}, nil)
	land(1, 2)
	if len(sh.peers[2].parts) != 0 || int32(len(sh.slots.free)) != sh.slots.used || sh.stats.Dropped != 2 || sh.versions.version != 0 {
		t.Errorf("%d iterations in parts, %d of %d slots free, %d dropped, version %d", len(sh.peers[2].parts),
			len(sh.slots.free), sh.slots.used, sh.stats.Dropped, sh.versions.version)
	}
}

// A server that was made without parts accepts none; one that was made for parts refuses shared memory.
func TestPartsAreRefused(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	schemes := map[int32]inturn.ShardScheme{0: mustScheme(rule{name: "bsp"}, []int32{0}, 0, 2, false)}
	for what, do := range map[string]func(){
		"a part": func() {
			s := New(Config{Plan: plan, Workers: 2, Schemes: schemes})
			s.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: 1, Owner: 0, Parts: 1}}, nil)
		},
		"shared memory": func() {
			New(Config{Plan: plan, Workers: 2, Schemes: schemes, Parts: 2, Near: func(int32, int32) bool { return true }})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", what)
				}
			}()
			do()
		}()
	}
}

// A worker may begin its next iteration before all parts of the last one are there: the scheme is still told of them in
// order.
func TestPartsOfTwoIterations(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range [][][3]int64{ // sender, part and iteration, of worker 0
		{{0, 0, 0}, {0, 0, 1}, {1, 1, 1}, {1, 1, 0}},
		{{1, 1, 1}, {0, 0, 0}, {0, 0, 1}, {1, 1, 0}},
		{{0, 0, 0}, {1, 1, 0}, {1, 1, 1}, {0, 0, 1}},
	} {
		var heard []int64
		s := New(Config{Plan: plan, Workers: 2, Parts: 2,
			Schemes: map[int32]inturn.ShardScheme{0: mustScheme(rule{name: "asp"}, []int32{0}, 0, 2, false)},
			Decided: func(ev scheme.Event, _ []scheme.Decision) {
				if ev.Kind == scheme.Pushed {
					heard = append(heard, ev.Iter)
				}
			}})
		for _, m := range order {
			by := int32(m[0])
			s.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: by, Part: int32(m[1]), Parts: 2, Iter: m[2],
				Samples: 1}}, nil)
			s.Step(core.Input{Kind: core.PieceLanded, Worker: by, Slot: s.shards[0].peers[by].landing.slot}, nil)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(heard, []int64{0, 1}) {
			t.Errorf("landed %v: the scheme heard of iterations %v", order, heard)
		}
	}
}

// The Save flag of any part is one of the whole. What the owner says of itself is what the whole says, whichever part
// lands first.
func TestTheWholeCombinesItsParts(t *testing.T) {
	for _, order := range [][]int32{{0, 1}, {1, 0}} {
		plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}},
			shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		s := New(Config{Plan: plan, Workers: 2, Parts: 2,
			Schemes: map[int32]inturn.ShardScheme{0: mustScheme(rule{name: "bsp"}, []int32{0}, 0, 2, false)}})
		for _, part := range order { // part 0 is the owner's, part 1 is worker 1's
			m := wire.Header{Kind: wire.Push, Worker: part, Part: part, Parts: 2, Samples: 1, Clock: 7, Version: 5, Blocked: 9}
			if part == 0 {
				m.Flags, m.Clock, m.Version, m.Blocked = wire.Save, 3, 6, 4
			}
			s.Step(core.Input{Kind: core.Arrived, Msg: m}, nil)
			s.Step(core.Input{Kind: core.PieceLanded, Worker: part, Slot: s.shards[0].peers[part].landing.slot}, nil)
		}
		if h := s.shards[0].peers[0].staged.head; h.Flags != wire.Save || h.Clock != 3 || h.Version != 5 || h.Blocked != 4 || h.Samples != 2 {
			t.Errorf("landed %v: the whole is %+v", order, h)
		}
	}
}
