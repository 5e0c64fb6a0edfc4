package scheme_test

import (
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestDynSGDSingleVersion: DynSGD, single-version form [T]: d = (n - n_pulled) + 1, W := W + u/d, n := n + 1, with n
// the commits so far; the test counts n and n_pulled itself.
func TestDynSGDSingleVersion(t *testing.T) {
	v := setting(t, "dynsgd", "fold=arrival versions=single staleness=3 release=soft")
	rapid.Check(t, func(rt *rapid.T) {
		env := scheme.Env{Workers: rapid.IntRange(1, 5).Draw(rt, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1}
		pulled := make([]int64, env.Workers)
		n, want := int64(0), 0.0
		var s sums
		history, answers := record(rt, env, v.New(env), true)
		for k, ev := range history {
			if ev.Kind == scheme.Pushed {
				d := n - pulled[ev.Worker] + 1
				want += update(ev.Worker, ev.Iter) / float64(d)
				n++
				if env.Workers == 1 && d != 1 {
					rt.Fatalf("%v: delay %d of the only worker", ev, d)
				}
			}
			s.obey(answers[k], ev.Samples)
			if !near(s.params, want) {
				rt.Fatalf("after %v: parameters %v, want %v", ev, s.params, want)
			}
			for _, d := range replies(answers[k]) {
				pulled[d.Worker] = n
			}
		}
	})
}

// TestDynSGDMultiVersion: DynSGD, multi-version form [M]: at all times W = W_0 + the sum over versions v of the mean u(v)
// of the updates made to v; the k-th of them moves W by (u - u(v))/k, so that each weighs 1/d(v) in the end.
func TestDynSGDMultiVersion(t *testing.T) {
	v := setting(t, "dynsgd", "fold=arrival versions=multi staleness=3 release=soft")
	rapid.Check(t, func(rt *rapid.T) {
		env := scheme.Env{Workers: rapid.IntRange(1, 5).Draw(rt, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1}
		works := make([]int64, env.Workers) // the test's own versions
		for w := range works {
			works[w] = -1
		}
		updates := [][]float64{{}}
		live := func() int64 {
			oldest := int64(len(updates) - 1)
			for _, n := range works {
				if n >= 0 {
					oldest = min(oldest, n)
				}
			}
			return int64(len(updates)) - oldest
		}
		var s sums
		history, answers := record(rt, env, v.New(env), true)
		for k, ev := range history {
			if ev.Kind == scheme.Pushed {
				n := works[ev.Worker]
				updates[n] = append(updates[n], update(ev.Worker, ev.Iter))
			}
			if ev.Kind == scheme.Left {
				works[ev.Worker] = -1
			}
			s.obey(answers[k], ev.Samples)
			want := 0.0
			for _, us := range updates {
				mean := 0.0
				for _, u := range us {
					mean += u / float64(len(us))
				}
				want += mean
			}
			if !near(s.params, want) {
				rt.Fatalf("after %v: parameters %v, want the sum of the means %v", ev, s.params, want)
			}
			for _, d := range replies(answers[k]) {
				if works[d.Worker] == int64(len(updates)-1) && live() < 3+2 {
					updates = append(updates, nil)
				}
				works[d.Worker] = int64(len(updates) - 1)
			}
		}
	})
}

// TestDynSGDMeanOfARound: DynSGD [M]: when all N workers have contributed to a version, its mean is the mean of their
// pushes, in any order of arrival; with one worker both forms are plain SGD.
func TestDynSGDMeanOfARound(t *testing.T) {
	for _, order := range [][]int32{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		sch := shardOf(setting(t, "dynsgd", "fold=arrival versions=multi staleness=3 release=soft"), 3)
		var s sums
		for _, w := range order {
			sch.Step(scheme.Event{Kind: scheme.Wanted, Worker: w}, nil)
		}
		for _, w := range order {
			s.obey(sch.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Samples: 8}, nil), 8)
		}
		if want := (update(0, 0) + update(1, 0) + update(2, 0)) / 3; !near(s.params, want) {
			t.Errorf("in order %v the parameters move by %v, want the mean %v", order, s.params, want)
		}
	}
	for _, versions := range []string{"single", "multi"} {
		v := setting(t, "dynsgd", "fold=arrival staleness=3 release=soft versions="+versions)
		env := scheme.Env{Workers: 1, Shards: []int32{schemetest.Shard}, Servers: 1}
		rapid.Check(t, func(rt *rapid.T) {
			var s sums
			want := 0.0
			history, answers := record(rt, env, v.New(env), true)
			for k, ev := range history {
				if ev.Kind == scheme.Pushed {
					want += update(0, ev.Iter)
				}
				s.obey(answers[k], ev.Samples)
			}
			if !near(s.params, want) {
				rt.Fatalf("%s, one worker: parameters %v, plain SGD %v", versions, s.params, want)
			}
		})
	}
}
