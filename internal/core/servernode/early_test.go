package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// earlyDriver computes layer by layer: each layer is read as soon as the worker says that it may be, in any order, and
// written as soon as the worker says so. It records what kernels read and what is in flight, and reports an overwrite
// of either.
type earlyDriver struct {
	phases func(rule int) []scheme.Phase
	skips  bool // some shard may send workers past iterations
	mem    map[*workernode.Worker]*arenas

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

// startEarly makes the workers of a cluster start iterations as early as they may.
func (c *cluster) startEarly(rules []rule, policy func() send.Policy) *earlyDriver {
	d := &earlyDriver{phases: func(i int) []scheme.Phase { return rules[i].phases() }, mem: map[*workernode.Worker]*arenas{}}
	for _, r := range rules {
		d.skips = d.skips || inturn.MaySkip(r.phases())
	}
	c.early = d
	for w := range c.workers {
		c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, policy(), 0))
	}
	return d
}

func (d *earlyDriver) prepare(plan *shard.Plan, w *workernode.Worker) {
	w.StartEarly(func(rule int) bool { return inturn.MaySkip(d.phases(rule)) })
	d.mem[w] = &arenas{reading: make([]bool, len(plan.Pieces)), grads: make([]gradient, len(plan.Pieces))}
}

// compute runs an iteration: all layers are read, then written from the last to the first.
func (d *earlyDriver) compute(c *cluster, w *workernode.Worker, name string, iter int64) error {
	if !w.Readable(0) {
		return fmt.Errorf("iteration %d starts before layer 0 is there", iter)
	}
	if w.State() != core.Computing {
		d.starts++
	}
	layers := 0
	for _, p := range c.plan.Pieces {
		layers = max(layers, int(p.Layer)+1)
	}
	m := d.mem[w]
	m.unread = layers
	// a dead worker's kernels have no effect
	add := func(line string, node core.Node, in core.Input, when func() bool, then func()) {
		dead := func() bool { return slices.Contains(c.dead, w) }
		c.add(pending{line: line, node: node, name: name, in: in, when: func() bool { return dead() || when() }, then: func() {
			if !dead() {
				then()
			}
		}})
	}
	for l := range layers {
		add(fmt.Sprintf("read %s %d", name, l), deadNode{}, core.Input{}, func() bool { return w.Readable(l) }, func() {
			m.unread--
			c.fail(d.read(c, w, l, iter))
		})
	}
	always := func() bool { return true }
	line := "compute " + name
	add(line, w, core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 10}}, func() bool { return m.unread == 0 }, func() {})
	for l := range layers {
		l = layers - 1 - l
		add(line, deadNode{}, core.Input{}, func() bool { return w.Writable(l) }, func() { c.fail(d.writeGradients(c.plan, w, l, iter)) })
		for _, p := range c.plan.Pieces {
			if int(p.Layer) == l {
				add(line, w, core.Input{Kind: core.PieceReady, Piece: p.ID}, always, func() { m.reading[p.ID] = false })
			}
		}
	}
	add(line, w, core.Input{Kind: core.TaskDone}, always, func() {})
	return nil
}

func (c *cluster) fail(err error) {
	if c.problem == nil {
		c.problem = err
	}
}

// read begins a kernel's read of a layer. It checks that all of the layer came with the last reply of its shard, or is
// the copy that it should be, and is within the bound.
func (d *earlyDriver) read(c *cluster, w *workernode.Worker, layer int, iter int64) error {
	for i := range c.plan.Pieces {
		p := &c.plan.Pieces[i]
		if int(p.Layer) != layer {
			continue
		}
		d.mem[w].reading[i] = true
		if back := slices.ContainsFunc(c.lives, func(life int64) bool { return life > 0 }); !back { // its last push may be lost
			if err := c.readOfCopy(w, p.ID, iter); err != nil {
				return err
			}
		}
		ph := d.phases(c.plan.Shards[p.Shard].Rule)
		e, _ := scheme.All.Lookup(ph[0].Scheme)
		if e.CopiesOf(ph[0].Params) == scheme.Pulled {
			seen := c.replyContents[[2]int32{p.Shard, w.Me()}]
			if got := c.arena[[2]int32{w.Me(), p.ID}]; got != seen[len(seen)-1] {
				return fmt.Errorf("w%d reads %q of piece %d in iteration %d, and was answered with %q", w.Me(), got, i, iter, seen[len(seen)-1])
			}
		}
		if bound, ok := e.LeadMax(ph[0].Params); ok && !d.skips && len(c.dead) == 0 && iter-c.heardOf(w, p.Shard).clock > bound {
			return fmt.Errorf("w%d reads piece %d in iteration %d at a lead of %d, the bound is %d", w.Me(), i, iter,
				iter-c.heardOf(w, p.Shard).clock, bound)
		}
	}
	return nil
}

// writeGradients is a kernel's write of a layer's gradients.
func (d *earlyDriver) writeGradients(plan *shard.Plan, w *workernode.Worker, layer int, iter int64) error {
	for i := range plan.Pieces {
		if int(plan.Pieces[i].Layer) != layer {
			continue
		}
		g := &d.mem[w].grads[i]
		if g.unsent || g.inFlight {
			return fmt.Errorf("w%d writes gradient %d of iteration %d over that of %d, which was sent: %v, in flight: %v",
				w.Me(), i, iter, g.iter, !g.unsent, g.inFlight)
		}
		*g = gradient{iter: iter, unsent: true}
	}
	return nil
}

// written notes that the parameters of a piece have changed.
func (d *earlyDriver) written(c *cluster, w *workernode.Worker, piece int32) {
	if d.mem[w].reading[piece] {
		c.fail(fmt.Errorf("w%d: piece %d changes while kernels read it: %v", w.Me(), piece, w))
	}
}

// checkArenas checks an effect of a worker against its arenas.
func (d *earlyDriver) checkArenas(c *cluster, w *workernode.Worker, e core.Effect) error {
	m := d.mem[w]
	switch e.Kind {
	case core.SendPiece:
		g := &m.grads[e.Piece]
		if !g.unsent {
			return fmt.Errorf("sends gradient %d of iteration %d twice", e.Piece, g.iter)
		}
		g.unsent, g.inFlight = false, true
	case core.Read, core.Adopt, core.AddLocal, core.Keep:
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			if e.Kind != core.Keep {
				d.written(c, w, p.ID)
			}
			first := m.grads[c.plan.Shards[e.Shard].Pieces[0].ID]
			if g := m.grads[p.ID]; (e.Kind == core.Keep || e.Kind == core.AddLocal && e.Slot < 0) && (g.iter != first.iter || g.unsent) {
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
			policy = func() send.Policy { return &coretest.Lowest{} }
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

// All workers of a BSP run stop at the same iteration, of which each has a push in every version: a worker that may
// start early learns of a stop before.
func TestWorkersThatStartEarlyStopInStep(t *testing.T) {
	starts := 0
	for seed := range uint64(300) {
		c := newCluster(coretest.Layered(t, 3), 3, []rule{{name: "bsp"}, {name: "bsp"}}, Budget{Updates: 4}, 0)
		d := c.startEarly([]rule{{name: "bsp"}, {name: "bsp"}}, coretest.FIFO)
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
