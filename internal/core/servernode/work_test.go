package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// workDriver drives a cluster whose workers compute for each other. A gradient is the list of names of the samples in
// it.
type workDriver struct {
	r       *rand.Rand
	workers int
	batch   int32
	doing   map[*workernode.Worker]*doing
	pushed  map[pushName][]string
	slots   map[[3]int32][]string // server, shard, slot
	cut     map[string]bool       // samples that a Cancel has removed
	givers  []*giver
	lends   func(me int32) core.Work // nil: the policies are givers, and a task is computed in one step
	owners  [][]int32                // per worker: the batches that it computes, if workers pull ahead; nil: they do not
	kept    int                      // batches that were kept
	early   bool                     // then: all are assigned when an iteration starts

	whole, shared, helped, back, cancelled int // counts of iterations and tasks, to see that each kind occurs
}

type doing struct {
	task  core.Task
	limit int32
}

type pushName struct {
	by, owner, part int32
	iter            int64
}

func sampleName(owner int32, iter int64, i int32) string {
	return fmt.Sprintf("w%d.%d.%d", owner, iter, i)
}

func (d *workDriver) policy(me int32) core.Work {
	if d.lends != nil {
		return d.lends(me)
	}
	if d.owners != nil {
		return &copier{d: d, me: me}
	}
	g := &giver{d: d, me: me, gone: make([]bool, d.workers), tasks: map[pushName]int{}}
	d.givers[me] = g
	return g
}

// obey says whether this driver obeys the effect itself.
func (d *workDriver) obey(c *cluster, w *workernode.Worker, name string, e core.Effect) bool {
	switch e.Kind {
	case core.Compute:
		t := e.Task()
		if len(c.computed[w.Me()]) == 0 && t.Owner != w.Me() {
			c.problem = fmt.Errorf("%s: %v, but it has read no parameters yet", name, e)
		}
		if mine := c.computed[w.Me()]; t.Owner == w.Me() && (len(mine) == 0 || e.Iter > mine[len(mine)-1]) { // else it takes a part back
			if c.reads != nil {
				c.problem = c.reads(w, e.Iter)
			}
			c.iters[w.Me()]++
			c.computed[w.Me()] = append(c.computed[w.Me()], e.Iter)
		}
		if d.lends != nil {
			d.computeInSteps(c, w, name, t)
			return true
		}
		do := &doing{task: t, limit: t.To}
		if t.To == 0 {
			do.limit = d.batch
		}
		d.doing[w] = do
		line := "compute " + name
		c.add(pending{line: line, node: w, name: name, in: core.Input{Kind: core.Forwarded},
			fill: func(in *core.Input) { in.Msg.Samples = d.computed(w, do) }})
		for _, p := range slices.Backward(c.plan.Pieces) {
			if t.Keep != core.Kept {
				c.add(pending{line: line, node: w, name: name, in: core.Input{Kind: core.PieceReady, Piece: p.ID}})
			}
		}
		c.add(pending{line: line, node: w, name: name, in: core.Input{Kind: core.TaskDone}})
	case core.Cancel:
		do := d.doing[w]
		if t := e.Task(); do == nil || !do.task.Same(&t) {
			c.problem = fmt.Errorf("%s: %v, which is not the current task", name, e)
			return true
		}
		if d.lends != nil {
			do.limit = min(do.limit, e.Dst)
			return true
		}
		least := max(e.Dst, do.task.From) // some that are beyond are begun
		if least < do.limit {
			least += d.r.Int32N(do.limit - least + 1)
			d.cancelled++
			for i := least; i < do.limit && d.owners == nil; i++ {
				d.cut[sampleName(do.task.Owner, do.task.Iter, i)] = true
			}
			do.limit = least
		}
	case core.Send:
		if d.owners != nil && e.Msg.Kind == wire.Push && c.heardOf(w, e.Msg.Shard).letInto > w.Iter() {
			c.problem = fmt.Errorf("%s: %v, but the shard is past that iteration", name, e)
		}
		return false
	case core.SendWorker:
		if e.To == w.Me() || e.Msg.Worker != w.Me() || e.Msg.Kind != wire.Peer {
			c.problem = fmt.Errorf("%s sends to itself, or in another's name: %v", name, e)
		}
		to := fmt.Sprintf("w%d", e.To)
		if slices.Contains(c.dead, c.workers[e.To]) {
			return true
		}
		c.add(pending{line: "peer " + name + to, node: c.workers[e.To], name: to, in: core.Input{Kind: core.Arrived, Msg: e.Msg}})
	default:
		return false
	}
	return true
}

// computed ends forward: from now on nothing can be cancelled.
func (d *workDriver) computed(w *workernode.Worker, do *doing) (samples int64) {
	delete(d.doing, w)
	t := do.task
	var list []string
	for i := t.From; i < do.limit; i++ {
		list = append(list, sampleName(t.Owner, t.Iter, i))
	}
	d.pushed[pushName{w.Me(), t.Owner, t.Part, t.Iter}] = list
	return int64(len(list))
}

func (d *workDriver) staged(s *Server, e core.Effect) {
	if d == nil {
		return
	}
	h := s.shards[e.Shard].peers[e.To].landing.head
	d.slots[[3]int32{s.me, e.Shard, e.Slot}] = slices.Clone(d.pushed[pushName{h.Worker, h.Owner, h.Part, h.Iter}])
}

func (d *workDriver) merged(c *cluster, s *Server, e core.Effect) error {
	from, into := [3]int32{s.me, e.Shard, e.Slot}, [3]int32{s.me, e.Shard, e.Dst}
	if n := c.slots[from].pieces + c.slots[into].pieces; n > 0 {
		return fmt.Errorf("%d pieces are missing of what is merged", n)
	}
	d.slots[into] = append(d.slots[into], d.slots[from]...)
	d.slots[from] = nil
	return nil
}

// folded checks that all samples of the iteration are in it, once, except those that were removed.
func (d *workDriver) folded(s *Server, e core.Effect) error {
	if d == nil {
		return nil
	}
	got := slices.Sorted(slices.Values(d.slots[[3]int32{s.me, e.Shard, e.Slot}]))
	var want []string
	for i := range d.batch {
		if name := sampleName(e.Msg.Worker, e.Msg.Iter, i); !d.cut[name] {
			want = append(want, name)
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) || e.Msg.Samples != int64(len(want)) {
		return fmt.Errorf("samples %v are folded, %d by the header, want %v", got, e.Msg.Samples, want)
	}
	return nil
}

// Messages between givers.
const (
	give  = iota // compute my samples from Samples on
	back         // I can compute them myself now
	yours        // nobody has computed them: do it yourself
	bye          // I have left
)

// giver is a dumb Work: now and then it gives the end of its batch away, and wants it back. A worker that has left
// gives back what it was given.
type giver struct {
	d     *workDriver
	me    int32
	left  bool
	gone  []bool
	to    int32 // the worker that has some of this iteration; -1: none
	from  int32 // the first of these samples
	tasks map[pushName]int
}

const (
	waits = iota + 1
	begun
)

func (g *giver) tell(to, owner int32, iter int64, what uint8, from int32) core.Order {
	return core.Order{Kind: core.Tell, To: to, Msg: wire.Header{Flags: what, Owner: owner, Iter: iter, Part: 1, Parts: 2,
		Samples: int64(from)}}
}

func (g *giver) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	t := ev.Task
	name := pushName{g.me, t.Owner, t.Part, t.Iter}
	switch ev.Kind {
	case core.Starting:
		g.to = -1
		h := g.d.r.Int32N(int32(g.d.workers))
		if h == g.me || g.gone[h] || g.d.r.IntN(3) == 0 {
			g.d.whole++
			return out
		}
		g.to, g.from = h, 1+g.d.r.Int32N(g.d.batch-1)
		g.d.shared++
		own := core.Task{Owner: g.me, Iter: t.Iter, Part: 0, Parts: 2, To: g.from}
		return append(out, core.Order{Kind: core.Assign, Task: own}, g.tell(h, g.me, t.Iter, give, g.from))
	case core.Begun:
		g.tasks[name] = begun
	case core.Computed:
		delete(g.tasks, name)
		if t.Owner == g.me && t.Part == 0 && g.to >= 0 && g.d.r.IntN(2) == 0 {
			return append(out, g.tell(g.to, g.me, t.Iter, back, g.from))
		}
	case core.Came:
		return g.came(ev.Msg, out)
	case core.Leaves:
		g.left = true
		for w := range int32(g.d.workers) {
			if w != g.me {
				out = append(out, g.tell(w, g.me, 0, bye, 0))
			}
		}
	}
	return out
}

func (g *giver) came(m wire.Header, out []core.Order) []core.Order {
	name := pushName{g.me, m.Owner, m.Part, m.Iter}
	t := core.Task{Owner: m.Owner, Iter: m.Iter, Part: 1, Parts: 2, From: int32(m.Samples), Grain: 1}
	switch m.Flags {
	case give:
		if g.left {
			return append(out, g.tell(m.Worker, m.Owner, m.Iter, yours, t.From))
		}
		g.d.helped++
		g.tasks[name] = waits
		return append(out, core.Order{Kind: core.Assign, Task: t})
	case back:
		switch g.tasks[name] {
		case waits:
			delete(g.tasks, name)
			t.To = t.From
			return append(out, core.Order{Kind: core.CancelWork, Task: t}, g.tell(m.Worker, m.Owner, m.Iter, yours, t.From))
		case begun:
			t.To = t.From + g.d.r.Int32N(g.d.batch-t.From+1)
			return append(out, core.Order{Kind: core.CancelWork, Task: t})
		}
	case yours:
		g.d.back++
		t.Grain = 0
		return append(out, core.Order{Kind: core.Assign, Task: t})
	case bye:
		g.gone[m.Worker] = true
	}
	return out
}

// Workers give each other samples, take them back and cancel them, in any order of events. A folded iteration has each
// of its samples once, except those that were cancelled. Nobody waits for ever, and no gradient is overwritten while it
// is in flight.
func TestWorkIsComputedOnce(t *testing.T) {
	var whole, shared, helped, back, cancelled int
	for _, name := range []string{"bsp", "asp", "ssp"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d := workIsComputedOnce(t, name)
				whole, shared, helped, back, cancelled = whole+d.whole, shared+d.shared, helped+d.helped, back+d.back, cancelled+d.cancelled
			})
		})
	}
	if min(whole, shared, helped, back, cancelled) == 0 {
		t.Errorf("of iterations %d were whole and %d shared; %d tasks were taken, %d given back, %d samples cancelled",
			whole, shared, helped, back, cancelled)
	}
}

func workIsComputedOnce(t *rapid.T, name string) *workDriver {
	workers := rapid.IntRange(2, 5).Draw(t, "workers")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
	rl := rule{name: name}
	if name == "ssp" {
		rl.params = &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}
	}
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 3}, {Name: "b", Layer: 1, N: 3},
		{Name: "c", Layer: 2, N: 2}}, shard.Options{Slice: "layer", MaxBytes: 8, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(plan, workers, []rule{rl}, Budget{Updates: int64(4 * workers)}, 0)
	c.pick = r.IntN
	c.overtake = rapid.Bool().Draw(t, "overtake")
	c.deliverTwice = func() bool { return r.IntN(8) == 0 }
	d := &workDriver{r: r, workers: workers, batch: 6, doing: map[*workernode.Worker]*doing{}, pushed: map[pushName][]string{},
		slots: map[[3]int32][]string{}, cut: map[string]bool{}, givers: make([]*giver, workers)}
	c.work = d
	for _, s := range c.servers {
		for _, id := range s.owned {
			s.shards[id].makeParts(2)
		}
	}
	for w := range c.workers {
		c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, c.policy(), 0))
	}
	if err := c.run(100_000); err != nil {
		t.Fatal(err)
	}
	for w := range int32(workers) {
		for _, iter := range c.computed[w] {
			for i := range d.batch {
				if s := sampleName(w, iter, i); !d.cut[s] && d.timesPushed(s) != 1 {
					t.Fatalf("sample %s is in %d pushes", s, d.timesPushed(s))
				}
			}
		}
	}
	return d
}

func (d *workDriver) timesPushed(sample string) (n int) {
	for _, list := range d.pushed {
		for _, s := range list {
			if s == sample {
				n++
			}
		}
	}
	return n
}
