package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/rank/sidestest"
	"fluentps/ps/scheme"
)

// With contributors: step every shard of the rule takes the pushes of the same workers. The run has three servers, another
// rule that holds the lead shard, and a straggler whose pushes are mostly dropped.
func TestContributorsAreTheSameAtAllShardsOfARun(t *testing.T) {
	for _, fold := range []string{"rank", "arrival"} {
		c := load(t, "cluster.servers=3", "train.stop={samples: 2400}", straggler, "model={name: mlp, layers: [16]}",
			"sync=[{match: 'fc1.bias', scheme: asp}, {match: '*', scheme: drop, required: 3, contributors: step, fold: "+fold+"}]")
		var mu sync.Mutex
		sets := map[int32]map[int64][]int32{} // shard, iteration
		got := sidestest.Train(t, c, 7, sidestest.Options{Load: sidestest.Together(4),
			Decided: func(_ scheme.Event, decisions []scheme.Decision) {
				mu.Lock()
				defer mu.Unlock()
				for _, d := range decisions {
					if d.Kind == scheme.Fold {
						if sets[d.Shard] == nil {
							sets[d.Shard] = map[int64][]int32{}
						}
						sets[d.Shard][d.Iter] = append(sets[d.Shard][d.Iter], d.Worker)
					}
				}
			}})
		lead, followers := int32(-1), 0
		for _, sh := range got.Shards() {
			if rule := got.Plan.Shards[sh.State.ID].Rule; c.Sync[rule].Scheme != "drop" {
				continue
			}
			if st := sh.State.Stats; st.Dropped == 0 || st.Pushes != got.Pushes() {
				t.Errorf("shard %d got %d pushes of %d and dropped %d", sh.State.ID, st.Pushes, got.Pushes(), st.Dropped)
			}
			if lead < 0 {
				lead = sh.State.ID
				continue
			}
			followers++
			if its, want := text(sets[sh.State.ID]), text(sets[lead]); its != want {
				t.Errorf("fold: %s: shard %d took\n%s\nshard %d, which leads,\n%s", fold, sh.State.ID, its, lead, want)
			}
		}
		if lead < 1 || followers < 2 || strings.Count(text(sets[lead]), "\n") < 50 {
			t.Errorf("%d shards follow shard %d over %d iterations: the run says too little", followers, lead, strings.Count(text(sets[lead]), "\n"))
		}
	}
}

// text lists the contributors by iteration, one line each.
func text(sets map[int64][]int32) string {
	var lines []string
	for iter, who := range sets {
		who = slices.Clone(who)
		slices.Sort(who)
		lines = append(lines, fmt.Sprintf("%6d %v\n", iter, who))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Drop that requires all workers equals bsp to the bit, also in turn with bsp.
func TestDropOfAllWithContributorsOfAStepKeepsTheBits(t *testing.T) {
	want := mustTrain(t, load(t), 6).SHA256()
	for _, scheme := range []string{
		"scheme: drop, contributors: step",
		"schemes: [{scheme: drop, contributors: step, until: 9}, {scheme: bsp, until: 20}, {scheme: drop, contributors: step}]",
	} {
		if got := mustTrain(t, load(t, "sync=[{match: '*', "+scheme+"}]"), 6).SHA256(); got != want {
			t.Errorf("%s: other bits than bsp", scheme)
		}
	}
}
