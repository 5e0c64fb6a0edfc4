package check

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/plan/build"
	"fluentps/internal/policy/work"
	"fluentps/internal/policy/work/code"
	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
	"fluentps/ps/scheme"
)

// sharers are dumb policies that know of each other only by messages. Now and then a sharer gives the end of its batch to another worker,
// in one part or two, and wants it back, or part of it cancelled. Now and then it cancels samples of its own. If a worker is gone, those
// who gave it samples compute them themselves.
type sharers struct {
	r       *rand.Rand
	batches []int
	cut     map[[2]int64]int64 // by owner and iteration: samples that no one computes

	given, returned, taken, cancelled int // to see that all of it happens
}

// Messages between sharers. Part is the part, Samples and Correct its first sample and the one behind it.
const (
	sharerGive   = iota // compute this part
	sharerReturn        // return it if you have not begun it
	sharerCancel        // leave out what you have not begun
	sharerYours         // I do not compute it
)

type sharer struct {
	*sharers
	me    int32
	iter  int64
	gone  []bool
	left  bool
	lent  []lent // of this iteration
	begun map[sharedPart]int32
}

type lent struct {
	to       int32
	task     core.Task
	returned bool
}

type sharedPart struct {
	owner, part int32
	iter        int64
}

func (s *sharers) policy(worker int) core.Work {
	return &sharer{sharers: s, me: int32(worker), iter: -1, gone: make([]bool, len(s.batches)), begun: map[sharedPart]int32{}}
}

func (p *sharer) tell(to int32, kind uint8, t core.Task) core.Order {
	return core.Order{Kind: core.Tell, To: to,
		Msg: wire.Header{Flags: kind, Owner: t.Owner, Iter: t.Iter, Part: t.Part, Samples: int64(t.From), Correct: int64(t.To)}}
}

func (p *sharer) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	t := ev.Task
	name := sharedPart{t.Owner, t.Part, t.Iter}
	switch ev.Kind {
	case core.Starting:
		return p.starting(t, out)
	case core.Begun:
		p.begun[name] = t.From
	case core.Stepped:
		if _, known := p.begun[name]; known {
			p.begun[name] = int32(ev.Samples)
		}
		if t.Owner == p.me && t.Part == 0 && p.r.IntN(12) == 0 {
			return p.cuts(t, int32(ev.Samples), out)
		}
	case core.Computed:
		delete(p.begun, name)
		for i := range p.lent {
			if l := &p.lent[i]; t.Owner == p.me && t.Part == 0 && !l.returned && !p.gone[l.to] && p.r.IntN(2) == 0 {
				out = append(out, p.tell(l.to, []uint8{sharerReturn, sharerCancel}[p.r.IntN(2)], l.task))
			}
		}
	case core.Came:
		return p.came(&ev.Msg, out)
	case core.Gone:
		p.gone[t.Owner] = true
		for i := range p.lent {
			if l := &p.lent[i]; l.to == t.Owner && !l.returned && !p.left {
				out = p.takes(l, out)
			}
		}
	case core.Leaves:
		p.left = true
	}
	return out
}

// starting begins an iteration, and gives the end of the batch away.
func (p *sharer) starting(t core.Task, out []core.Order) []core.Order {
	p.iter, p.lent = t.Iter, p.lent[:0]
	own, end := t, int32(p.batches[p.me])
	own.Grain = p.r.Int32N(3)
	parts := int32(1)
	for range p.r.IntN(3) {
		to := p.r.Int32N(int32(len(p.batches)))
		if to == p.me || p.gone[to] || end < 2 {
			continue
		}
		from := 1 + p.r.Int32N(end-1)
		l := lent{to: to, task: core.Task{Owner: p.me, Iter: t.Iter, Part: parts, From: from, To: end, Grain: p.r.Int32N(3)}}
		p.lent = append(p.lent, l)
		out = append(out, p.tell(to, sharerGive, l.task))
		p.given++
		parts, end = parts+1, from
	}
	own.Parts, own.To = parts, end
	return append(out, core.Order{Kind: core.Assign, Task: own})
}

// cuts leaves out some samples of the worker's own that have not begun.
func (p *sharer) cuts(t core.Task, begun int32, out []core.Order) []core.Order {
	end := int32(p.batches[p.me])
	for i := range p.lent {
		end = min(end, p.lent[i].task.From)
	}
	end -= int32(p.cut[[2]int64{int64(p.me), t.Iter}]) // cut before; what was lent is cut only later
	if begun >= end {
		return out
	}
	t.To = begun + p.r.Int32N(end-begun)
	p.cut[[2]int64{int64(p.me), t.Iter}] += int64(end - t.To)
	p.cancelled++
	return append(out, core.Order{Kind: core.CancelWork, Task: t})
}

// takes makes the worker compute what it has given away.
func (p *sharer) takes(l *lent, out []core.Order) []core.Order {
	l.returned = true
	p.taken++
	return append(out, core.Order{Kind: core.Assign, Task: l.task})
}

func (p *sharer) came(m *wire.Header, out []core.Order) []core.Order {
	t := core.Task{Owner: m.Owner, Iter: m.Iter, Part: m.Part, From: int32(m.Samples), To: int32(m.Correct)}
	name := sharedPart{t.Owner, t.Part, t.Iter}
	switch m.Flags {
	case sharerGive:
		if p.left || p.gone[m.Worker] || p.iter < 0 {
			return append(out, p.tell(m.Worker, sharerYours, t))
		}
		p.begun[name] = -1
		t.Grain = p.r.Int32N(3)
		return append(out, core.Order{Kind: core.Assign, Task: t})
	case sharerReturn:
		if begun, has := p.begun[name]; has && begun < 0 {
			delete(p.begun, name)
			p.returned++
			own := t
			own.To = t.From
			return append(out, core.Order{Kind: core.CancelWork, Task: own}, p.tell(m.Worker, sharerYours, t))
		}
	case sharerCancel:
		if begun, has := p.begun[name]; has && begun >= 0 && begun < t.To {
			p.cut[[2]int64{int64(t.Owner), t.Iter}] += int64(t.To - begun)
			p.cancelled++
			t.To = begun
			return append(out, core.Order{Kind: core.CancelWork, Task: t})
		}
	case sharerYours:
		for i := range p.lent {
			if l := &p.lent[i]; t.Owner == p.me && t.Iter == p.iter && l.task.Part == t.Part && !l.returned {
				return p.takes(l, out)
			}
		}
	}
	return out
}

// sharersOf draws sharers for a run, with draws of their own.
func sharersOf(o *sim.Options, seed uint64) *sharers {
	s := &sharers{r: rand.New(rand.NewPCG(seed, 72)), batches: o.Config.Batches(o.Config.Simulate.Workers), cut: map[[2]int64]int64{}}
	o.Axes = build.Axes{Work: s.policy, Parts: 3}
	return s
}

// taskCluster draws a random cluster whose workers compute for each other. ok is false if the draw does not go with it.
func taskCluster(t *testing.T, seed uint64) (o sim.Options, s *sharers, ok bool) {
	for try := uint64(0); try < 8 && !ok; try++ {
		r := rand.New(rand.NewPCG(seed+try<<40, 71))
		rule := randomScheme(r, true)
		if r.IntN(2) == 0 {
			rule = []string{"scheme: bsp", "scheme: asp", "scheme: ssp, staleness: 1", "scheme: drop, required: 2"}[r.IntN(4)]
		}
		set := []string{fmt.Sprintf(`sync=[{match: "*", %s}]`, rule), fmt.Sprintf("train.batch_per_worker=%d", 1+r.IntN(9)),
			"train.stop={" + []string{"samples: 200", "updates: 25", "time: 80ms", "samples: 300, time: 60ms"}[r.IntN(4)] + "}"}
		o, ok = randomCluster(t, seed+try<<40, set)
		ok = ok && !o.Config.DealsBatches() && o.Config.Sync[0].Push != "delta" && !wantsNorms(o.Config.Sync[0].Scheme, o.Config.Sync[0].Params)
	}
	if !ok {
		return o, nil, false
	}
	o.Joins = nil
	o.Replay = fmt.Sprintf("FLUENTPS_TEST_SIM_FIRST=%d FLUENTPS_TEST_SIM_SEEDS=1 go test ./internal/sim/check -run "+
		"TestLawsOfTasksOverManySeeds", seed)
	if seed%16 == 3 {
		withGradients(t, &o)
	}
	s = sharersOf(&o, seed)
	return o, s, true
}

// Random clusters whose workers give each other samples, take them back and cancel them, with faults, under all schemes that take parts:
// all laws hold, and an iteration has all its samples but those that were cancelled. Equal seeds give equal runs.
func TestLawsOfTasksOverManySeeds(t *testing.T) {
	first, n := simtest.SeedsFrom(t)
	if os.Getenv("FLUENTPS_TEST_SIM_SEEDS") == "" {
		n = 600
	}
	ran, lost, real, given, returned, taken, cancelled := 0, 0, 0, 0, 0, 0, 0
	schemes := map[string]int{}
	for k := range n {
		seed := uint64(first + k)
		o, s, ok := taskCluster(t, seed)
		if !ok {
			continue
		}
		r := runTasks(t, o, s)
		ran++
		lost += r.Lost
		given, returned, taken, cancelled = given+s.given, returned+s.returned, taken+s.taken, cancelled+s.cancelled
		schemes[o.Config.Sync[0].Scheme]++
		if o.Values != nil {
			real++
		}
		if k%16 == 3 || n == 1 {
			again, s2, _ := taskCluster(t, seed)
			if r2 := runTasks(t, again, s2); r2.Trace != r.Trace || r2.Summary.ParametersSHA256 != r.Summary.ParametersSHA256 {
				t.Fatalf("seed %d: trace %x, and then %x", seed, r.Trace, r2.Trace)
			}
		}
	}
	t.Logf("%d runs, %d with gradients, %d workers lost; parts: %d given away, %d returned, %d taken back, %d times "+
		"some samples cancelled; schemes %v", ran, real, lost, given, returned, taken, cancelled, schemes)
	if n > 100 && (ran < n/2 || lost < ran/4 || real < ran/64 || min(given, returned, taken, cancelled) < ran/2 || len(schemes) < 6) {
		t.Errorf("%d of %d seeds made a run: the draw is too narrow", ran, n)
	}
}

// runTasks runs sharers, and checks the samples of every iteration.
func runTasks(t *testing.T, o sim.Options, s *sharers) *sim.Result {
	t.Helper()
	o.Decided = func(ev scheme.Event, _ []scheme.Decision) {
		if ev.Kind != scheme.Pushed {
			return
		}
		whole, cut := int64(s.batches[ev.Worker]), s.cut[[2]int64{int64(ev.Worker), ev.Iter}]
		if got := ev.Samples; got > whole || got < whole-cut || len(o.Losses) == 0 && got != whole-cut {
			t.Errorf("iteration %d of worker %d has %d samples at shard %d, want all but %d of %d; %s", ev.Iter, ev.Worker,
				got, ev.Shard, cut, whole, o.Replay)
		}
	}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantsNorms(name string, p scheme.Params) bool {
	e, ok := scheme.All.Lookup(name)
	return !ok || e.WantsNorms(p)
}

// Random clusters and faults under the policies of the configuration.
func TestLawsOfTaskPoliciesOverManySeeds(t *testing.T) {
	first, n := simtest.SeedsFrom(t)
	if os.Getenv("FLUENTPS_TEST_SIM_SEEDS") == "" {
		n = 400
	}
	lost, threads, alphas := 0, 0, 0
	ran, moved, cut, codes := map[string]int{}, map[string]int64{}, map[string]int64{}, [2]int64{}
	for k := range n {
		seed := uint64(first + k)
		o, _, ok := taskCluster(t, seed)
		if !ok {
			continue
		}
		o.Axes = build.Axes{}
		o.Config = withPolicy(o.Config, rand.New(rand.NewPCG(seed, 73)))
		o.Replay = fmt.Sprintf("FLUENTPS_TEST_SIM_FIRST=%d FLUENTPS_TEST_SIM_SEEDS=1 go test ./internal/sim/check -run "+
			"TestLawsOfTaskPoliciesOverManySeeds", seed)
		s, c := checked(t, o)
		r, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		name := o.Config.Work.Policy
		lost += r.Lost
		if o.Config.Work.Code.Alpha > 0 {
			alphas++
		}
		ran[name]++
		for _, w := range r.Summary.PerWorker {
			if o.Config.Work.ThreadsMax > 0 && float64(w.Threads) > float64(o.Config.Device.Threads) {
				threads++
			}
		}
		moved[name] += c.tasks.shards[0].merged
		cut[name] += c.tasks.cut
		codes[0], codes[1] = codes[0]+c.tasks.codes[0], codes[1]+c.tasks.codes[1]
		if k%16 == 3 || n == 1 {
			again, err := Run(o)
			if err != nil || again.Trace != r.Trace || again.Summary.ParametersSHA256 != r.Summary.ParametersSHA256 {
				t.Fatalf("seed %d, %s: trace %x, and then %x, %v", seed, name, r.Trace, again.Trace, err)
			}
		}
	}
	if n > 100 && threads == 0 {
		t.Error("no worker has got a thread")
	}
	t.Logf("%d workers have got threads; runs %v, parts merged %v, samples left out %v, %d workers lost; iterations "+
		"decoded exactly and not: %v, %d runs with private parts", threads, ran, moved, cut, lost, codes, alphas)
	if n > 100 && (min(codes[0], codes[1]) < int64(n/8) || alphas < n/64) {
		t.Errorf("iterations decoded exactly and not: %v, %d runs with private parts; the draw is too narrow", codes, alphas)
	}
	for _, name := range work.WithSteps() {
		e, _ := work.All.Lookup(name)
		if n > 100 && (ran[name] < n/8 || e.Moves != (moved[name] > 0) || (e.Moves || e.Copies || e.Coded) == (cut[name] > 0)) {
			t.Errorf("%s: %d runs, %d parts moved, %d samples cut", name, ran[name], moved[name], cut[name])
		}
	}
}

// withPolicy is a configuration with a policy that has steps.
func withPolicy(c *configs.Config, r *rand.Rand) *configs.Config {
	of := *c
	names := work.WithSteps()
	of.Work.Policy, of.Work.Micro = names[r.IntN(len(names))], r.IntN(4)
	of.Work.Time = time.Duration(1+r.IntN(6)) * time.Millisecond / 2
	of.Work.Help.Helpers = 1 + r.IntN(4)
	of.Work.Help.Ask, of.Work.Help.Behind, of.Work.Help.Left = 0.25+0.75*r.Float64(), 0.3*r.Float64(), 0.3*r.Float64()
	of.Work.Help.First, of.Work.Help.Next = 0.5*float64(r.IntN(3)), 0.5*r.Float64()+0.01
	if e, _ := work.All.Lookup(of.Work.Policy); e.Copies {
		n := of.Simulate.Workers
		of.Work.Load, of.Work.Batching, of.Work.Order = 1+r.IntN(n), 1+r.IntN(4), []string{work.Cyclic, work.Staircase}[r.IntN(2)]
		of.Sync = slices.Clone(of.Sync)
		for i := range of.Sync {
			of.Sync[i].Phase = configs.Phase{Scheme: e.Scheme, Common: scheme.Common{Fold: scheme.FoldRank},
				Params: &scheme.DropParams{Required: int64(r.IntN(n + 1)), Contributors: "shard"}}
			of.Sync[i].Then = nil
		}
	}
	if of.Work.Policy == "epsp" && r.IntN(2) == 0 {
		of.Device.Kind, of.Device.Threads = "cpu", 1+r.IntN(4)
		of.Work.ThreadsMax, of.Simulate.RanksPerHost = of.Device.Threads+r.IntN(4), 2+r.IntN(7)
	}
	if of.Work.Policy == "dropcompute" && r.IntN(2) == 0 {
		of.Work.Time, of.Work.Profile = 0, int64(1+r.IntN(4)) // tau is chosen
	}
	if e, _ := work.All.Lookup(of.Work.Policy); e.Coded {
		n := of.Simulate.Workers
		of.Work.Code = work.Code{Kind: []string{"auto", "cyclic"}[r.IntN(2)], Stragglers: r.IntN(min(n, 4)), Draws: 3, ConditionMax: 1e12}
		if r.IntN(3) == 0 {
			of.Work.Code.Deadline = time.Duration(1+r.IntN(20)) * time.Millisecond / 2
		}
		alpha := []float64{1.2, 2, 5}[r.IntN(3)]
		if s := of.Work.Code.Stragglers; r.IntN(2) == 0 && s > 0 && code.Private(slices.Min(of.Batches(n)), s, alpha) > 0 {
			of.Work.Code.Alpha = alpha
		}
		of.Sync = slices.Clone(of.Sync)
		for i := range of.Sync {
			of.Sync[i].Phase = configs.Phase{Scheme: e.Scheme, Common: scheme.Common{Fold: scheme.FoldRank}, Params: &scheme.CodedParams{}}
			of.Sync[i].Then = nil
		}
	}
	return &of
}
