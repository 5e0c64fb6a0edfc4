package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
)

// trainTogether trains with 2 servers and 4 workers that begin together.
func trainTogether(t testing.TB, c *configs.Config) *sidestest.Result {
	t.Helper()
	return sidestest.Train(t, c, 6, sidestest.Options{Load: sidestest.Together(4)})
}

func TestLeadKeepsItsBoundWithAStraggler(t *testing.T) {
	for _, c := range []struct {
		sync     string
		min, max int64
	}{
		{"{match: '*', scheme: bsp}", 0, 0},
		{"{match: '*', scheme: ssp, staleness: 3}", 3, 3},
		{"{match: '*', scheme: ssp, staleness: 3, release: lazy}", 3, 3},
		{"{match: '*', scheme: ssp, staleness: 2, release: block}", 1, 2},
		{"{match: '*', scheme: ssp, staleness: 2, fold: rank}", 2, 2},
		{"{match: '*', scheme: bounded_delay, tau: 3}", 3, 3},
		{"{match: '*', scheme: dssp, s_l: 2, s_u: 4}", 2, 4},
		{"{match: '*', scheme: pssp, staleness: 1, probability: 0.2, hard_cap: 4}", 2, 4},
		{"{match: '*', scheme: dsps, s_min: 1, s_max: 3, window: 4}", 1, 3},
		{"{match: '*', scheme: drop}", 0, 0},
		{"{match: '*', scheme: drop, required: 3}", 0, 0},
		{"{match: '*', scheme: drop, required: 1, fold: arrival}", 0, 0},
		{"{match: '*', scheme: softsync, q: 3, staleness: 2}", 2, 2},
		{"{match: '*', scheme: ssp, staleness: 3, push: delta, cache: true}", 3, 3},
		{"{match: '*', scheme: ssp, push: delta, staleness: 0, cache: true}", 0, 0},
		{"{match: '*', scheme: essp, staleness: 0}", 0, 0},
		{"{match: '*', scheme: essp, staleness: 3}", 3, 3},
		{"{match: '*', scheme: softsync}", 5, 1 << 40},
		{"{match: '*', scheme: r2sp, skip_after: 0}", 1, 1},
		{"{match: '*', scheme: r2sp}", 1, 1 << 40},
		{"{match: '*', scheme: asp}", 5, 1 << 40},
		{"{match: '*', scheme: ringmaster}", 5, 1 << 40},
		{"{match: '*', scheme: ringleader}", 5, 1 << 40},
		{"{match: '*', scheme: ringleader, staleness: 2}", 2, 2},
		{"{match: '*', scheme: rennala, pushes: 16}", 5, 1 << 40},
		{"{match: '*', scheme: quorum, required: 3}", 2, 1 << 40},
		{"{match: '*', scheme: vap, push: delta, v0: 1000}", 5, 1 << 40},
		{"{match: '*', scheme: vap, push: delta, v0: 1000, strict: false, staleness: 2}", 2, 2},
		{"{match: '*', scheme: pssp, mode: dynamic, significance: true, hard_cap: 4}", 2, 4},
	} {
		if stationtest.UnderRace && !strings.Contains(c.sync, "vap") && !strings.Contains(c.sync, "ringmaster") {
			continue // TestSchemesThroughSharedMemory runs the others
		}
		t.Run(c.sync, func(t *testing.T) {
			t.Parallel() // they mostly wait for the straggler
			samples := int64(1600)
			if drops := strings.Contains(c.sync, "drop, required"); drops {
				samples *= 20 // no worker waits for the straggler, whose first push takes 3 ms
			}
			got := trainTogether(t, load(t, "sync=["+c.sync+"]", straggler, fmt.Sprintf("train.stop={samples: %d}", samples)))
			if n := got.LeadMax(); n < c.min || n > c.max {
				t.Errorf("a lead of %d, want %d to %d", n, c.min, c.max)
			}
			if got.Committed() < samples {
				t.Errorf("%d samples", got.Committed())
			}
			for _, sh := range got.Shards() {
				if st := sh.State.Stats; st.Pushes != got.Pushes() || (st.Dropped > 0) != dropsSome(c.sync) {
					t.Errorf("shard %d got %d pushes of %d and dropped %d", sh.State.ID, st.Pushes, got.Pushes(), st.Dropped)
				}
			}
		})
	}
}

// dropsSome says whether the scheme of a rule drops pushes beside a straggler.
func dropsSome(sync string) bool {
	return slices.ContainsFunc([]string{"drop, required", "ringmaster", "rennala"},
		func(name string) bool { return strings.Contains(sync, "scheme: "+name) })
}

// A backup worker makes no other worker wait: the others train on while the straggler computes a push that will be dropped,
// and the straggler continues at their clock, at every shard.
func TestDropDoesNotWaitForTheStraggler(t *testing.T) {
	for _, sync := range []string{
		"[{match: '*', scheme: drop, required: 3}]",
		"[{match: '*.bias', scheme: drop, required: 2}, {match: '*', scheme: drop, required: 3}]",
		"[{match: '*.bias', scheme: asp}, {match: '*', scheme: drop, required: 3}]",
	} {
		got := trainTogether(t, load(t, "sync="+sync, straggler, "train.stop={samples: 4800}"))
		if slow, fast := got.Workers[3].Iterations, got.Workers[0].Iterations; slow < 1 || slow >= fast {
			t.Errorf("%s: %d iterations of the straggler and %d of a fast worker", sync, slow, fast)
		}
	}
}

// Beside a scheme that waits for all, drop has nothing to drop for long, and no worker is blocked for good.
func TestDropBesideBSP(t *testing.T) {
	sync := "sync=[{match: '*.bias', scheme: drop, required: 3}, {match: '*', scheme: bsp}]"
	got := mustTrain(t, load(t, sync, straggler, "train.stop={samples: 3200}"), 6)
	if got.Committed() < 3200 || got.LeadMax() != 0 {
		t.Errorf("%d samples at a lead of %d", got.Committed(), got.LeadMax())
	}
}

// Schemes that equal bsp give its bits, whichever of them has which iterations.
func TestChangesBetweenSchemesThatAreBSPKeepTheBits(t *testing.T) {
	want := mustTrain(t, load(t), 6).SHA256()
	for _, schemes := range []string{
		"[{scheme: bsp, until: 7}, {scheme: bsp}]",
		"[{scheme: bsp, until: {epochs: 0.5}}, {scheme: ssp, staleness: 0, fold: rank, until: {epochs: 1.5}}, {scheme: drop}]",
		"[{scheme: drop, until: 1}, {scheme: bounded_delay, tau: 0, fold: rank, until: 2}, {scheme: bsp}]",
	} {
		if got := mustTrain(t, load(t, "sync=[{match: '*', schemes: "+schemes+"}]"), 6); got.SHA256() != want {
			t.Errorf("%s: other bits than bsp", schemes)
		}
	}
}

// Each scheme rules its own iterations. With bsp first and asp later no worker leads at first, and any worker may lead
// later; in the other order the lead after the change is what it was before.
func TestTheLeadFollowsTheScheme(t *testing.T) {
	lead := func(schemes string) int64 {
		got := trainTogether(t, load(t, "sync=[{match: '*', schemes: "+schemes+"}]", straggler, "train.stop={samples: 1600}"))
		if got.Committed() < 1600 {
			t.Errorf("%s: %d samples", schemes, got.Committed())
		}
		return got.LeadMax()
	}
	if n := lead("[{scheme: bsp, until: 40}, {scheme: asp}]"); n < 2 {
		t.Errorf("bsp then asp: a lead of %d", n)
	}
	if n := lead("[{scheme: asp, until: 4}, {scheme: bsp}]"); n < 1 || n > 3 {
		t.Errorf("asp until 4: a lead of %d, and nobody gets past 3 before all are there", n)
	}
	if n := lead("[{scheme: ssp, staleness: 2, until: 9}, {scheme: ssp, staleness: 2}]"); n != 2 {
		t.Errorf("ssp then ssp: a lead of %d, want 2", n)
	}
}

// In the strict order every commit after the first round is N-1 versions stale, on every shard, also with ranks that serve
// and work; and with sleeping workers no slot or alarm blocks a worker for good.
func TestR2SPStalenessIsOneRound(t *testing.T) {
	for _, set := range [][]string{{"cluster.placement=spread"}, {"cluster.placement=colocate"},
		{"faults=[{worker: '*', slow: {sleep: 2ms}}]"}} {
		got := mustTrain(t, load(t,
			append(set, "sync=[{match: '*', scheme: r2sp, skip_after: 0, profile: 3}]", "train.stop={samples: 2400}", "cluster.servers=2")...), 6)
		for _, sh := range got.Shards() {
			middle, most, want := sh.Stale.Quantile(0.5), sh.Stale.Max(), int64(len(got.Workers)-1)
			if middle != want || most != want {
				t.Errorf("%v: shard %d is %d versions stale in the middle and %d at most, want %d", set, sh.State.ID, middle, most, want)
			}
		}
	}
}

// vap bounds what a worker has in transit in a real run, too: with a bound of 0 fast workers wait for others to read, with
// a large one no worker waits, and the result is as good. Deltas have norms like gradients. All workers sleep, because fast
// workers that compute nothing may finish before the straggler has begun, with no worker to wait for.
func TestVAPHoldsBackByValue(t *testing.T) {
	const slow = "faults=[{worker: 0, slow: {sleep: 1ms}}, {worker: 1, slow: {sleep: 1ms}}, {worker: 2, slow: {sleep: " +
		"1ms}}, {worker: 3, slow: {sleep: 3ms}}]"
	for _, push := range []string{"gradient", "delta"} {
		delayed := map[string]int64{}
		for _, v0 := range []string{"0", "1000"} {
			sync := fmt.Sprintf("sync=[{match: '*', scheme: vap, v0: %s, push: %s}]", v0, push)
			got := trainTogether(t, load(t, sync, slow, "train.stop={samples: 3200}", "train.optimizer={name: sgd, lr: 0.1}"))
			for _, sh := range got.Shards() {
				st := sh.State.Stats
				delayed[v0] += st.Delayed
				if st.Dropped > 0 || st.Pushes != got.Pushes() {
					t.Errorf("push: %s, v0: %s: shard %d got %d pushes of %d and dropped %d", push, v0, sh.State.ID, st.Pushes, got.Pushes(), st.Dropped)
				}
			}
		}
		if delayed["0"] == 0 || delayed["1000"] != 0 {
			t.Errorf("push: %s: %d delayed pulls with v0 = 0 and %d with 1000", push, delayed["0"], delayed["1000"])
		}
	}
}
