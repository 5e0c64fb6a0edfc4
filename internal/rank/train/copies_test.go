package train_test

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/rank/sidestest"
)

// The copy of a single worker equals its server's parameters to the bit: the worker adds its own updates as the server's
// commits do, also those that a published version lacks. So it trains the same parameters whether it pulls before every
// iteration, keeps a cache, or has versions published to it; on a rank of its own or on the server's; in one piece or many.
func TestALoneWorkersCopyIsTheServersToTheBit(t *testing.T) {
	for _, world := range []struct {
		ranks int
		set   []string
	}{
		{2, []string{"cluster.servers=1"}},
		{4, []string{"cluster.servers=3", "model={name: mlp, layers: [16]}", "shards.max_bytes=128B"}},
		{1, []string{"cluster.servers=1", "cluster.placement=colocate", "model={name: mlp, layers: [16]}"}},
	} {
		for _, rule := range []string{"ssp, push: delta, cache: true, staleness: 3",
			"ssp, push: delta, cache: true, weight: 0.3, staleness: 2", "essp, staleness: 2",
			"essp, staleness: 0, weight: 0.3", "essp, staleness: 40"} {
			t.Run(fmt.Sprintf("%d ranks, %s", world.ranks, rule), func(t *testing.T) {
				got := mustTrain(t, load(t, append(world.set, "train.stop={updates: 60}", "sync=[{match: '*', scheme: "+rule+"}]")...), world.ranks)
				n := got.Workers[0].Iterations
				weight := ""
				if strings.Contains(rule, "weight") {
					weight = ", weight: 0.3"
				}
				asp := fmt.Sprintf("sync=[{match: '*', scheme: asp, push: delta%s}]", weight)
				want := mustTrain(t, load(t, append(world.set, fmt.Sprintf("train.stop={updates: %d}", n), asp)...), world.ranks)
				if got.SHA256() != want.SHA256() || want.Workers[0].Iterations != n {
					t.Errorf("%d iterations give %.12s, asp gives %.12s in %d", n, got.SHA256(), want.SHA256(), want.Workers[0].Iterations)
				}
				readsOwnCopies(t, got, rule)
			})
		}
	}
}

// readsOwnCopies checks the counts of a lone worker's pulls and of reads of its copies.
func readsOwnCopies(t *testing.T, got *sidestest.Result, rule string) {
	t.Helper()
	n, cached, published := got.Workers[0].Iterations, strings.Contains(rule, "cache"), strings.HasPrefix(rule, "essp")
	for _, sh := range got.Shards() {
		st, reads := sh.State.Stats, got.Workers[0].Cached[sh.State.ID]
		if (reads > 0) != cached || (st.Published > 0) != published || sh.Stale.Max() != 0 {
			t.Errorf("shard %d: %d cached reads, %d published versions, staleness %d", sh.State.ID, reads, st.Published, sh.Stale.Max())
		}
		asked := int64(0) // at the end, when the budget may be used up before the next version arrives
		if sh.State.ID == 0 {
			var s int64
			_, after, _ := strings.Cut(rule, "staleness: ")
			if _, err := fmt.Sscan(after, &s); err != nil {
				t.Fatal(err)
			}
			asked = s + 2
		}
		if published && (st.Pulls < 1 || st.Pulls > 1+asked) || cached && st.Pulls+reads != n+1 {
			t.Errorf("shard %d: %d pulls and %d cached reads in %d iterations", sh.State.ID, st.Pulls, reads, n)
		}
	}
}
