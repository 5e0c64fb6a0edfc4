package scheme_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// versions records the content of each version of the parameters, and the content that each worker reads.
type versions struct {
	pending []string
	params  []string
	reads   map[int64]map[string]bool // iteration to the different contents that workers start it from
}

func (v *versions) obey(ds []scheme.Decision) {
	for _, d := range ds {
		switch d.Kind {
		case scheme.Fold:
			if d.Scale == 0 {
				v.pending = nil
			}
			v.pending = append(v.pending, fmt.Sprintf("w%d i%d", d.Worker, d.Iter))
		case scheme.Commit:
			v.params = append(slices.Clone(v.params), v.pending...)
		case scheme.Reply:
			sorted := slices.Sorted(slices.Values(v.params))
			if v.reads[d.Iter] == nil {
				v.reads[d.Iter] = map[string]bool{}
			}
			v.reads[d.Iter][fmt.Sprint(sorted)] = true
		}
	}
}

// TestBSPReadsOneVersion: FluentPS, BSP race [X]. With strict, every worker of an iteration starts from the same
// parameters: exactly the pushes of all iterations before it, whatever the order of messages.
func TestBSPReadsOneVersion(t *testing.T) {
	for _, fold := range []string{"rank", "arrival"} {
		v := setting(t, "bsp", "fold="+fold+" strict=true")
		rapid.Check(t, func(rt *rapid.T) {
			env := scheme.Env{Workers: rapid.SampledFrom([]int{2, 3, 5}).Draw(rt, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1}
			reads := versions{reads: map[int64]map[string]bool{}}
			d := schemetest.Driver{Env: env, Plain: true, See: func(_ scheme.Event, ds []scheme.Decision) { reads.obey(ds) }}
			d.Run(rt, v.New(env))
			for i, contents := range reads.reads {
				var want []string
				for before := range i {
					for w := range env.Workers {
						want = append(want, fmt.Sprintf("w%d i%d", w, before))
					}
				}
				slices.Sort(want)
				if len(contents) != 1 || !contents[fmt.Sprint(want)] {
					rt.Fatalf("fold %s: iteration %d starts from %v, want from %v alone", fold, i, contents, want)
				}
			}
		})
	}
}

// TestBSPRace: FluentPS, BSP race [X]: exactly this race, with strict: false as in the released code. The last pusher
// of iteration 0 releases the other worker, whose push 1 overtakes its pull.
func TestBSPRace(t *testing.T) {
	reads := func(keys string) int {
		s := shardOf(setting(t, "bsp", keys), 2)
		v := versions{reads: map[int64]map[string]bool{}}
		for _, ev := range []scheme.Event{
			{Kind: scheme.Pushed, Worker: 1, Owner: 1, Iter: 0},
			{Kind: scheme.Wanted, Worker: 1, Iter: 1},
			{Kind: scheme.Pushed, Worker: 0, Owner: 0, Iter: 0},
			{Kind: scheme.Pushed, Worker: 1, Owner: 1, Iter: 1},
			{Kind: scheme.Wanted, Worker: 0, Iter: 1},
		} {
			ev.Parts, ev.Samples = 1, 1
			v.obey(s.Step(ev, nil))
		}
		return len(v.reads[1])
	}
	for keys, want := range map[string]int{
		"fold=arrival strict=false": 2, "fold=arrival strict=true": 1, "fold=rank strict=true": 1,
	} {
		if got := reads(keys); got != want {
			t.Errorf("%s: iteration 1 starts from %d different versions, want %d", keys, got, want)
		}
	}
}

// TestBSPIsSequentialSum: FluentPS invariant P4: with fold: rank the parameters are, bit for bit, those of a
// loop over iterations and workers in rank order.
func TestBSPIsSequentialSum(t *testing.T) {
	gradient := func(w int32, i int64) float32 { // sums of these depend on their order
		return float32(math.Sin(float64(w)*7+float64(i))) * float32(math.Pow(10, float64(w)))
	}
	v := setting(t, "bsp", "fold=rank")
	rapid.Check(t, func(rt *rapid.T) {
		env := scheme.Env{Workers: 5, Shards: []int32{schemetest.Shard}, Servers: 1}
		var params, pending float32
		iterations := int64(0)
		d := schemetest.Driver{Env: env, Plain: true, See: func(_ scheme.Event, ds []scheme.Decision) {
			for _, d := range ds {
				switch d.Kind {
				case scheme.Fold:
					pending = float32(d.Scale)*pending + float32(d.Weight)*gradient(d.Worker, d.Iter)
				case scheme.Commit:
					params -= 0.1 * float32(d.Scale) * float32(d.Weight) * pending
					iterations = d.Iter + 1
				}
			}
		}}
		d.Run(rt, v.New(env))
		var want float32
		for i := range iterations {
			var sum float32
			for w := range int32(5) {
				sum += gradient(w, i)
			}
			want -= 0.1 * float32(1.0/(5*32)) * sum
		}
		if math.Float32bits(params) != math.Float32bits(want) {
			rt.Fatalf("%d iterations: parameters %x, sequential %x", iterations, math.Float32bits(params), math.Float32bits(want))
		}
	})
}

// TestBSPExamplesPerUpdate: MXNet kvstore, table of types [C]: dist_sync applies b*n examples per update, delay 0.
func TestBSPExamplesPerUpdate(t *testing.T) {
	for _, fold := range []string{"rank", "arrival"} {
		v := setting(t, "bsp", "fold="+fold)
		rapid.Check(t, func(rt *rapid.T) {
			plainRun(rt, v, func(ev scheme.Event, answered bool, all []scheme.Decision, b *pushCounts) {
				for _, d := range all {
					if d.Kind == scheme.Commit && d.Samples != 32*int64(len(b.pushes)) {
						rt.Fatalf("%v: %v, want 32 samples of each of %d workers", ev, d, len(b.pushes))
					}
				}
				if ev.Kind == scheme.Wanted && answered != (ev.Iter <= b.v) {
					rt.Fatalf("%v at v=%d: answered %v", ev, b.v, answered)
				}
			})
		})
	}
}

// TestBSPDuplicateCannotEndRound: MXNet kvstore, pitfalls [C]: it counts requests, so a resent push ends a round early.
// Ours counts workers. The server node must remove a duplicate; here it panics.
func TestBSPDuplicateCannotEndRound(t *testing.T) {
	s := shardOf(setting(t, "bsp", "fold=rank"), 2)
	push := scheme.Event{Kind: scheme.Pushed, Worker: 0, Parts: 1, Samples: 1}
	s.Step(push, nil)
	mustPanic(t, "iteration already closed", func() { s.Step(push, nil) })
	if want := "bsp v=0 clocks=1,0 staged=1"; s.String() != want {
		t.Errorf("%v, want %s", s, want)
	}
}

// TestBSPLeave: FluentPS, edge cases, finish [C, X]: nobody waits for a worker that has left, its pushes count, and
// several iterations may close at once (always a loop, never an if).
func TestBSPLeave(t *testing.T) {
	s := shardOf(setting(t, "ssp", "fold=rank staleness=2 release=lazy"), 3)
	for i := range int64(2) {
		for w := range int32(2) {
			s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 4}, nil)
		}
	}
	s.Step(scheme.Event{Kind: scheme.Left, Worker: 0}, nil)
	var commits []string
	for _, d := range s.Step(scheme.Event{Kind: scheme.Left, Worker: 2}, nil) {
		if d.Kind == scheme.Commit {
			commits = append(commits, fmt.Sprintf("i%d n%d", d.Iter, d.Samples))
		}
	}
	if got := fmt.Sprint(commits); got != "[i0 n8 i1 n8]" {
		t.Errorf("committed %s", got)
	}
	if want := "ssp v=2 clocks=left,2,left"; s.String() != want {
		t.Errorf("%v, want %s", s, want)
	}
}
