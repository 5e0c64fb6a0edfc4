package core

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// earlyDriver computes layer by layer: each layer is read as soon as the worker says that it may be, in any order, and
// written as soon as the worker says so. It records what kernels read and what is in flight, and reports an overwrite
// of either.
type earlyDriver struct {
	phases func(rule int) []scheme.Phase
	skips  bool // some shard may send workers past iterations
	mem    map[*Worker]*arenas

	starts int // iterations that started before the exchange was over
}

// arenas is the state of a worker's arenas, piece by piece.
type arenas struct {
	reading []bool
	grads   []gradient
	unread  int
}

type gradient struct {
	iter     int64
	unsent   bool // written and not sent
	inFlight bool
}

// lowest releases one piece at a time, the lowest first: it holds back the pieces that the next forward needs last.
type lowest struct {
	held   []int32
	flying bool
}

func (l *lowest) Step(ev send.Event, out []int32) []int32 {
	if ev.Kind == send.Handed {
		l.held = append(l.held, ev.Piece)
		slices.Sort(l.held)
	} else if ev.Kind == send.Sent {
		l.flying = false
	}
	if ev.Kind != send.Started && !l.flying && len(l.held) > 0 {
		out = append(out, l.held[0])
		l.held, l.flying = l.held[1:], true
	}
	return out
}

func (l *lowest) Held() int { return len(l.held) }

func (l *lowest) String() string { return fmt.Sprintf("lowest held=%d", len(l.held)) }

// startEarly makes the workers of a cluster start iterations as early as they may.
func (c *cluster) startEarly(rules []rule, policy func() send.Policy) *earlyDriver {
	d := &earlyDriver{phases: func(i int) []scheme.Phase { return rules[i].phases() }, mem: map[*Worker]*arenas{}}
	for _, r := range rules {
		d.skips = d.skips || MaySkip(r.phases())
	}
	c.early = d
	for w := range c.workers {
		c.workers[w] = c.prepared(NewWorker(int32(w), c.plan, policy(), 0))
	}
	return d
}

func (d *earlyDriver) prepare(w *Worker) {
	w.StartEarly(func(rule int) bool { return MaySkip(d.phases(rule)) })
	d.mem[w] = &arenas{reading: make([]bool, len(w.plan.Pieces)), grads: make([]gradient, len(w.plan.Pieces))}
}

// compute runs an iteration: all layers are read, then written from the last to the first.
func (d *earlyDriver) compute(c *cluster, w *Worker, name string, iter int64) error {
	if !w.Readable(0) {
		return fmt.Errorf("iteration %d starts before layer 0 is there", iter)
	}
	if w.state != Computing {
		d.starts++
	}
	layers := 0
	for _, p := range c.plan.Pieces {
		layers = max(layers, int(p.Layer)+1)
	}
	m := d.mem[w]
	m.unread = layers
	// a dead worker's kernels have no effect
	add := func(line string, node Node, in Input, when func() bool, then func()) {
		dead := func() bool { return slices.Contains(c.dead, w) }
		c.add(pending{line: line, node: node, name: name, in: in, when: func() bool { return dead() || when() }, then: func() {
			if !dead() {
				then()
			}
		}})
	}
	for l := range layers {
		add(fmt.Sprintf("read %s %d", name, l), deadNode{}, Input{}, func() bool { return w.Readable(l) }, func() {
			m.unread--
			c.fail(d.read(c, w, l, iter))
		})
	}
	always := func() bool { return true }
	line := "compute " + name
	add(line, w, Input{Kind: Forwarded, Msg: wire.Header{Samples: 10}}, func() bool { return m.unread == 0 }, func() {})
	for l := range layers {
		l = layers - 1 - l
		add(line, deadNode{}, Input{}, func() bool { return w.Writable(l) }, func() { c.fail(d.writeGradients(w, l, iter)) })
		for _, p := range c.plan.Pieces {
			if int(p.Layer) == l {
				add(line, w, Input{Kind: PieceReady, Piece: p.ID}, always, func() { m.reading[p.ID] = false })
			}
		}
	}
	add(line, w, Input{Kind: TaskDone}, always, func() {})
	return nil
}

func (c *cluster) fail(err error) {
	if c.problem == nil {
		c.problem = err
	}
}

// read begins a kernel's read of a layer. It checks that all of the layer came with the last reply of its shard, or is
// the copy that it should be, and is within the bound.
func (d *earlyDriver) read(c *cluster, w *Worker, layer int, iter int64) error {
	for i := range c.plan.Pieces {
		p := &c.plan.Pieces[i]
		if int(p.Layer) != layer {
			continue
		}
		d.mem[w].reading[i] = true
		if back := slices.ContainsFunc(c.workers, func(w *Worker) bool { return w.life > 0 }); !back { // its last push may be lost
			if err := c.readOfCopy(w, p.ID, iter); err != nil {
				return err
			}
		}
		ph := d.phases(c.plan.Shards[p.Shard].Rule)
		e, _ := scheme.All.Lookup(ph[0].Scheme)
		if e.CopiesOf(ph[0].Params) == scheme.Pulled {
			seen := c.replyContents[[2]int32{p.Shard, w.me}]
			if got := c.arena[[2]int32{w.me, p.ID}]; got != seen[len(seen)-1] {
				return fmt.Errorf("w%d reads %q of piece %d in iteration %d, and was answered with %q", w.me, got, i, iter, seen[len(seen)-1])
			}
		}
		if bound, ok := e.LeadMax(ph[0].Params); ok && !d.skips && len(c.dead) == 0 && iter-w.shards[p.Shard].clock > bound {
			return fmt.Errorf("w%d reads piece %d in iteration %d at a lead of %d, the bound is %d", w.me, i, iter,
				iter-w.shards[p.Shard].clock, bound)
		}
	}
	return nil
}

// writeGradients is a kernel's write of a layer's gradients.
func (d *earlyDriver) writeGradients(w *Worker, layer int, iter int64) error {
	for i := range w.plan.Pieces {
		if int(w.plan.Pieces[i].Layer) != layer {
			continue
		}
		g := &d.mem[w].grads[i]
		if g.unsent || g.inFlight {
			return fmt.Errorf("w%d writes gradient %d of iteration %d over that of %d, which was sent: %v, in flight: %v",
				w.me, i, iter, g.iter, !g.unsent, g.inFlight)
		}
		*g = gradient{iter: iter, unsent: true}
	}
	return nil
}

// written notes that the parameters of a piece have changed.
func (d *earlyDriver) written(c *cluster, w *Worker, piece int32) {
	if d.mem[w].reading[piece] {
		c.fail(fmt.Errorf("w%d: piece %d changes while kernels read it: %v", w.me, piece, w))
	}
}

// checkArenas checks an effect of a worker against its arenas.
func (d *earlyDriver) checkArenas(c *cluster, w *Worker, e Effect) error {
	m := d.mem[w]
	switch e.Kind {
	case SendPiece:
		g := &m.grads[e.Piece]
		if !g.unsent {
			return fmt.Errorf("sends gradient %d of iteration %d twice", e.Piece, g.iter)
		}
		g.unsent, g.inFlight = false, true
	case Read, Adopt, AddLocal, Keep:
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			if e.Kind != Keep {
				d.written(c, w, p.ID)
			}
			first := m.grads[c.plan.Shards[e.Shard].Pieces[0].ID]
			if g := m.grads[p.ID]; (e.Kind == Keep || e.Kind == AddLocal && e.Slot < 0) && (g.iter != first.iter || g.unsent) {
				return fmt.Errorf("uses gradient %d of iteration %d together with one of %d", p.ID, g.iter, first.iter)
			}
		}
	}
	return c.problem
}

// The laws when iterations start early, with the same mixes and orders: no layer is read before it is there, nothing
// changes under a kernel, no gradient is overwritten before it was sent.
func TestLawsWhenIterationsStartEarly(t *testing.T) {
	starts := 0
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genCluster(t)
		policy := c.policy
		if rapid.Bool().Draw(t, "one at a time") {
			policy = func() send.Policy { return &lowest{} }
		}
		d := c.startEarly(rules, policy)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.deliverTwice = func() bool { return rng.IntN(8) == 0 }
		if err := c.run(400000); err != nil {
			t.Fatal(err)
		}
		for i := range c.plan.Shards {
			checkShard(t, c, &c.plan.Shards[i], rules)
		}
		checkContributors(t, c, rules, false)
		c.nothingComing(t)
		starts += d.starts
	})
	if starts < 20 {
		t.Errorf("%d iterations started before the exchange was over", starts)
	}
}

// The same laws when workers die and come back.
func TestWorkersThatComeBackStartEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genCluster(t)
		c.startEarly(rules, c.policy)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 11))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.killsAndRevives(rng)
		if err := c.run(400000); err != nil {
			t.Fatal(err)
		}
		for i := range c.plan.Shards {
			checkLives(t, c, int32(i), rules[c.plan.Shards[i].Rule].phases())
		}
	})
}

// layered is a net of n layers of one parameter each, one shard per layer on two servers. Layer 0 is not in the lead shard.
func layered(t testing.TB, n int) *shard.Plan {
	var params []shard.Param
	for l := range n {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d", l), Layer: l, N: 1})
	}
	p, err := shard.Cut(params, shard.Options{Slice: "layer", MaxBytes: 4, Servers: 2, Rules: []string{fmt.Sprintf("l%d", n-1), "*"}})
	if err != nil || len(p.Shards) != n || p.Shards[0].Pieces[0].Layer == 0 {
		t.Fatalf("plan %+v, %v", p, err)
	}
	return p
}

// All workers of a BSP run stop at the same iteration, of which each has a push in every version: a worker that may
// start early learns of a stop before.
func TestWorkersThatStartEarlyStopInStep(t *testing.T) {
	starts := 0
	for seed := range uint64(300) {
		c := newCluster(layered(t, 3), 3, []rule{{name: "bsp"}, {name: "bsp"}}, Budget{Updates: 4}, 0)
		d := c.startEarly([]rule{{name: "bsp"}, {name: "bsp"}}, fifo)
		c.pick = rand.New(rand.NewPCG(seed, 4)).IntN
		if err := c.run(100000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.Equal(c.iters, []int64{4, 4, 4}) {
			t.Fatalf("seed %d: the workers computed %v iterations, want 4 each", seed, c.iters)
		}
		starts += d.starts
	}
	if starts < 1000 {
		t.Errorf("%d of 3600 iterations started early", starts)
	}
}

// One worker, three layers, one piece in flight at a time: the next iteration starts as soon as layer 0 and the reply
// of the lead shard are there, while another layer waits to be pushed. What belongs to an exchange follows when it is
// over.
func TestForwardStartsWhileAPushIsHeldBack(t *testing.T) {
	plan := layered(t, 3) // shards 0, 1, 2 are layers 2, 0, 1, and so are the pieces
	w := NewWorker(0, plan, &lowest{}, 0)
	w.StartEarly(func(int) bool { return false })
	step := func(in Input) string {
		out := text(w.Step(in, nil))
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	reply := func(s int32, iter int64) string {
		landed := step(Input{Kind: PieceLanded, Piece: s})
		if landed != "" {
			t.Errorf("a piece without its header: %s", landed)
		}
		return step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: s, Iter: iter, Clock: iter - int64(s)}})
	}
	readable := func(want string) {
		t.Helper()
		if got := fmt.Sprint(w.Readable(0), w.Readable(1), w.Readable(2)); got != want {
			t.Errorf("layers readable %s, want %s: %v", got, want, w)
		}
	}
	same := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	step(Input{Kind: Begin})
	readable("false false false")
	same(reply(1, 0)+reply(2, 0), "") // before the first iteration all must say where to start
	readable("true true false")
	same(reply(0, 0), "Compute iter=0")
	step(Input{Kind: Forwarded, Msg: wire.Header{Samples: 1}})
	for _, p := range []int32{0, 2, 1} {
		step(Input{Kind: PieceReady, Piece: p})
	}
	same(step(Input{Kind: TaskDone}), "")
	same(step(Input{Kind: PieceSent, Piece: 0}), "SendPiece to=1 p1; Expect shard1; Send to=1 Pull w0 shard1 iter=1")
	same(reply(1, 1), "")
	same(reply(0, 1), "Compute iter=1")
	readable("true false true")
	if w.Iter() != 0 || w.State() != Pushing || w.Counts.Started != 2 || w.Writable(2) || !slices.Equal(w.Missing(), []int32(nil)) {
		t.Errorf("%v, %d started, layer 2 writable: %v", w, w.Counts.Started, w.Writable(2))
	}
	same(step(Input{Kind: PieceSent, Piece: 1}), "SendPiece to=0 p2; Expect shard2; Send to=0 Pull w0 shard2 iter=1")
	same(reply(2, 1), "")
	readable("true true true")
	if w.Iter() != 1 || w.State() != Computing || w.reportedClock != 1 || w.Counts.LeadMax != 2 ||
		w.Counts.WaitedLast[2] != 1 || !w.Writable(2) || w.Writable(1) {
		t.Errorf("%v, known %d, lead %d, last %v; layers 1, 2 writable %v %v", w, w.reportedClock, w.Counts.LeadMax,
			w.Counts.WaitedLast, w.Writable(1), w.Writable(2))
	}
	step(Input{Kind: Forwarded, Msg: wire.Header{Samples: 1}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the gradient of a piece in flight was overwritten")
			}
		}()
		w.Step(Input{Kind: PieceReady, Piece: 2}, nil)
	}()
	step(Input{Kind: PieceSent, Piece: 2})
	if !w.Writable(1) {
		t.Error("layer 1 is not writable, though it was sent")
	}
}

// A worker that may be sent past iterations hears all shards that may do so before it starts.
func TestAWorkerStartsNoIterationThatAShardSendsItPast(t *testing.T) {
	plan := layered(t, 3)
	w := NewWorker(0, plan, fifo(), 0)
	w.StartEarly(func(rule int) bool { return rule == 1 }) // shards 1 and 2
	answer := func(s int32, iter int64) string {
		out := w.Step(Input{Kind: PieceLanded, Piece: s}, nil)
		return text(w.Step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: s, Iter: iter}}, out))
	}
	w.Step(Input{Kind: Begin}, nil)
	answer(0, 0)
	answer(1, 0)
	answer(2, 0)
	w.Step(Input{Kind: Forwarded, Msg: wire.Header{Samples: 1}}, nil)
	for p := range int32(3) {
		w.Step(Input{Kind: PieceReady, Piece: p}, nil)
	}
	w.Step(Input{Kind: TaskDone}, nil)
	if got := answer(0, 1) + answer(1, 1); got != "" {
		t.Errorf("%s before shard 2 answered", got)
	}
	if got := answer(2, 3); got != "Compute iter=3" {
		t.Errorf("%s, want iteration 3", got)
	}
}

func TestWhichSchemesMaySkip(t *testing.T) {
	for _, e := range scheme.All {
		if got := MaySkip([]scheme.Phase{{Scheme: e.Name}}); got != (e.Name == "drop" || e.Name == "coded") {
			t.Errorf("%s: %v", e.Name, got)
		}
	}
	if !MaySkip([]scheme.Phase{{Scheme: "bsp", Until: 2}, {Scheme: "asp"}}) {
		t.Error("the worker does not wait for a change of scheme")
	}
}
