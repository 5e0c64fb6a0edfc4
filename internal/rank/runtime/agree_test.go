package runtime

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/core/servernode"
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
		begin := beginTogether(4)
		res, errs := world(t, c, 7, func(o *Options) {
			begin(o)
			o.Decided = servernode.Decided(func(_ scheme.Event, decisions []scheme.Decision) {
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
			})
		})
		for i, err := range errs {
			if err != nil {
				t.Fatalf("rank %d: %v", i, err)
			}
		}
		s := res[0].Summary
		lead, followers := int32(-1), 0
		for _, sh := range s.PerShard {
			if sh.Scheme != "drop" {
				continue
			}
			if sh.Dropped == 0 || sh.Pushes != sumIterations(s) {
				t.Errorf("shard %d got %d pushes of %d and dropped %d", sh.Shard, sh.Pushes, sumIterations(s), sh.Dropped)
			}
			if lead < 0 {
				lead = int32(sh.Shard)
				continue
			}
			followers++
			if got, want := text(sets[int32(sh.Shard)]), text(sets[lead]); got != want {
				t.Errorf("fold: %s: shard %d took\n%s\nshard %d, which leads,\n%s", fold, sh.Shard, got, lead, want)
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
	want := mustTrain(t, load(t), 6).Summary.ParametersSHA256
	for _, scheme := range []string{
		"scheme: drop, contributors: step",
		"schemes: [{scheme: drop, contributors: step, until: 9}, {scheme: bsp, until: 20}, {scheme: drop, contributors: step}]",
	} {
		if got := mustTrain(t, load(t, "sync=[{match: '*', "+scheme+"}]"), 6).Summary.ParametersSHA256; got != want {
			t.Errorf("%s: other bits than bsp", scheme)
		}
	}
}
