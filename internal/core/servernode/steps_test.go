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

// computeInSteps computes a task in steps. The policy hears of each before it begins, and may shorten the task then.
func (d *workDriver) computeInSteps(c *cluster, w *workernode.Worker, name string, t core.Task) {
	do := &doing{task: t, limit: t.To}
	if t.To == 0 {
		do.limit = d.batch
	}
	d.doing[w] = do
	next, line := t.From, "compute "+name
	var step func(in *core.Input)
	step = func(in *core.Input) {
		if slices.Contains(c.dead, w) {
			return
		}
		if do.limit < next {
			c.problem = fmt.Errorf("%s: %+v ends at %d, but samples up to %d have begun", name, t, do.limit, next)
		}
		if n := min(1+d.r.Int32N(3), do.limit-next); n > 0 {
			next += n
			in.Kind, in.Msg.Samples = core.StepBegun, int64(next)
			c.add(pending{line: line, node: w, name: name, fill: step})
			return
		}
		in.Kind, in.Msg.Samples = core.Forwarded, d.computed(w, do)
		for _, p := range slices.Backward(c.plan.Pieces) {
			c.add(pending{line: line, node: w, name: name, in: core.Input{Kind: core.PieceReady, Piece: p.ID}})
		}
		c.add(pending{line: line, node: w, name: name, in: core.Input{Kind: core.TaskDone}})
	}
	c.add(pending{line: line, node: w, name: name, fill: step})
}

// lends is a dumb Work. While a worker computes its batch it gives the end of it to others, piece by piece, without knowing before how
// many there will be. Now and then it computes a piece itself, too. What a lost worker had, it computes.
type lends struct {
	d             *workDriver
	me            int32
	iter          int64
	begun, end    int32
	fixed, left   bool
	gone          []bool
	pieces        []lentPiece
	lent, doubled *int
}

type lentPiece struct {
	to, from, end int32
	over          bool
}

func (l *lends) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	t := ev.Task
	isOwn := t.Owner == l.me && t.Part == 0
	switch ev.Kind {
	case core.Starting:
		l.iter, l.begun, l.end, l.fixed, l.pieces = t.Iter, 0, l.d.batch, false, nil
	case core.Stepped:
		if isOwn {
			l.begun = int32(ev.Samples)
			return l.lend(out)
		}
	case core.Fixed:
		l.fixed = l.fixed || isOwn
	case core.Came:
		return l.came(ev.Msg, out)
	case core.Gone:
		l.gone[t.Owner] = true
		for i := range l.pieces {
			if l.pieces[i].to == t.Owner {
				out = l.takeBack(i, out)
			}
		}
	case core.Leaves:
		l.left = true
	}
	return out
}

func (l *lends) lend(out []core.Order) []core.Order {
	n := l.end - l.begun
	to := l.d.r.Int32N(int32(l.d.workers))
	if n < 1 || to == l.me || l.gone[to] || l.d.r.IntN(2) == 0 {
		return out
	}
	*l.lent++
	n = 1 + l.d.r.Int32N(n)
	l.end -= n
	l.pieces = append(l.pieces, lentPiece{to: to, from: l.end, end: l.end + n})
	part := int32(len(l.pieces))
	own := core.Task{Owner: l.me, Iter: l.iter, Parts: part + 1, To: l.end}
	out = append(out, core.Order{Kind: core.Divide, Task: own}, core.Order{Kind: core.CancelWork, Task: own},
		l.tell(to, give, l.iter, part, l.end, l.end+n))
	if l.d.r.IntN(4) == 0 {
		*l.doubled++
		l.pieces[part-1].over = true
		out = append(out, core.Order{Kind: core.Assign, Task: core.Task{Owner: l.me, Iter: l.iter, Part: part, From: l.end, To: l.end + n}})
	}
	return out
}

func (l *lends) takeBack(i int, out []core.Order) []core.Order {
	p := &l.pieces[i]
	if p.over || l.left {
		return out
	}
	p.over = true
	return append(out, core.Order{Kind: core.Assign, Task: core.Task{Owner: l.me, Iter: l.iter, Part: int32(i) + 1, From: p.from, To: p.end}})
}

func (l *lends) came(m wire.Header, out []core.Order) []core.Order {
	switch {
	case m.Flags == give && l.left:
		return append(out, l.tell(m.Worker, back, m.Iter, m.Part, 0, 0))
	case m.Flags == give:
		return append(out, core.Order{Kind: core.Assign,
			Task: core.Task{Owner: m.Worker, Iter: m.Iter, Part: m.Part, From: int32(m.Samples), To: int32(m.Correct)}})
	case m.Iter != l.iter:
	case m.Flags == back:
		return l.takeBack(int(m.Part)-1, out)
	}
	return out
}

func (l *lends) tell(to int32, what uint8, iter int64, part, from, end int32) core.Order {
	return core.Order{Kind: core.Tell, To: to, Msg: wire.Header{Flags: what, Iter: iter, Part: part, Samples: int64(from),
		Correct: int64(end)}}
}

// Workers give samples away while they compute, and only the owner's own part says how many parts there are. Parts are computed twice,
// and workers are lost. A folded iteration has each of its samples once, and nobody waits for ever.
func TestPartsAreGivenWhileComputing(t *testing.T) {
	var lent, doubled, lost int
	for _, name := range []string{"bsp", "asp", "ssp", "drop"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if partsAreGivenWhileComputing(t, name, &lent, &doubled) {
					lost++
				}
			})
		})
	}
	if min(lent, doubled, lost) == 0 {
		t.Errorf("%d pieces were given away, %d were computed twice, and in %d runs a worker was lost", lent, doubled, lost)
	}
}

func partsAreGivenWhileComputing(t *rapid.T, name string, lent, doubled *int) (lost bool) {
	workers := rapid.IntRange(2, 5).Draw(t, "workers")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	rl := rule{name: name}
	switch name {
	case "ssp":
		rl.params = &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}
	case "drop":
		rl.params = &scheme.DropParams{Required: int64(workers - 1), Contributors: "shard"}
	}
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 3}, {Name: "b", Layer: 1, N: 3},
		{Name: "c", Layer: 2, N: 2}}, shard.Options{Slice: "layer", MaxBytes: 8, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(plan, workers, []rule{rl}, Budget{Updates: int64(4 * workers)}, 0)
	c.pick = r.IntN
	c.deliverTwice = func() bool { return r.IntN(8) == 0 }
	d := &workDriver{r: r, workers: workers, batch: 6, doing: map[*workernode.Worker]*doing{}, pushed: map[pushName][]string{},
		slots: map[[3]int32][]string{}, cut: map[string]bool{}}
	d.lends = func(me int32) core.Work {
		return &lends{d: d, me: me, gone: make([]bool, workers), lent: lent, doubled: doubled}
	}
	c.work = d
	for _, s := range c.servers {
		for _, id := range s.owned {
			s.shards[id].makeParts(2)
		}
	}
	for w := range c.workers {
		c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, c.policy(), 0))
	}
	victim, at := c.workers[r.IntN(workers)], -1
	if rapid.Bool().Draw(t, "lost") {
		at = r.IntN(800)
	}
	steps := 0
	c.trace = func(string, core.Input, []core.Effect) {
		if steps++; steps == at && victim.State() != core.Finished {
			lost = true
			c.kill(victim, fmt.Sprintf("w%d", victim.Me()))
		}
	}
	if err := c.run(100_000); err != nil {
		t.Fatal(err)
	}
	return lost
}
