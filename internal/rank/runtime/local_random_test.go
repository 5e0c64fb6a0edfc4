package runtime

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/steps"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
)

// localDraw is a random run whose workers take steps of their own. It is killed, resumed, and resumed with other workers.
type localDraw struct {
	policy, rules string // rules of sync
	set           []string
	workers       int
	servers       int
	colocate      bool
	isFixed       bool // equal seeds give equal bits
	drops         bool
}

func drawLocal(r *rand.Rand) (d localDraw) {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	policy := pick("averaging", "averaging", "hpsgd", "hpsgd", "post_local", "diloco", "streaming_diloco",
		"streaming_diloco", "slowmo", "bmuf", "async_local", "easgd")
	count := 1 + r.IntN(5)
	keys := []string{}
	add := func(format string, args ...any) { keys = append(keys, fmt.Sprintf(format, args...)) }
	d.isFixed = r.IntN(2) == 0
	switch policy {
	case "averaging", "post_local", "diloco", "slowmo", "bmuf":
		add("%s", pick("period: {name: constant}", "period: {name: qsr, alpha: 0.02}",
			fmt.Sprintf("period: {name: adacomm, interval: %d}", 1+r.IntN(4))))
		if policy == "post_local" {
			add("switch: %d", 1+r.IntN(20))
		}
	case "hpsgd":
		if count -= 1; count == 0 {
			d.isFixed = false
		}
		add("compensate: %s", pick("0", "0.04"))
	case "easgd":
		add("pull: %s", pick("0.05", "0.2"))
	case "async_local":
		d.isFixed = false
		add("dynamic: %v", r.IntN(2) == 0)
	case "streaming_diloco":
		fragments, each := 1+r.IntN(4), 1+r.IntN(3)
		count = fragments * each
		add("fragments: %d", fragments)
		add("delay: %d", r.IntN(each+1))
		add("keep: %s", pick("0", "0.3"))
	}
	d.policy = policy
	keys = append(keys, "policy: "+policy, fmt.Sprintf("steps: %d", count))
	if d.rules = "{match: '*', scheme: bsp}"; !d.isFixed {
		d.rules = schemesThatPause[r.IntN(len(schemesThatPause))]
	}
	d.drops = dropsSome(d.rules) || strings.Contains(d.rules, "scheme: drop")
	d.workers, d.servers, d.colocate = 1+r.IntN(4), 1+r.IntN(2), r.IntN(4) == 0
	if d.colocate {
		d.servers = min(d.servers, d.workers)
	}
	d.set = []string{"local={" + strings.Join(keys, ", ") + "}", "sync=[" + d.rules + "]",
		fmt.Sprintf("cluster.servers=%d", d.servers), "evaluate.every_epochs=0",
		"model=" + pick("{name: softmax}", "{name: mlp, layers: [8]}", "{name: mlp, layers: [8, 8, 8]}"), "shards.slice=" +
			pick("layer", "even", "slices"),
		"train.optimizer=" + pick("{name: sgd, lr: 0.1}", "{name: momentum, lr: 0.05}", "{name: adam, lr: 0.01}"),
		"send.overlap=" + pick("true", "true", "false"),
		"payload=" + pick("{}", "{}", "{push: topk, ratio: 0.2}", "{push: bfloat16, pull: bfloat16}"),
		"cluster.shared_memory=" + pick("auto", "off"),
		fmt.Sprintf("checkpoint={every_updates: %d, keep: 1000}", 3+r.IntN(20))}
	if d.colocate {
		d.set = append(d.set, "cluster.placement=colocate")
	}
	if r.IntN(2) == 0 {
		d.set = append(d.set, "train.schedule={name: cosine, over: 400, floor: 0.1, warm_up: 4}")
	}
	return d
}

// ranks is the number of ranks of a part with so many workers.
func (d *localDraw) ranks(workers int) int {
	if d.colocate {
		return workers
	}
	return workers + d.servers
}

// config is the configuration of a part; nil if check refuses the draw.
func (d *localDraw) config(stop string) *configs.Config {
	c, _, _ := configs.Parse("random.yaml", []byte(configstest.Base), configs.Options{Set: append(slices.Clone(d.set), "train.stop="+stop)})
	if c == nil {
		return nil
	}
	data, err := cached(layout.DataSpec(c))
	if err != nil {
		return nil
	}
	architecture, err := layout.Architecture(c, data)
	if err != nil {
		return nil
	}
	if _, err := layout.Plan(c, architecture.Params(), d.servers, layout.Link{}); err != nil {
		return nil // fewer shards than fragments
	}
	return c
}

// stepsIn are the samples of the workers' own steps in a checkpoint.
type stepsIn struct {
	manifest *checkpoint.Manifest
	workers  []steps.Count
	shards   map[string]int64 // samples of each shard
}

func readSteps(t *testing.T, dir string) (q stepsIn) {
	t.Helper()
	var err error
	if q.manifest, err = checkpoint.Open(dir); err != nil {
		t.Fatal(err)
	}
	q.shards = map[string]int64{}
	for w := range q.manifest.Workers {
		var s train.State
		e, err := q.manifest.File(checkpoint.WorkerFile(w))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.ReadFile(dir, e, &s); err != nil || s.Own == nil {
			t.Fatalf("%s: own steps %v, %v", dir, s.Own, err)
		}
		q.workers = append(q.workers, *s.Own)
	}
	for i := range q.manifest.Servers {
		e, err := q.manifest.File(checkpoint.ServerFile(i))
		if err != nil {
			continue // a server without shards
		}
		var s serve.State
		if _, err := checkpoint.ReadFile(dir, e, &s); err != nil {
			t.Fatal(err)
		}
		for _, sh := range s.Shards {
			q.shards[sh.Name] = sh.Node.Samples
		}
	}
	return q
}

// since checks that each shard has counted the samples of every step since an earlier checkpoint once, apart from those that no push has
// reported. from is what the workers resumed from; its manifest is nil at the beginning of a run.
func (q *stepsIn) since(t *testing.T, from *stepsIn, drops bool, what string) {
	t.Helper()
	fragments := int64(len(q.workers[0].Since))
	taken := make([]int64, fragments) // by fragment: samples that pushes have reported
	for w, own := range q.workers {
		var before steps.Count
		if n := len(from.workers); n > 0 {
			before = from.workers[w%n]
			if n != len(q.workers) {
				before.Since = nil
			}
		}
		for f := range taken {
			taken[f] += 8 * (own.Step - before.Step)
			if taken[f] -= own.Since[f].Samples; before.Since != nil {
				taken[f] += before.Since[f].Samples
			}
		}
	}
	for name, samples := range q.shards {
		got, ok := samples-from.shards[name], false
		for _, n := range taken {
			ok = ok || got == n || drops && got <= n
		}
		if _, known := from.shards[name]; !ok && (known || from.manifest == nil) {
			t.Fatalf("%s: shard %s has counted %d samples since, but of the workers' steps pushes have reported %v by fragment", what, name, got,
				taken)
		}
	}
}

// checkAll checks all checkpoints of a run folder that a part has written, and returns their folders, the newest first.
func (d *localDraw) checkAll(t *testing.T, dir string, from *stepsIn) []string {
	t.Helper()
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d checkpoints, %v", len(dirs), err)
	}
	for _, at := range dirs {
		q := readSteps(t, at)
		if from.manifest != nil && q.manifest.Number <= from.manifest.Number {
			continue
		}
		q.since(t, from, d.drops, filepath.Base(at))
	}
	return dirs
}

// randomLocalRuns reads how many random runs to make, and the first seed.
func randomLocalRuns(t *testing.T) (first, n int) {
	read := func(name string, def int) int {
		text := os.Getenv(name)
		if text == "" {
			return def
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	n = 25
	if underRace {
		n = 12
	}
	return read("FLUENTPS_LOCAL_FIRST", 0), read("FLUENTPS_LOCAL_RUNS", n)
}

// localCover counts what random runs have covered.
type localCover struct {
	mu                                                sync.Mutex
	runs, parts, checkpoints, resized, stopped, equal int
	policies, syncs                                   map[string]int
}

func (c *localCover) add(count func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count()
}

// Random runs whose workers take steps of their own are stopped at random places, killed after random checkpoints, and resumed, with the
// same or another number of workers. Every shard of every checkpoint has each step once, apart from those that were not pushed yet, and
// where equal seeds give equal bits, the end has those of a run that was never interrupted.
func TestRandomRunsOfStepsResume(t *testing.T) {
	first, n := randomLocalRuns(t)
	cover := localCover{policies: map[string]int{}, syncs: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for k := range n {
			t.Run(fmt.Sprint(first+k), func(t *testing.T) {
				t.Parallel()
				playLocal(t, uint64(first+k), &cover)
			})
		}
	})
	if t.Failed() {
		t.Fatalf("to repeat run N: FLUENTPS_LOCAL_FIRST=N FLUENTPS_LOCAL_RUNS=1 go test ./internal/rank/runtime -run TestRandomRunsOfStepsResume")
	}
	t.Logf("%d runs in %d parts with %d checkpoints, %d resumed with other workers, %d stopped by a signal, %d "+
		"compared bit by bit; policies %v; %d rules of sync", cover.runs, cover.parts, cover.checkpoints, cover.resized,
		cover.stopped, cover.equal, cover.policies, len(cover.syncs))
	if n >= 25 && (cover.runs < n || cover.parts < 2*n || cover.resized == 0 || cover.stopped == 0 || cover.equal == 0) {
		t.Errorf("%d runs: the draw is too narrow", cover.runs)
	}
}

func playLocal(t *testing.T, seed uint64, cover *localCover) {
	r := rand.New(rand.NewPCG(seed, 97))
	d := drawLocal(r)
	for d.config("{updates: 5}") == nil {
		d = drawLocal(r)
	}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %d workers, %d servers: %v", seed, d.workers, d.servers, d.set)
		}
	}()
	cover.add(func() {
		cover.runs++
		cover.policies[d.policy]++
		cover.syncs[d.rules]++
	})
	dir, resumed := filepath.Join(t.TempDir(), "out"), ""
	workers, sameWorkers, at := d.workers, true, int64(0)
	var from stepsIn
	parts := 2 + r.IntN(2)
	for part := range parts {
		last := part == parts-1
		text := fmt.Sprintf("{samples: %d}", at+8*int64(workers)*(2+r.Int64N(60)))
		if d.isFixed { // a budget of samples would cut the last round of a part short
			text = fmt.Sprintf("{updates: %d}", at+2+r.Int64N(25))
		}
		change := func(o *Options) { o.AllowChanged = []string{"workers"} }
		isSignal := !last && r.IntN(3) == 0
		if isSignal {
			text = "{time: 1h}"
			signal := signalling("SIGTERM", r.IntN(d.ranks(workers)), 1+int32(r.IntN(60)))
			change = func(o *Options) {
				o.AllowChanged = []string{"workers"}
				signal(o)
			}
			cover.add(func() { cover.stopped++ })
		}
		c := d.config(text)
		res, errs := runPart(t, c, d.ranks(workers), dir, resumed, change)
		for rank, err := range errs {
			if err != nil {
				t.Fatalf("part %d, rank %d: %v", part, rank, err)
			}
		}
		s := res[0].Summary
		if !isSignal && s.Finished != metrics.FinishedOK {
			t.Fatalf("part %d finished %q", part, s.Finished)
		}
		dirs := d.checkAll(t, dir, &from)
		cover.add(func() { cover.parts, cover.checkpoints = cover.parts+1, cover.checkpoints+len(dirs) })
		if last {
			if d.isFixed && sameWorkers {
				cover.add(func() { cover.equal++ })
				want := mustTrain(t, c, d.ranks(workers)).Summary
				if s.ParametersSHA256 != want.ParametersSHA256 || s.Samples != want.Samples {
					t.Fatalf("sha256 %.12s of %d samples; %.12s of %d without interruption", s.ParametersSHA256, s.Samples,
						want.ParametersSHA256, want.Samples)
				}
			}
			return
		}
		// It is as if the run had been killed after one of its checkpoints.
		if r.IntN(2) == 0 {
			keep := r.IntN(len(dirs))
			for _, later := range dirs[:keep] {
				if err := os.RemoveAll(later); err != nil {
					t.Fatal(err)
				}
			}
			dirs = dirs[keep:]
		}
		from, resumed = readSteps(t, dirs[0]), dir
		if at = from.manifest.Samples; d.isFixed {
			at = from.manifest.Iteration
		}
		if r.IntN(4) == 0 {
			if n := max(1, workers-1+r.IntN(3)); n != workers && (!d.colocate || n >= d.servers) {
				workers, sameWorkers = n, false
				cover.add(func() { cover.resized++ })
			}
		}
	}
}
