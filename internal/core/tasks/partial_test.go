package tasks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

var rewrite = flag.Bool("rewrite", false, "write the scripts anew")

func partialSpec(load int, order string, batching int) work.Spec {
	s := work.Defaults()
	s.Policy, s.Load, s.Order, s.Batching = work.Partial, load, order, batching
	return s
}

func orderText(o core.Order) string {
	t := o.Task
	what := map[core.OrderKind]string{core.Assign: "compute", core.CancelWork: "cancel"}[o.Kind]
	if o.Kind == core.Assign {
		what = []string{"compute and push", "compute and keep", "push the kept"}[t.Keep]
	}
	text := fmt.Sprintf("%s w%d@%d", what, t.Owner, t.Iter)
	if t.Parts > 1 {
		text += fmt.Sprintf(" part %d of %d", t.Part, t.Parts)
	}
	if t.From > 0 || o.Kind == core.Assign && t.To > 0 {
		text += fmt.Sprintf(" samples [%d, %d)", t.From, t.To)
	}
	return text
}

// script drives the policy of one worker, whose iterations are closed after so many tasks each.
func script(p core.Work, me int32, closed []int) string {
	var b strings.Builder
	say := func(ev core.WorkEvent, what string) (orders []core.Order) {
		orders = p.Step(ev, nil)
		var text []string
		for _, o := range orders {
			text = append(text, orderText(o))
		}
		fmt.Fprintf(&b, "%-22s %s\n", what, strings.Join(text, "; "))
		return orders
	}
	for iter, after := range closed {
		orders := say(core.WorkEvent{Kind: core.Starting, Task: core.Task{Owner: me, Parts: 1, Iter: int64(iter)}},
			fmt.Sprintf("iteration %d", iter))
		for n := 0; len(orders) > 0; n++ {
			if n == after {
				say(core.WorkEvent{Kind: core.Answered}, "all shards answer")
			}
			now := orders[0].Task
			orders = say(core.WorkEvent{Kind: core.Computed, Task: now}, fmt.Sprintf("computed w%d", now.Owner))
		}
		if after < 0 {
			say(core.WorkEvent{Kind: core.Answered}, "all shards answer")
		}
	}
	return b.String()
}

// What one worker does in three iterations: the first is closed when it has done all, the second at once, the third after a task.
func TestPartialScript(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		order        string
		me           int32
		load, batche int
	}{{work.Cyclic, 3, 3, 1}, {work.Staircase, 3, 3, 2}, {work.Staircase, 0, 4, 4}} {
		fmt.Fprintf(&b, "worker %d of 5, %s, load %d, batching %d\n", c.me, c.order, c.load, c.batche)
		b.WriteString(script(New(partialSpec(c.load, c.order, c.batche), Env{Me: c.me, Batches: []int{8, 8, 8, 8, 8}}), c.me, []int{-1, 0, 1}))
		b.WriteByte('\n')
	}
	file := filepath.Join("testdata", "partial.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v; got\n%swant\n%s", err, b.String(), want)
	}
}

// twinOf is the list of what a worker pushes in an iteration, as the notes have it: workers and partitions count from 1. A message has
// m results.
func twinOf(n, i, r, m int, order string) (messages [][]int32) {
	var message []int32
	for j := 1; j <= r; j++ {
		to := (i+j-2)%n + 1
		if order == work.Staircase {
			sign := 1
			if (i-1)%2 == 1 {
				sign = -1
			}
			to = ((i-1+sign*(j-1))%n+n)%n + 1
		}
		message = append(message, int32(to-1))
		if j%m == 0 || j == r {
			messages = append(messages, message)
			message = nil
		}
	}
	return messages
}

// A worker computes each of its partitions once, its own first; what it pushes together, and in what order the messages are, is what the
// formula says. After it was answered it begins nothing.
func TestPartialIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "workers")
		r, m := rapid.IntRange(1, n).Draw(t, "load"), rapid.IntRange(1, n+2).Draw(t, "batching")
		order := rapid.SampledFrom([]string{work.Cyclic, work.Staircase}).Draw(t, "order")
		me := rapid.IntRange(0, n-1).Draw(t, "me")
		p := New(partialSpec(r, order, m), Env{Me: int32(me), Batches: slices.Repeat([]int{4}, n)})
		for iter := range int64(rapid.IntRange(1, 3).Draw(t, "iterations")) {
			closes := rapid.IntRange(1, 3*n).Draw(t, "closes")
			var kept, computed []int32
			var messages [][]int32
			orders := p.Step(core.WorkEvent{Kind: core.Starting, Task: core.Task{Owner: int32(me), Parts: 1, Iter: iter}}, nil)
			for k := 1; len(orders) > 0; k++ {
				task := orders[0].Task
				if len(orders) != 1 || orders[0].Kind != core.Assign || task.Iter != iter || task.Parts != 1 || task.To != 0 {
					t.Fatalf("orders %+v", orders)
				}
				switch task.Keep {
				case core.Kept:
					kept = append(kept, task.Owner)
					computed = append(computed, task.Owner)
				case core.NotKept:
					computed = append(computed, task.Owner)
					messages = append(messages, append(slices.Clone(kept), task.Owner))
				case core.Again:
					if len(kept) == 0 || kept[0] != task.Owner {
						t.Fatalf("pushes %d of the kept %v", task.Owner, kept)
					}
					kept = kept[1:]
				}
				if k == closes {
					if c := p.Step(core.WorkEvent{Kind: core.Answered}, nil); len(c) != 1 || c[0].Kind != core.CancelWork ||
						c[0].Task.Owner != task.Owner || c[0].Task.To != 0 {
						t.Fatalf("answered while it computes %+v: %+v", task, c)
					}
					if after := p.Step(core.WorkEvent{Kind: core.Computed, Task: task}, nil); len(after) > 0 {
						t.Fatalf("the iteration is closed, and it begins %+v", after)
					}
					orders, kept = nil, nil
					continue
				}
				orders = p.Step(core.WorkEvent{Kind: core.Computed, Task: task}, nil)
			}
			want := twinOf(n, me+1, r, m, order)
			if len(messages) > len(want) || !slices.EqualFunc(messages, want[:len(messages)], slices.Equal[[]int32]) || computed[0] != int32(me) {
				t.Fatalf("messages %v of computed %v, want %v", messages, computed, want)
			}
		}
	})
}

// Each partition has as many copies as the load, the first results of all workers are different partitions, and no
// worker has a partition twice.
func TestOwnersCoverAlike(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for load := 1; load <= n; load++ {
			copies := make([]int, n)
			for i, of := range Owners(partialSpec(load, work.Cyclic, 1), n) {
				for _, j := range of {
					copies[j]++
				}
				if of[0] != int32(i) {
					t.Errorf("worker %d of %d begins with %d", i, n, of[0])
				}
			}
			if slices.Min(copies) != load || slices.Max(copies) != load {
				t.Errorf("%d workers, load %d: copies %v", n, load, copies)
			}
			for i, of := range Owners(partialSpec(load, work.Staircase, 1), n) {
				sorted := slices.Sorted(slices.Values(of))
				if len(slices.Compact(sorted)) != load || of[0] != int32(i) {
					t.Errorf("staircase: worker %d of %d computes %v", i, n, of)
				}
			}
		}
	}
}

// The stall report says which partitions are left.
func TestPartialSaysWhatIsLeft(t *testing.T) {
	p := New(partialSpec(3, work.Cyclic, 1), Env{Me: 2, Batches: []int{8, 8, 8, 8}}).(*partial)
	p.Step(core.WorkEvent{Kind: core.Starting, Task: core.Task{Owner: 2, Parts: 1, Iter: 5}}, nil)
	p.Step(core.WorkEvent{Kind: core.Computed}, nil)
	if got, want := p.String(), "partial: of iteration 5 it came to partition 3 of [2 3 0], and [0] are left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Step(core.WorkEvent{Kind: core.Answered}, nil)
	if got, want := p.String(), "partial: every shard has closed iteration 5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
