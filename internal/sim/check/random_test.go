package check

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/work"
	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
	"fluentps/ps/scheme"
)

// randomRule draws a rule over the whole table of schemes. Some rules have two or three schemes in turn. The keys may contradict
// each other; then the configuration refuses them.
func randomRule(r *rand.Rand, match string) string {
	turns := max(1, r.IntN(6)-2)
	if turns == 1 {
		return fmt.Sprintf("{match: %q, %s}", match, randomScheme(r, false))
	}
	var schemes []string
	for k := range turns {
		until := []string{fmt.Sprintf(", until: %d", 1+3*k+r.IntN(3)),
			fmt.Sprintf(", until: {epochs: %g}", 0.1*float64(1+3*k+r.IntN(3)))}[r.IntN(2)]
		if k == turns-1 {
			until = ""
		}
		schemes = append(schemes, "{"+randomScheme(r, true)+until+"}")
	}
	return fmt.Sprintf("{match: %q, schemes: [%s]}", match, strings.Join(schemes, ", "))
}

// randomServers draws rules that hold for one server only, or none.
func randomServers(r *rand.Rand, servers int) string {
	if r.IntN(3) > 0 {
		return ""
	}
	rule := randomRule(r, "*")
	return fmt.Sprintf(", {servers: [%d], %s", r.IntN(servers), rule[1:])
}

// awaitingRules draws rules that wait for stragglers, with so little patience that they change often. They have draws of their own.
func awaitingRules(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 98))
	var untils []string
	for k := range 2 + r.IntN(2) {
		untils = append(untils,
			fmt.Sprintf(", until: {straggler: %s, factor: %g, rounds: %d}", []string{"shows", "gone"}[k%2], 1.05+r.Float64(), 1+r.IntN(3)))
	}
	if r.IntN(2) == 0 {
		untils[len(untils)-1] = ""
	}
	draw := func() string {
		for {
			if text := randomScheme(r, true); !strings.Contains(text, "drop") &&
				(!strings.Contains(text, "vap") || strings.Contains(text, "strict: false")) {
				return text
			}
		}
	}
	rule := func(match string) string {
		var schemes []string
		for _, until := range untils {
			schemes = append(schemes, "{"+draw()+until+"}")
		}
		return fmt.Sprintf("{match: %q, schemes: [%s]}", match, strings.Join(schemes, ", "))
	}
	beside := rule("a.*")
	if r.IntN(2) == 0 {
		beside = fmt.Sprintf("{match: a.*, %s}", draw())
	}
	return beside + ", " + rule("*")
}

// drawEntry draws a scheme. Each scheme gets a random number, and the largest wins. So a new scheme changes no draw that it does not
// win.
func drawEntry(r *rand.Rand) scheme.Entry {
	seed := r.Uint64()
	lot := func(e scheme.Entry) uint64 {
		if e.WorkPolicy() != "" {
			return 0 // it needs a policy of the work axis
		}
		h := fnv.New64a()
		io.WriteString(h, e.Name)
		return rand.New(rand.NewPCG(seed, h.Sum64())).Uint64()
	}
	return slices.MaxFunc(scheme.All, func(a, b scheme.Entry) int { return cmp.Compare(lot(a), lot(b)) })
}

// randomScheme draws a scheme with keys. With inTurn it draws only schemes that the configuration accepts among several in turn.
func randomScheme(r *rand.Rand, inTurn bool) string {
	e := drawEntry(r)
	for inTurn && (e.Scope == scheme.PerServer || e.CopiesOf(e.Params()) != scheme.Pulled) {
		e = drawEntry(r)
	}
	rule := "scheme: " + e.Name
	if r.IntN(2) == 0 {
		rule += []string{", fold: rank", ", fold: arrival"}[r.IntN(2)]
	}
	if e.Name == "ssp" {
		rule += fmt.Sprintf(", staleness: %d, release: %s", r.IntN(5), []string{"soft", "lazy", "block"}[r.IntN(3)])
		if r.IntN(3) == 0 && !inTurn {
			rule += ", cache: true, push: delta"
		}
	}
	if e.Name == "essp" {
		rule += fmt.Sprintf(", staleness: %d", r.IntN(5))
	}
	if e.Name == "dynsgd" {
		rule += fmt.Sprintf(", versions: %s", []string{"single", "multi"}[r.IntN(2)])
	}
	if e.Name == "vap" {
		rule += fmt.Sprintf(", v0: %s, release: %s", []string{"0", "0.1", "1"}[r.IntN(3)], []string{"soft", "lazy"}[r.IntN(2)])
		if r.IntN(2) == 0 {
			rule += fmt.Sprintf(", strict: false, staleness: %d", r.IntN(4)-1)
		}
	}
	if e.Name == "pssp" {
		rule += fmt.Sprintf(", recheck: %v, release: %s", r.IntN(2) == 0, []string{"soft", "lazy", "block"}[r.IntN(3)])
		if r.IntN(2) == 0 {
			rule += ", mode: dynamic, significance: true"
		}
	}
	if e.Name == "pssp" && r.IntN(2) == 0 {
		rule += ", coin: shard"
	}
	if e.Name == "softsync" {
		rule += fmt.Sprintf(", q: %d, lambda0: %s", []int{1, 2, 3, 5, 4000}[r.IntN(5)], []string{"0", "0.5", "1"}[r.IntN(3)])
	}
	if e.Name == "ringmaster" {
		rule += fmt.Sprintf(", delay_threshold: %d", r.IntN(6))
	}
	if e.Name == "rennala" {
		rule += fmt.Sprintf(", pushes: %d", r.IntN(6))
	}
	if e.Name == "ringleader" {
		rule += fmt.Sprintf(", staleness: %d", r.IntN(4)-1)
	}
	if e.Name == "quorum" {
		rule += fmt.Sprintf(", required: %d, mad: %g, grace_max: %g", r.IntN(6), []float64{0, 3}[r.IntN(2)], []float64{0, 1, 10}[r.IntN(3)])
	}
	if e.Name == "drop" {
		rule += fmt.Sprintf(", required: %d, contributors: %s", r.IntN(5), []string{"shard", "step"}[r.IntN(2)])
	}
	if e.Name == "r2sp" {
		rule += fmt.Sprintf(", skip_after: %d, profile: %d", r.IntN(4), 1+r.IntN(3))
	}
	return rule
}

// randomWork draws the batches of workers, in half of all runs, from numbers of its own. There are 30 rows.
func randomWork(seed uint64, workers int) []string {
	r := rand.New(rand.NewPCG(seed, 7))
	switch r.IntN(9) {
	case 0, 1:
		return []string{"work.policy=dbs"}
	case 2, 3:
		return []string{fmt.Sprintf("work={policy: r2sp_batch, profile: %d, rounds: %d, delta: %g}", 1+r.IntN(4), 1+r.IntN(3), 0.1+r.Float64())}
	case 4:
		shares := make([]string, workers)
		for i := range shares {
			shares[i] = fmt.Sprint(1 + r.IntN(4))
		}
		return []string{"work.shares=[" + strings.Join(shares, ", ") + "]"}
	}
	return nil
}

// randomOptions draws a cluster with faults. ok is false if the configuration refuses the draw.
func randomOptions(t *testing.T, seed uint64) (o sim.Options, ok bool) {
	return randomCluster(t, seed, nil)
}

// randomCluster is randomOptions of a run for which some keys are set.
func randomCluster(t *testing.T, seed uint64, keys []string) (o sim.Options, ok bool) {
	r := rand.New(rand.NewPCG(seed, 99))
	servers := 1 + r.IntN(3)
	workers := servers + r.IntN(6)
	awaits := seed%4 == 1
	if awaits {
		workers = max(workers, scheme.AwaitWorkersMin)
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	var faults []string
	for range r.IntN(3) {
		from := r.IntN(5)
		faults = append(faults,
			fmt.Sprintf("{worker: %d, slow: {%s, from: %d, until: %d}}", r.IntN(workers), pick("factor: 4", "sleep: 3ms"), from, from+1+r.IntN(20)))
	}
	if slow := pick("", "kind: normal, factor: 2, spread: 0.5", "kind: exponential, factor: 1.5",
		"kind: two_state, factor: 4", "kind: lognormal, sleep: 1ms, spread: 1",
		"kind: dbs, chance: 0.5, sleep_min: 0s, sleep_max: 20ms, epochs_min: 1, epochs_max: 3",
		"kind: fluentps, sleep: 3ms, spread: 0.5"); slow != "" {
		faults = append(faults, `{worker: "*", slow: {`+slow+"}}")
	}
	if r.IntN(4) == 0 {
		faults = append(faults, fmt.Sprintf("{worker: %d, pause: {at: %dms, for: %dms}}", r.IntN(workers), r.IntN(60), 1+r.IntN(60)))
	}
	text := fmt.Sprintf(`name: random
seed: %d
cluster: {servers: %d, placement: %s}
data: {set: generated}
model: {name: softmax}
train: {batch_per_worker: %d, optimizer: {name: sgd, lr: 0.1}, stop: {%s}}
shards: {slice: %s, max_bytes: %s}
sync: [%s, %s]
faults: [%s]
send: {%s}
simulate:
  workers: %d
  ranks_per_host: %d
  compute: %s
  network: {bandwidth: %s, latency: %s, memory: %s}
  server: {fold: %s, commit: %s}
  push_norm: %s
`,
		seed, servers, pick("spread", "pack", "colocate"), 1+r.IntN(3),
		pick("samples: 40", "updates: 15", "time: 80ms", "samples: 100, time: 30ms"),
		pick("even", "layer", "slices", "range"), pick("64B", "4MiB"), randomRule(r, "a.*")+randomServers(r, servers),
		randomRule(r, "*"), strings.Join(faults, ", "),
		pick("order: fifo", "order: fifo", "order: priority", "order: priority, window: 64B",
			"order: priority, window: 200B", "order: credit, credit: 100B, tune: {points: 3, steps: 2, min: 50B, max: 500B}")+
			pick("", "", ", overlap: false"), workers, 1+r.IntN(3), pick("1ms", "5ms", "{fixed: 1ms, per_sample: 300us}"),
		pick("0B", "100KB", "10MB"), pick("0s", "30us", "2ms"), pick("0B", "1MB"), pick("0B", "200KB"), pick("0B", "100KB"),
		pick("0", "0.3", "2"))
	var set []string
	if awaits {
		set = []string{"sync=[" + awaitingRules(seed) + "]", "train.stop={samples: 300}"}
	}
	set = append(set, keys...)
	cfg, _, _ := configs.Parse("random", []byte(text), configs.Options{Set: set})
	if cfg == nil {
		return o, false
	}
	// else the rules do not go with it
	if dealt, _, _ := configs.Parse("random", []byte(text), configs.Options{Set: append(set, randomWork(seed, workers)...)}); dealt != nil {
		cfg = dealt
	}
	rules, on := cfg.Matches()
	plan, err := shard.Cut([]shard.Param{{Name: "a.weight", N: 40}, {Name: "b.weight", Layer: 1, N: 25}, {Name: "b.bias", Layer: 1, N: 5}},
		shard.Options{Slice: cfg.Shards.Slice, MaxBytes: cfg.Shards.MaxBytes, Servers: servers, Rules: rules, On: on})
	if err != nil {
		t.Fatal(err)
	}
	o = sim.Options{Config: cfg, Plan: plan, Rows: 30, CheckEvery: 5,
		Replay: fmt.Sprintf("FLUENTPS_TEST_SIM_FIRST=%d FLUENTPS_TEST_SIM_SEEDS=1 go test ./internal/sim/check -run TestLawsOverManySeeds", seed)}
	when := func() time.Duration { return time.Duration(r.Int64N(int64(60 * time.Millisecond))) }
	for range r.IntN(3) {
		o.Losses = append(o.Losses, sim.Loss{Worker: r.IntN(workers), At: when()})
	}
	for _, l := range o.Losses {
		if r.IntN(2) == 0 && !cfg.DealsBatches() && !awaits {
			o.Joins = append(o.Joins, sim.Join{Worker: l.Worker, At: l.At + when()})
		}
	}
	for range r.IntN(3) {
		o.Pauses = append(o.Pauses, sim.Pause{Worker: r.IntN(workers), At: when(), For: when()})
	}
	return o, true
}

// Random clusters, schemes and faults under all checkers. The command in a failure repeats its seed.
func TestLawsOverManySeeds(t *testing.T) {
	first, n := simtest.SeedsFrom(t)
	ran, lost, joined, plans, changes := 0, 0, 0, 0, 0
	var steps int64
	dealt := map[string]int{} // runs by policy
	for k := range n {
		o, ok := randomOptions(t, uint64(first+k))
		if !ok {
			continue
		}
		o.Dealt = func(work.Assignment) { plans++ }
		r, err := Run(o)
		if err != nil && strings.Contains(err.Error(), "raise its until") {
			continue // the configuration refuses two changes at one iteration
		}
		if err != nil {
			t.Fatal(err)
		}
		ran++
		dealt[o.Config.WorkText()]++
		lost += r.Lost
		joined += r.Joined
		steps += r.Steps
		changes += len(r.Summary.Changes)
	}
	t.Logf("%d runs, %d node steps, %d workers lost, %d back, %d plans of batches dealt, %d changes of scheme for "+
		"stragglers; %d runs of dbs, %d of r2sp_batch, %d of shares", ran, steps, lost, joined, plans, changes,
		dealt["dbs"], dealt["r2sp_batch"], dealt["shares"])
	if n > 100 && (ran < n/2 || lost < ran/4 || joined < ran/16 || plans < ran/8 || changes < ran/16) {
		t.Errorf("only %d of %d seeds made a run, with %d workers lost, %d rejoined, %d plans of batches and %d changes "+
			"of scheme: the draw is too narrow", ran, n, lost, joined, plans, changes)
	}
}
