package scheme_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// pair plays workers against two shards that agree on contributors: one leads and one follows it. The messages of a
// worker reach each shard in order, but with a delay that rapid draws. Messages in flight when the worker dies may be
// lost at either shard.
type pair struct {
	t       *rapid.T
	schemes [2]scheme.Scheme // 0 leads
	pending [2][][]scheme.Event
	closed  [][]scheme.Event // closings that were announced and not heard
	workers []pairWorker
	set     []int32                     // folded by the leading shard since its last Close
	sets    [2]map[int64]map[int32]bool // contributors by iteration
	landed  [2]map[[2]int64]bool        // worker and iteration of pushes neither folded nor dropped
	reached int64                       // past every push that has landed at the shard that follows
	died    map[int32]bool
	see     func(ev scheme.Event, got []scheme.Decision) // of the shard that follows
}

type pairWorker struct {
	alive, computing bool
	life             int
	known            [2]int  // the life that each shard knows
	open             [2]bool // it waits for the shard
	clock, next      int64
}

func newPair(t *rapid.T, v schemetest.Variant, workers int) *pair {
	p := &pair{t: t, workers: make([]pairWorker, workers), died: map[int32]bool{}, see: func(scheme.Event, []scheme.Decision) {}}
	for k := range p.schemes {
		p.schemes[k] = v.New(followEnv(workers, k == 1))
		p.pending[k] = make([][]scheme.Event, workers)
		p.sets[k], p.landed[k] = map[int64]map[int32]bool{}, map[[2]int64]bool{}
	}
	for w := range p.workers {
		p.workers[w].alive = true
		p.want(w)
	}
	return p
}

func followEnv(workers int, follows bool) scheme.Env {
	return scheme.Env{Workers: workers, Shards: []int32{schemetest.Shard}, Servers: 2, Follows: follows, Seed: 1}
}

func (p *pair) enqueue(w int, ev scheme.Event) {
	ev.Worker, ev.Owner, ev.Shard, ev.Parts = int32(w), int32(w), schemetest.Shard, 1
	for k := range p.pending {
		p.pending[k][w] = append(p.pending[k][w], ev)
	}
}

func (p *pair) want(w int) {
	p.workers[w].open = [2]bool{true, true}
	p.enqueue(w, scheme.Event{Kind: scheme.Wanted, Iter: p.workers[w].clock})
}

// act makes a worker do something, if it can.
func (p *pair) act(w int, quiet bool) bool {
	me := &p.workers[w]
	odd := 0
	if !quiet {
		odd = rapid.IntRange(0, 19).Draw(p.t, "odd")
	}
	switch {
	case !me.alive && odd >= 15:
		me.alive = true
		me.life++
		p.enqueue(w, scheme.Event{Kind: scheme.Joined, Iter: me.clock})
		p.want(w)
	case me.alive && odd == 19:
		// Of the messages in flight, news of the worker's lives arrives, pulls do not, and pushes may.
		for k := range p.pending {
			lost := rapid.Bool().Draw(p.t, "lost")
			p.pending[k][w] = slices.DeleteFunc(p.pending[k][w], func(ev scheme.Event) bool {
				return ev.Kind == scheme.Wanted || ev.Kind == scheme.Pushed && lost
			})
		}
		p.leave(w)
	case me.computing:
		me.computing = false
		me.next += int64(max(0, rapid.IntRange(-8, 2).Draw(p.t, "sent on")))
		p.enqueue(w, scheme.Event{Kind: scheme.Pushed, Iter: me.next, Samples: int64(rapid.IntRange(0, 4).Draw(p.t, "samples"))})
		me.clock = me.next + 1
		p.want(w)
	default:
		return false
	}
	return true
}

func (p *pair) leave(w int) {
	p.enqueue(w, scheme.Event{Kind: scheme.Left})
	p.workers[w].alive, p.workers[w].computing = false, false
	p.died[int32(w)] = true
}

// deliver delivers the next event of a worker to a shard.
func (p *pair) deliver(k, w int) bool {
	if len(p.pending[k][w]) == 0 {
		return false
	}
	ev := p.pending[k][w][0]
	p.pending[k][w] = p.pending[k][w][1:]
	p.step(k, ev)
	return true
}

// hear tells the shard that follows of one closing.
func (p *pair) hear() bool {
	if len(p.closed) == 0 {
		return false
	}
	events := p.closed[0]
	p.closed = p.closed[1:]
	for _, ev := range events {
		p.step(1, ev)
	}
	return true
}

func (p *pair) step(k int, ev scheme.Event) {
	if ev.Kind == scheme.Pushed {
		p.landed[k][[2]int64{int64(ev.Worker), ev.Iter}] = true
		p.reached = max(p.reached, int64(k)*(ev.Iter+1))
	}
	if ev.Kind == scheme.Joined {
		p.workers[ev.Worker].known[k]++
	}
	out := p.schemes[k].Step(ev, nil)
	if k == 1 {
		p.see(ev, out)
	}
	for _, d := range out {
		id := [2]int64{int64(d.Worker), d.Iter}
		switch d.Kind {
		case scheme.Fold, scheme.Drop:
			if !p.landed[k][id] {
				p.t.Fatalf("shard %d, %v: %v, which has not landed or was taken before", k, ev, d)
			}
			delete(p.landed[k], id)
			if d.Kind == scheme.Fold {
				if p.sets[k][d.Iter] == nil {
					p.sets[k][d.Iter] = map[int32]bool{}
				}
				p.sets[k][d.Iter][d.Worker] = true
				p.set = append(p.set, d.Worker)
			}
		case scheme.Close:
			if k == 0 {
				p.announce(d.Iter)
			}
			p.set = nil
		case scheme.Reply:
			me := &p.workers[d.Worker]
			if !me.alive || me.known[k] != me.life {
				continue // the reply is for a life that is over
			}
			me.open[k] = false
			me.next = max(me.next, d.Iter)
			me.computing = me.alive && !me.open[0] && !me.open[1]
		}
	}
}

func (p *pair) announce(iter int64) {
	ev := scheme.Event{Kind: scheme.Closed, Shard: schemetest.Shard, Iter: iter, Worker: scheme.NoWorker, Parts: int32(len(p.set))}
	events := []scheme.Event{ev}
	if len(p.set) > 0 {
		events = nil
	}
	for _, ev.Worker = range p.set {
		events = append(events, ev)
	}
	p.closed = append(p.closed, events)
}

// run plays drawn actions, then lets every worker reach the same iteration and leave, and delivers all messages.
func (p *pair) run() {
	n := len(p.workers)
	for range rapid.SampledFrom([]int{20, 80, 200}).Draw(p.t, "actions") {
		switch w := rapid.IntRange(0, n-1).Draw(p.t, "worker"); rapid.IntRange(0, 3).Draw(p.t, "what") {
		case 0:
			p.act(w, false)
		case 1, 2:
			p.deliver(rapid.IntRange(0, 1).Draw(p.t, "shard"), w)
		default:
			p.hear()
		}
	}
	for last := p.last() + 3; ; {
		moved := p.hear()
		for w := range n {
			moved = p.deliver(0, w) || moved
			moved = p.deliver(1, w) || moved
			if me := &p.workers[w]; me.alive && me.clock >= last {
				p.leave(w)
				moved = true
			} else if me.computing {
				moved = p.act(w, true) || moved
			}
		}
		if !moved {
			break
		}
	}
	for w, me := range p.workers {
		if me.alive {
			p.t.Fatalf("stall: worker %d waits: %v\n%v", w, p.schemes[0], p.schemes[1])
		}
	}
	p.step(1, scheme.Event{Kind: scheme.Closed, Shard: schemetest.Shard, Iter: p.reached, Worker: scheme.NoWorker})
}

func (p *pair) last() (last int64) {
	for _, me := range p.workers {
		last = max(last, me.clock, me.next)
	}
	return last
}

func eachStep(t *testing.T, check func(t *rapid.T, v schemetest.Variant, workers int)) {
	e, _ := scheme.All.Lookup("drop")
	for _, v := range schemetest.Variants(e) {
		if v.Params.(*scheme.DropParams).Contributors != "step" {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { check(t, v, rapid.IntRange(1, 5).Draw(t, "workers")) })
		})
	}
}

// Two shards that agree have the same contributors to every iteration: the one that follows lacks only contributors
// that died, and has no others. Nobody hangs, and every push is folded or dropped once.
func TestFollowHasTheContributorsOfTheLeader(t *testing.T) {
	eachStep(t, func(t *rapid.T, v schemetest.Variant, workers int) {
		p := newPair(t, v, workers)
		p.run()
		for iter, want := range p.sets[0] {
			for w := range want {
				if !p.sets[1][iter][w] && !p.died[w] {
					t.Fatalf("iteration %d: worker %d is a contributor of %v and not of %v", iter, w, want, p.sets[1][iter])
				}
			}
		}
		for iter, got := range p.sets[1] {
			for w := range got {
				if !p.sets[0][iter][w] {
					t.Fatalf("iteration %d: worker %d is a contributor of %v and not of %v, which leads", iter, w, got, p.sets[0][iter])
				}
			}
		}
		if n := len(p.landed[0]) + len(p.landed[1]); n > 0 {
			t.Fatalf("%d pushes were neither folded nor dropped", n)
		}
	})
}

// The state of a shard that follows can be saved and restored at any event.
func TestFollowIsRestored(t *testing.T) {
	eachStep(t, func(t *rapid.T, v schemetest.Variant, workers int) {
		p := newPair(t, v, workers)
		p.see = func(ev scheme.Event, _ []scheme.Decision) {
			saved, err := p.schemes[1].MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			again := v.New(followEnv(workers, true))
			if err := again.UnmarshalBinary(saved); err != nil {
				t.Fatalf("after %v: %v; state %v", ev, err, p.schemes[1])
			}
			back, err := again.MarshalBinary()
			if err != nil || !bytes.Equal(saved, back) || again.String() != p.schemes[1].String() {
				t.Fatalf("restored %v of %v, %v", again, p.schemes[1], err)
			}
			p.schemes[1] = again // and continues from there
		}
		p.run()
	})
}

// follower is the second implementation: it keeps everything that it was told, and searches that at every event.
type follower struct {
	rank    bool
	clock   []int64
	left    []bool
	v       int64
	history []scheme.Event
	spent   map[int]bool // pushes folded or dropped, and pulls answered, by event
	told    []closing    // iterations closed elsewhere, in order; those before next are closed here
	next    int
}

type closing struct {
	iter         int64
	contributors []int32
	missing      int32
}

func (f *follower) step(ev scheme.Event) (out []scheme.Decision) {
	k, w := len(f.history), ev.Worker
	f.history = append(f.history, ev)
	switch ev.Kind {
	case scheme.Pushed:
		f.clock[w] = ev.Iter + 1
		d := scheme.Decision{Kind: scheme.Drop, Worker: w, Shard: ev.Shard, Iter: ev.Iter}
		switch {
		case ev.Samples == 0:
			d.Reason = scheme.Empty
		case f.left[w]:
			d.Reason = scheme.Gone
		case ev.Iter < f.v:
			d.Reason = scheme.Late
		}
		if f.spent[k] = d.Reason != scheme.NotDropped; f.spent[k] {
			out = append(out, d)
		}
	case scheme.Left:
		f.left[w] = true
	case scheme.Joined:
		f.left[w], f.clock[w] = false, max(f.v, f.clock[w], ev.Iter)
	case scheme.Closed:
		if n := len(f.told); n == 0 || f.told[n-1].missing == 0 {
			f.told = append(f.told, closing{iter: ev.Iter, missing: max(1, ev.Parts)})
		}
		c := &f.told[len(f.told)-1]
		c.missing--
		if w != scheme.NoWorker {
			c.contributors = append(c.contributors, w)
		}
	}
	for f.next < len(f.told) && f.mayClose(f.told[f.next]) {
		if c := f.told[f.next]; c.iter >= f.v {
			out = append(out, f.close(c)...)
		}
		f.next++
	}
	return append(out, f.replies(ev.Shard)...)
}

func (f *follower) mayClose(c closing) bool {
	for _, w := range c.contributors {
		if !f.left[w] && f.clock[w] <= c.iter {
			return false
		}
	}
	return c.missing == 0
}

func (f *follower) close(c closing) (out []scheme.Decision) {
	var events []int
	for k, ev := range f.history {
		if ev.Kind == scheme.Pushed && !f.spent[k] && ev.Iter <= c.iter {
			events = append(events, k)
			f.spent[k] = true
		}
	}
	if f.rank {
		slices.SortFunc(events, func(a, b int) int {
			x, y := f.history[a], f.history[b]
			return cmp.Or(cmp.Compare(x.Iter, y.Iter), cmp.Compare(x.Worker, y.Worker))
		})
	}
	pushes, samples := 0, int64(0)
	for _, k := range events {
		ev := f.history[k]
		if ev.Iter == c.iter && slices.Contains(c.contributors, ev.Worker) {
			out = append(out, fold(ev, float64(min(1, pushes))))
			pushes++
			samples += ev.Samples
			continue
		}
		d := scheme.Decision{Kind: scheme.Drop, Worker: ev.Worker, Shard: ev.Shard, Iter: ev.Iter, Reason: scheme.Late}
		if ev.Iter == c.iter {
			d.Reason = scheme.Surplus
		}
		out = append(out, d)
	}
	f.v = c.iter + 1
	if pushes > 0 {
		out = append(out, commit(scheme.NoWorker, c.iter, 1, samples))
	}
	return append(out, scheme.Decision{Kind: scheme.Close, Worker: scheme.NoWorker, Shard: schemetest.Shard, Iter: c.iter})
}

// replies answers the pulls for iterations that are open, of workers that have not left since, in order of arrival.
func (f *follower) replies(shard int32) (out []scheme.Decision) {
	for k, ev := range f.history {
		if ev.Kind != scheme.Wanted || f.spent[k] {
			continue
		}
		if f.left[ev.Worker] {
			f.spent[k] = true
			continue
		}
		if ev.Iter <= f.v {
			f.spent[k] = true
			out = append(out, scheme.Decision{Kind: scheme.Reply, Worker: ev.Worker, Shard: shard,
				Iter: max(ev.Iter, f.clock[ev.Worker], f.v), Src: scheme.SlotParams})
		}
	}
	return out
}

// The shard that follows decides, event by event, as the plain one does.
func TestFollowIsItsDumbTwin(t *testing.T) {
	eachStep(t, func(t *rapid.T, v schemetest.Variant, workers int) {
		p := newPair(t, v, workers)
		twin := &follower{rank: v.Common.Fold == scheme.FoldRank, clock: make([]int64, workers),
			left: make([]bool, workers), spent: map[int]bool{}}
		p.see = func(ev scheme.Event, got []scheme.Decision) {
			if want := twin.step(ev); !slices.Equal(got, want) {
				t.Fatalf("%v: decided\n%v\nthe twin\n%v\nstate %v", ev, got, want, p.schemes[1])
			}
		}
		p.run()
	})
}

func TestClosedThatNoLeaderMaySendPanics(t *testing.T) {
	e, _ := scheme.All.Lookup("drop")
	params := &scheme.DropParams{Required: 2, Contributors: "step"}
	closed := func(iter int64, w, parts int32) scheme.Event {
		return scheme.Event{Kind: scheme.Closed, Shard: schemetest.Shard, Iter: iter, Worker: w, Parts: parts}
	}
	for name, events := range map[string][]scheme.Event{
		"a worker out of range":     {closed(0, 3, 1)},
		"nobody of one":             {closed(0, scheme.NoWorker, 1)},
		"one of nobody":             {closed(0, 1, 0)},
		"another before its end":    {closed(0, 1, 2), closed(1, 1, 2)},
		"an iteration out of order": {closed(3, 0, 1), closed(2, 1, 1)},
		"another shard's":           {{Kind: scheme.Closed, Shard: schemetest.Shard + 1, Worker: scheme.NoWorker}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := e.New(followEnv(3, true), scheme.Common{}, params)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if recover() == nil {
					t.Fatalf("accepted it: %v", fmt.Sprint(s))
				}
			}()
			for _, ev := range events {
				s.Step(ev, nil)
			}
		})
	}
}
