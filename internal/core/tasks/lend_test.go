package tasks

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// lenderOf is the lender of a policy that moves samples.
func lenderOf(p core.Work) *lender {
	if e, ok := p.(*epsp); ok {
		return &e.lender
	}
	return &p.(*flexRR).lender
}

// moving are the policies that move samples.
func moving() (names []string) {
	for _, e := range work.All {
		if _, ok := policies[e.Name]; ok && e.Moves {
			names = append(names, e.Name)
		}
	}
	return names
}

// specOf draws the settings of a policy.
func specOf(t *rapid.T, policy string) work.Spec {
	s := work.Defaults()
	s.Policy = policy
	s.Micro = rapid.IntRange(0, 4).Draw(t, "micro")
	s.Help = work.Help{
		Helpers: rapid.IntRange(1, 4).Draw(t, "helpers"),
		Ask:     rapid.SampledFrom([]float64{0.75, 0.1, 1}).Draw(t, "ask"),
		Behind:  rapid.SampledFrom([]float64{0.2, 0, 1}).Draw(t, "behind"),
		Left:    rapid.SampledFrom([]float64{0.05, 0, 0.5}).Draw(t, "left"),
		First:   rapid.SampledFrom([]float64{0.025, 0, 0.3, 1}).Draw(t, "first"),
		Next:    rapid.SampledFrom([]float64{0.05, 0.4, 1}).Draw(t, "next"),
	}
	s.Alpha = rapid.SampledFrom([]float64{0.2, 0, 1}).Draw(t, "alpha")
	s.Rate = rapid.SampledFrom([]float64{0.3, 0.01, 1}).Draw(t, "rate")
	if policy == "epsp" {
		s.ThreadsMax = rapid.SampledFrom([]int{0, modelBase + 1, 8}).Draw(t, "threads")
	}
	return s
}

// specOfThreads is EPSP with so many threads at most, in steps of two samples.
func specOfThreads(most int) work.Spec {
	s := work.Defaults()
	s.Policy, s.Micro, s.ThreadsMax = "epsp", 2, most
	return s
}

// randomCluster draws a cluster in which everything may take any time, and workers leave early or are lost.
func randomCluster(t *rapid.T, policy string, loses bool) *model {
	n := rapid.IntRange(2, 5).Draw(t, "workers")
	batches, iterations := make([]int, n), make([]int64, n)
	for w := range n {
		batches[w] = rapid.IntRange(1, 12).Draw(t, "batch")
		iterations[w] = int64(rapid.IntRange(1, 5).Draw(t, "iterations"))
	}
	m := newModel(specOf(t, policy), batches, iterations)
	m.fail = t.Fatalf
	m.ahead = int64(rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "ahead"))
	times := []time.Duration{0, 1, 10, 100, time.Microsecond, 10 * time.Microsecond}
	m.delay = func(what string) time.Duration { return times[rapid.IntRange(0, len(times)-1).Draw(t, what)] }
	m.dropped = func() bool { return rapid.Bool().Draw(t, "dropped") }
	speeds := make([]int, n)
	for w := range n {
		speeds[w] = rapid.SampledFrom([]int{10, 1, 100, 1000}).Draw(t, "cost")
	}
	m.cost = func(w int32, _ time.Duration) float64 {
		return float64(speeds[w] * rapid.SampledFrom([]int{1, 1, 1, 3, 0}).Draw(t, "slower"))
	}
	for w := range n {
		if loses && w > 0 && rapid.Bool().Draw(t, "lost") {
			m.after(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "lost at")), func() { m.lose(m.workers[w]) })
		}
	}
	return m
}

// Workers of any speed lend each other samples, in any order of messages; some leave early and some are lost. Each sample of
// each iteration counts once, a part that is computed twice has the same samples, nobody waits for ever, no ledger keeps what is over,
// and there are few messages for each chunk.
func TestSamplesAreLentAndComputedOnce(t *testing.T) {
	for _, policy := range moving() {
		for _, loses := range []bool{false, true} {
			t.Run(policy+map[bool]string{true: " with losses"}[loses], func(t *testing.T) {
				happened := map[string]int{}
				tenTimes(t, func(t *rapid.T) { lentAndComputedOnce(t, policy, loses, happened) })
				if policy == "epsp" && happened["thread"] == 0 {
					t.Error("no thread has moved")
				}
				want := []string{"give", "begun", "done", "recall", "yours", "recall crosses begun", "give to one that has left", "gone has samples"}
				for _, what := range want {
					if happened[what] == 0 && (loses || what != "gone has samples") {
						t.Errorf("%q never happened: %v", what, happened)
					}
				}
			})
		}
	}
}

func lentAndComputedOnce(t *rapid.T, policy string, loses bool, happened map[string]int) {
	m := randomCluster(t, policy, loses)
	recalled := map[modelPart]bool{}
	m.said = func(_ time.Duration, from, to int32, msg wire.Header) {
		part := modelPart{modelIter{msg.Owner, msg.Iter}, msg.Part}
		if int(msg.Flags) < len(chunkKinds) {
			happened[chunkKinds[msg.Flags]]++
		}
		switch helper := m.workers[to]; {
		case msg.Flags == recall:
			recalled[part] = true
			if find := lenderOf(helper.policy).find(msg.Owner, msg.Iter, msg.Part); find >= 0 && lenderOf(helper.policy).borrowed[find].hasBegun {
				happened["recall crosses begun"]++
			}
		case msg.Flags == give && lenderOf(helper.policy).left:
			happened["give to one that has left"]++
		}
	}
	m.lost = func(w int32) {
		for _, k := range m.workers {
			if l := lenderOf(k.policy); l.hasChunkAt(w) {
				happened["gone has samples"]++
			}
		}
	}
	m.run(200_000)
	happened["thread"] += m.threads.moved
	for _, w := range m.workers {
		if l := lenderOf(w.policy); !w.lost && (len(l.borrowed) > 0 || len(w.queue) > 0) {
			t.Fatalf("worker %d has left and still has borrowed %+v, queue %+v", w.me, l.borrowed, w.queue)
		}
	}
	if most := messagesMax(m, policy); m.messages > most {
		t.Fatalf("%d messages, at most %d are expected: %d chunks, %d computations", m.messages, most, m.gives, m.computations)
	}
}

// chunkKinds names the messages about chunks.
var chunkKinds = [...]string{give: "give", begun: "begun", done: "done", recall: "recall", yours: "yours", landed: "landed"}

// messagesMax bounds the messages: at most four about a chunk, and those in which workers tell how far they are. A worker that is idle
// under epsp asks all others, which answer twice at most; then it takes, in vain if another one was first.
func messagesMax(m *model, policy string) int {
	n := len(m.batches)
	leaves := n * (n - 1)
	if policy == "epsp" {
		most := 0 // takes in vain: from each iteration of each other worker, once for each worker
		for _, w := range m.workers {
			most += int(w.iter+1) * (n - 1)
		}
		return leaves + 4*m.gives + (3*(n-1)+2)*(m.computations+most+n)
	}
	return leaves + 4*m.gives + min(m.spec.Help.Helpers, n-1)*2*m.computations
}

// tellings are the messages among orders, and the tasks that are assigned.
func tellings(orders []core.Order) (said []uint8, assigned []core.Task) {
	for _, o := range orders {
		switch o.Kind {
		case core.Tell:
			said = append(said, o.Msg.Flags)
		case core.Assign:
			assigned = append(assigned, o.Task)
		}
	}
	return said, assigned
}

// A worker holds a chunk of an iteration that it has not reached. It is not refused, and computed when the iteration starts;
// recalled before, or when the worker leaves, it goes back.
func TestChunksOfALaterIterationWait(t *testing.T) {
	gift := wire.Header{Worker: 1, Owner: 1, Iter: 3, Part: 2, Flags: give, Samples: 4, Correct: 8}
	for _, c := range []struct {
		name string
		next core.WorkEvent
		said []uint8
		then []core.Task // assigned
	}{
		{"its iteration starts", core.WorkEvent{Kind: core.Starting, Task: core.Task{Parts: 1, Iter: 3}}, nil,
			[]core.Task{{Parts: 1, Iter: 3, Grain: 2}, {Owner: 1, Part: 2, Iter: 3, From: 4, To: 8}}},
		{"an earlier one starts", core.WorkEvent{Kind: core.Starting, Task: core.Task{Parts: 1, Iter: 2}}, nil,
			[]core.Task{{Parts: 1, Iter: 2, Grain: 2}}},
		{"it is recalled", core.WorkEvent{Kind: core.Came,
			Msg: wire.Header{Worker: 1, Owner: 1, Iter: 3, Part: 2, Flags: recall}}, []uint8{yours}, nil},
		{"the worker leaves", core.WorkEvent{Kind: core.Leaves}, []uint8{yours}, nil},
		{"the owner is gone", core.WorkEvent{Kind: core.Gone, Task: core.Task{Owner: 1}}, nil, nil},
	} {
		l := newLender(work.Spec{Micro: 2}, Env{Batches: []int{8, 8}})
		if orders := l.follow(core.WorkEvent{Kind: core.Came, Msg: gift}, nil); len(orders) > 0 || l.hasBorrowed() {
			t.Fatalf("%s: ordered %+v at once", c.name, orders)
		}
		var orders []core.Order
		if c.next.Kind == core.Starting {
			orders = l.starting(c.next.Task, 8, nil, nil)
		} else {
			orders = l.follow(c.next, nil)
		}
		said, assigned := tellings(orders)
		if !slices.Equal(said, c.said) || !slices.Equal(assigned, c.then) {
			t.Errorf("%s: said %v, assigned %+v; want %v, %+v", c.name, said, assigned, c.said, c.then)
		}
		for _, o := range orders {
			if o.Kind == core.CancelWork {
				t.Errorf("%s: cancels %+v, which was never assigned", c.name, o.Task)
			}
		}
	}
}

// An owner computes again what a lost helper has pushed, because the push may be lost, but not what one has pushed that has left.
func TestWhatHasLandedIsNotComputedAgain(t *testing.T) {
	for _, left := range []bool{false, true} {
		l := newLender(work.Spec{Micro: 2}, Env{Batches: []int{8, 8}})
		l.starting(core.Task{Parts: 1}, 8, []loan{{1, 2}, {1, 3}}, nil)
		l.follow(core.WorkEvent{Kind: core.Came, Msg: wire.Header{Worker: 1, Flags: done, Part: 1}}, nil)
		if left {
			l.follow(core.WorkEvent{Kind: core.Came, Msg: wire.Header{Worker: 1, Flags: landed}}, nil)
		}
		_, again := tellings(l.follow(core.WorkEvent{Kind: core.Gone, Task: core.Task{Owner: 1}}, nil))
		if want := map[bool]int{false: 2, true: 1}[left]; len(again) != want {
			t.Errorf("the helper has left in peace: %v; %+v are computed again, want %d", left, again, want)
		}
	}
	helper := newLender(work.Spec{Micro: 2}, Env{Me: 1, Batches: []int{8, 8, 8}})
	helper.starting(core.Task{Owner: 1, Parts: 1}, 8, nil, nil)
	task := core.Task{Part: 1, From: 6, To: 8}
	helper.follow(core.WorkEvent{Kind: core.Came, Msg: wire.Header{Flags: give, Part: 1, Samples: 6, Correct: 8}}, nil)
	helper.follow(core.WorkEvent{Kind: core.Begun, Task: task}, nil)
	helper.follow(core.WorkEvent{Kind: core.Computed, Task: task, Samples: 2}, nil)
	out := helper.follow(core.WorkEvent{Kind: core.Leaves}, nil)
	if len(out) != 1 || out[0].To != 0 || out[0].Msg.Flags != landed {
		t.Errorf("a worker that has helped worker 0 says %+v when it leaves", out)
	}
}

// Where workers may skip iterations, a helper holds no chunk of an iteration that it has not reached: a shard may
// wait for that iteration of the owner before it lets the helper into it.
func TestChunksOfALaterIterationAreReturnedWhereWorkersSkip(t *testing.T) {
	for _, skips := range []bool{false, true} {
		l := newLender(work.Defaults(), Env{Me: 1, Batches: []int{8, 8}, Skips: skips})
		l.starting(core.Task{Owner: 1, Iter: 3, Parts: 1}, 8, nil, nil)
		out := l.came(&wire.Header{Kind: wire.Peer, Flags: give, Worker: 0, Owner: 0, Iter: 4, Part: 1, Samples: 6, Correct: 8}, nil)
		if isReturned := len(out) == 1 && out[0].Msg.Flags == yours; isReturned != skips || (len(l.borrowed) == 0) != skips {
			t.Errorf("skips %t: the answer is %+v, and %d chunks are kept", skips, out, len(l.borrowed))
		}
	}
}
