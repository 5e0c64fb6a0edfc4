package scheme_test

import (
	"math"
	"testing"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// Where batches differ, a sample weighs the same in whatever push it comes: each scheme that makes versions of single
// pushes, or of some, gives it the weight of a push over the samples of an average one. Without batches that differ,
// each push has the same weight.
func TestSamplesWeighTheSame(t *testing.T) {
	const average = 8.0
	for name, keys := range map[string]string{
		"asp": "", "ssp": "fold=arrival staleness=3", "bounded_delay": "fold=arrival tau=3", "pssp": "fold=arrival",
		"dssp": "fold=arrival", "softsync": "q=2", "softsync ": "q=2 lambda0=1", "consgd": "", "dynsgd": "",
		"ringmaster": "delay_threshold=100",
	} {
		for _, differ := range []bool{false, true} {
			v := setting(t, map[bool]string{true: "softsync", false: name}[name == "softsync "], keys)
			env := scheme.Env{Workers: 3, Shards: []int32{schemetest.Shard}, Servers: 1}
			if differ {
				env.Samples = average
			}
			s := v.New(env)
			var folds []scheme.Decision // since the last commit
			samples := []int64{4, 16, 4, 8, 2, 14, 6}
			commits, weight := 0, 0.0
			for k := range len(samples) + 3 {
				w := int32(k % 3)
				ev := scheme.Event{Kind: scheme.Left, Worker: w, Owner: w, Shard: schemetest.Shard} // what is pending is committed when all have left
				if k < len(samples) {
					ev = scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Shard: schemetest.Shard,
						Iter: int64(k / 3), Seen: int64(commits), Samples: samples[k]}
				}
				for _, d := range s.Step(ev, nil) {
					switch d.Kind {
					case scheme.Fold:
						folds = append(folds, d)
					case scheme.Commit:
						commits++
						for _, f := range folds {
							of := samples[int(f.Iter)*3+int(f.Worker)]
							per := f.Weight * d.Weight * d.Scale // of a sample
							if !differ && len(folds) == 1 {
								per *= float64(of) // of a push
							}
							if commits == 1 && f.Worker == folds[0].Worker {
								weight = per
							}
							if (differ || v.Entry.Name != "softsync") && math.Abs(per-weight) > 1e-12 {
								t.Errorf("%s, batches differ %t: a push of %d samples weighs %g, the first %g", v.Entry.Name, differ, of, per, weight)
							}
						}
						folds = folds[:0]
					}
				}
			}
			if want := map[bool]int{true: 4, false: len(samples)}[v.Entry.Name == "softsync"]; commits != want ||
				weight <= 0 || differ &&
				math.Abs(weight*average-map[bool]float64{true: 1.0 / 2, false: 1.0 / 3}[v.Entry.Name == "softsync"]) > 1e-12 &&
				v.Entry.Name != "dynsgd" && v.Entry.Name != "consgd" {
				t.Errorf("%s, batches differ %t: %d commits, want %d; the first weighs %g", v.Entry.Name, differ, commits, want, weight)
			}
		}
	}
}
