package servernode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// genPhases draws a rule that has up to three schemes in turn.
func genPhases(t *rapid.T) rule {
	r := genRule(t)
	if r.copies() {
		return r
	}
	at := int64(0)
	for range max(0, rapid.IntRange(-2, 2).Draw(t, "changes")) {
		at += int64(rapid.IntRange(1, 4).Draw(t, "until"))
		r.until = append(r.until, at)
		next := genRule(t)
		if next.copies() { // the configuration refuses that
			next = rule{name: "asp"}
		}
		r.then = append(r.then, next)
	}
	return r
}

// copies says whether workers keep copies under the rule.
func (r rule) copies() bool {
	ph := r.phases()[0]
	e, _ := scheme.All.Lookup(ph.Scheme)
	return e.CopiesOf(ph.Params) != scheme.Pulled
}

// phaseOf is the index of the scheme that an iteration belongs to.
func phaseOf(phases []scheme.Phase, iter int64) int {
	return slices.IndexFunc(phases, func(ph scheme.Phase) bool { return ph.Until == 0 || iter < ph.Until })
}

// checkPhases checks each scheme of a rule: it has the iterations of its phase and no others, makes as many versions of
// them as it promises, folds nothing after the next one has begun, drops nothing unless it is drop, and keeps its
// bound.
func checkPhases(t *rapid.T, c *cluster, sh *shard.Shard, phases []scheme.Phase, pushes map[string]int64, folded map[string]bool) {
	n, closed := make([]int64, len(phases)), make([]map[int64]bool, len(phases))
	for k := range closed {
		closed[k] = map[int64]bool{}
	}
	for push := range folded {
		k := phaseOf(phases, pushes[push])
		n[k]++
		closed[k][pushes[push]] = true
	}
	versions, drops, counted := int64(0), false, true
	for k, ph := range phases {
		e, _ := scheme.All.Lookup(ph.Scheme)
		switch p := ph.Params.(type) {
		case *scheme.SoftsyncParams:
			versions += (n[k] + p.Q - 1) / p.Q // the last worker to leave, or the change, commits the rest
		case *scheme.RingmasterParams:
			drops = true
			versions += n[k]
		case *scheme.RennalaParams:
			drops = true
			b, _ := p.Several(len(c.workers))
			versions += (n[k] + b - 1) / b
		case *scheme.RingleaderParams, *scheme.QuorumParams:
			counted = false // how many depends on who pushed when
			if st := c.servers[sh.Server].Shard(sh.ID); n[k] > 0 && st.Version < 1 {
				t.Fatalf("shard %d %v made no version of %d pushes", sh.ID, phases, n[k])
			}
		case *scheme.DropParams:
			drops = true
			versions += int64(len(closed[k]))
		default:
			if e.Whole(ph.Common, ph.Params) {
				versions += int64(len(closed[k]))
			} else {
				versions += n[k]
			}
		}
	}
	st := c.servers[sh.Server].Shard(sh.ID)
	if counted && st.Version != versions || st.Version < versions {
		t.Fatalf("shard %d %v made %d versions of %v pushes of iterations %v, want %d", sh.ID, phases, st.Version, n, closed, versions)
	}
	if st.Stats.Dropped > 0 && !drops {
		t.Fatalf("shard %d %v dropped %d pushes", sh.ID, phases, st.Stats.Dropped)
	}
	last := 0
	for _, version := range c.versions[sh.ID] {
		words := strings.Fields(version)
		for _, push := range words {
			k := phaseOf(phases, pushes[push])
			if k < last {
				t.Fatalf("shard %d %v: version %q has a push of scheme %d after one of scheme %d in %v", sh.ID, phases, version,
					k, last, c.versions[sh.ID])
			}
			last = k
		}
		if p, ok := phases[last].Params.(*scheme.DropParams); ok && p.Required > 0 && len(words) > int(p.Required) {
			t.Fatalf("shard %d: %d pushes in version %q, %d are required", sh.ID, len(words), version, p.Required)
		}
	}
	for iter, lead := range c.lead[sh.ID] {
		ph := phases[phaseOf(phases, iter)]
		e, _ := scheme.All.Lookup(ph.Scheme)
		if bound, ok := e.LeadMax(ph.Params); ok && lead > bound {
			t.Fatalf("shard %d %s let a worker lead by %d into iteration %d, the bound is %d", sh.ID, ph.Scheme, lead, iter, bound)
		}
	}
}

// genLikeBSP draws one of the schemes that are bsp under other names.
func genLikeBSP(t *rapid.T) rule {
	rank := scheme.Common{Fold: scheme.FoldRank}
	return rapid.SampledFrom([]rule{
		{name: "bsp"}, {name: "drop"},
		{name: "ssp", common: rank, params: &scheme.SSPParams{Release: scheme.ReleaseLazy}},
		{name: "bounded_delay", common: rank, params: &scheme.BoundedDelayParams{Release: scheme.ReleaseSoft}},
		{name: "dssp", common: rank, params: &scheme.DSSPParams{Mode: scheme.DSSPBounded, Release: scheme.ReleaseSoft}},
	}).Draw(t, "like bsp")
}

// A change between schemes that are all bsp changes nothing: every worker reads, at every iteration, what it would have
// read under bsp, whatever the order in which messages arrive.
func TestAChangeBetweenSchemesThatAreBSPIsBSP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genLikeBSP(t)
		for _, at := range rapid.SliceOfNDistinct(rapid.Int64Range(1, 6), 1, 3, rapid.ID).Draw(t, "until") {
			r.until = append(r.until, at)
			r.then = append(r.then, genLikeBSP(t))
		}
		slices.Sort(r.until)
		checkReadsLikeBSP(t, r)
	})
}

// A shard changes its scheme when all live workers have reached the change. Only then it lets a worker past it, even if
// the next scheme would let the worker pass earlier. Workers are answered in order of arrival.
func TestAChangeWaitsForEverybody(t *testing.T) {
	ss := mustScheme(rule{name: "asp", until: []int64{2}, then: []rule{{name: "asp"}}}, []int32{0}, 0, 3)
	n := newLone(t, 3, ss)
	for w := range int32(3) {
		n.pull(w, 0)
		n.push(w, 0)
		n.pull(w, 1)
	}
	n.push(2, 1)
	n.pull(2, 2)
	n.push(0, 1)
	n.pull(0, 2)
	n.expect("w0@0 w0@1 w1@0 w1@1 w2@0 w2@1")
	if got := n.s.Shard(0); got.Version != 5 || got.Stats.Delayed != 2 || !n.s.Waiting() {
		t.Errorf("before the change: %+v, waiting %v", got, n.s.Waiting())
	}
	n.push(1, 1)
	n.pull(1, 2)
	n.expect("w2@2 w0@2 w1@2")
	n.push(0, 2)
	n.pull(0, 3)
	n.expect("w0@3") // no more changes: asp again
}

// The learning-rate clock is continuous, whichever of the two schemes counts versions: bsp counts each iteration as
// one, ssp each push as 1/N.
func TestTheLearningRateClockIsContinuous(t *testing.T) {
	two := func(a, b string) []float64 {
		n := newLone(t, 4, mustScheme(rule{name: a, until: []int64{3}, then: []rule{{name: b}}}, []int32{0}, 0, 4))
		for i := range int64(6) {
			for w := range int32(4) {
				n.push(w, i)
			}
		}
		return n.clocks
	}
	quarters := func(from, to float64) (all []float64) {
		for x := from; x < to; x += 0.25 {
			all = append(all, x)
		}
		return all
	}
	if got, want := two("bsp", "ssp"), append([]float64{0, 1, 2}, quarters(3, 6)...); !slices.Equal(got, want) {
		t.Errorf("bsp then ssp: commits at %v, want %v", got, want)
	}
	if got, want := two("ssp", "bsp"), append(quarters(0, 3), 3, 4, 5); !slices.Equal(got, want) {
		t.Errorf("ssp then bsp: commits at %v, want %v", got, want)
	}
}

// A version of bsp counts as a whole iteration also where some workers have left.
func TestVersionsOfBSPAreIterationsOfTheLearningRateClock(t *testing.T) {
	n := newLone(t, 4, mustScheme(rule{name: "bsp", until: []int64{2}, then: []rule{{name: "ssp"}}}, []int32{0}, 0, 4))
	n.leave(3)
	for i := range int64(3) {
		for w := range int32(3) {
			n.push(w, i)
		}
	}
	if want := []float64{0, 1, 2, 2.25, 2.5}; !slices.Equal(n.clocks, want) {
		t.Errorf("commits at %v, want %v", n.clocks, want)
	}
}

// Under drop v passes slow workers by, and the change does not wait for them either. Their pushes of iterations before
// the change are dropped, and they continue at the change.
func TestAChangeFromDropDoesNotWaitForSlowWorkers(t *testing.T) {
	r := rule{name: "drop", params: &scheme.DropParams{Required: 2, Contributors: "shard"}, until: []int64{2}, then: []rule{{name: "bsp"}}}
	n := newLone(t, 3, mustScheme(r, []int32{0}, 0, 3))
	for i := range int64(2) {
		n.push(0, i)
		n.pull(0, i+1)
		n.push(1, i)
		n.pull(1, i+1)
	}
	n.expect("w0@1 w1@1 w0@2 w1@2")
	n.push(2, 0)
	n.pull(2, 1)
	n.expect("w2@2")
	if got := n.s.Shard(0); got.Version != 2 || got.Stats.Dropped != 1 {
		t.Errorf("%+v, want 2 versions and the late push dropped", got)
	}
	for w := range int32(3) {
		n.push(w, 2)
		n.pull(w, 3)
	}
	n.expect("w0@3 w1@3 w2@3")
	if got := n.s.Shard(0); got.Version != 3 || got.Accepted != 7 || got.Stats.Skipped != 1 {
		t.Errorf("%+v, want a third version of all three pushes, and iteration 1 of worker 2 skipped", got)
	}
}

// A push past the change, of a worker that another shard sent ahead, belongs to the next scheme. It is kept until the
// change, and its worker no longer delays the others.
func TestAPushPastTheChangeBelongsToTheNextScheme(t *testing.T) {
	r := rule{name: "bsp", until: []int64{2}, then: []rule{{name: "bsp"}}}
	n := newLone(t, 2, mustScheme(r, []int32{0}, 0, 2))
	n.push(0, 0)
	n.push(1, 4)
	n.pull(1, 5)
	n.push(0, 1)
	if got := fmt.Sprint(n.versions); got != "[ w0.0 |  w0.1 |]" {
		t.Errorf("before the change: %s", got)
	}
	n.pull(0, 2)
	for i := int64(2); i < 5; i++ {
		n.push(0, i)
	}
	if got := fmt.Sprint(n.versions); got != "[ w0.0 |  w0.1 |  w0.2 |  w0.3 |  w0.4 w1.4 |]" {
		t.Errorf("after the change: %s", got)
	}
	n.expect("w0@2 w1@5")
}

// softsync has pending pushes when the change comes: they are committed, once, and by softsync.
func TestAChangeCommitsTheRestOfSoftsync(t *testing.T) {
	r := rule{name: "softsync", params: &scheme.SoftsyncParams{Q: 3, Staleness: -1, Release: scheme.ReleaseSoft},
		until: []int64{2}, then: []rule{{name: "asp"}}}
	n := newLone(t, 2, mustScheme(r, []int32{0}, 0, 2))
	for i := range int64(3) {
		n.push(0, i)
		n.push(1, i)
	}
	if got := fmt.Sprint(n.versions); got != "[ w0.0 w1.0 w0.1 |  w1.1 |  w0.2 |  w1.2 |]" {
		t.Errorf("versions %s", got)
	}
}

// The last commit of softsync closes no iteration, so it brings no later change nearer.
func TestADrainDoesNotBringTheNextChangeNearer(t *testing.T) {
	r := rule{name: "softsync", params: &scheme.SoftsyncParams{Q: 3, Staleness: -1, Release: scheme.ReleaseSoft},
		until: []int64{2, 3}, then: []rule{{name: "asp"}, {name: "asp"}}}
	n := newLone(t, 2, mustScheme(r, []int32{0}, 0, 2))
	for i := range int64(2) {
		n.push(0, i)
		n.push(1, i)
	}
	n.push(0, 2)
	n.pull(0, 3)
	n.expect("")
	n.push(1, 2)
	n.expect("w0@3")
}

// A worker that was sent past two changes waits for both.
func TestAWorkerPastTwoChangesWaitsForBoth(t *testing.T) {
	n := newLone(t, 2, mustScheme(rule{name: "bsp", until: []int64{1, 3}, then: []rule{{name: "asp"}, {name: "asp"}}}, []int32{0}, 0, 2))
	n.push(1, 5)
	n.pull(1, 6)
	for i := range int64(2) {
		n.push(0, i)
		n.pull(0, i+1)
	}
	n.expect("w0@1 w0@2")
	n.push(0, 2)
	n.expect("w1@6")
	if got := fmt.Sprint(n.versions); got != "[ w0.0 |  w0.1 |  w0.2 |  w1.5 |]" {
		t.Errorf("versions %s", got)
	}
}

// Nobody waits at a change for a worker that died before it, and its pushes past the change are not used.
func TestNobodyWaitsAtAChangeForAWorkerThatLeft(t *testing.T) {
	r := rule{name: "ssp", until: []int64{2}, then: []rule{{name: "asp"}}}
	for _, far := range []bool{false, true} {
		n := newLone(t, 3, mustScheme(r, []int32{0}, 0, 3))
		come := func(w int32) {
			n.push(w, 0)
			n.push(w, 1)
			n.pull(w, 2)
		}
		come(0)
		if far {
			n.push(2, 7)
			n.pull(2, 8)
		}
		n.leave(2)
		n.expect("")
		come(1)
		n.expect("w0@2 w1@2")
		if got := n.s.Shard(0); got.Version != 4 || got.Stats.Dropped != got.Stats.Pushes-4 || n.s.Waiting() {
			t.Errorf("far %v: %+v, waiting %v", far, got, n.s.Waiting())
		}
	}
}

func checkReadsLikeBSP(t *rapid.T, r rule) {
	workers := rapid.IntRange(1, 4).Draw(t, "workers")
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 5}, {Name: "b", Layer: 1, N: 4}},
		shard.Options{Slice: "even", MaxBytes: 8, Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(plan, workers, []rule{r}, Budget{Updates: 5}, 0)
	c.pick = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)).IntN
	if err := c.run(100000); err != nil {
		t.Fatal(err)
	}
	want := ""
	var all []string
	for i := range 6 {
		all = append(all, want)
		for w := range workers {
			want += fmt.Sprintf(" w%d.%d", w, i)
		}
		want += " |"
	}
	for k, seen := range c.replyContents {
		if !slices.Equal(seen, all) {
			t.Fatalf("shard %d worker %d read %q, want %q", k[0], k[1], seen, all)
		}
	}
	for w, n := range c.iters {
		if n != 5 || c.workers[w].Counts.LeadMax != 0 {
			t.Fatalf("worker %d computed %d iterations at a lead of %d, want 5 at 0", w, n, c.workers[w].Counts.LeadMax)
		}
	}
	if c.servers[0].shards[0].cut.at != math.MaxInt64 && r.until[len(r.until)-1] <= 5 {
		t.Fatalf("the shard never changed at %v", r.until)
	}
}
