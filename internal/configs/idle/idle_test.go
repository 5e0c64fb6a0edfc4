package idle_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/configs"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/settings"
)

// No example has a value that cannot act with the ranks that its comment starts, and the rows of its files.
func TestExamplesHaveNothingIdle(t *testing.T) {
	rows := map[string]int{"idx": 60000, "cifar10": 50000, "csv": 3823, "libsvm": 32561}
	ranks := regexp.MustCompile(`(?m)^# .* (?:-n|--local|--ranks) ([0-9]+)`)
	started := 0
	examples, err := filepath.Glob("../../../configs/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range examples {
		c, o, ds := configs.Load(file, configs.Options{})
		if len(ds) > 0 {
			t.Fatalf("%s: %v", file, ds)
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		workers := c.Simulate.Workers
		if m := ranks.FindSubmatch(src); m != nil {
			n, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			workers = n - c.Cluster.Servers
			started++
		}
		f := settings.Facts{Workers: workers, Computes: workers, Servers: c.Cluster.Servers, Rows: cmp.Or(rows[c.Data.Set], c.Data.Rows),
			Simulated: true}
		if ds := idle.More(c, o, f); len(ds) > 0 {
			t.Errorf("%s with %d workers:\n%s", file, workers, written(t, ds))
		}
	}
	if started < 20 {
		t.Errorf("only %d examples say how many ranks they start", started)
	}
}

// knob is a value of the configuration of TestOnlyWhatCannotActIsWarnedOf: least to most may act, what is above cannot.
type knob struct {
	path        string
	least, most int
	def         int // of the key; it is never warned of
}

// A configuration whose every value acts has no warning. One value beyond its limit has one, at its place, and the others
// none.
func TestOnlyWhatCannotActIsWarnedOf(t *testing.T) {
	beyond := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		workers, batch := rapid.IntRange(2, 6).Draw(t, "workers"), rapid.IntRange(1, 64).Draw(t, "batch")
		iterations := rapid.IntRange(3, 50).Draw(t, "iterations")
		pushes := iterations * workers
		rows := rapid.IntRange(workers*batch, 9*workers*batch).Draw(t, "rows")
		required := rapid.IntRange(0, workers).Draw(t, "required")
		counted := batch * cmp.Or(required, workers) // samples of an iteration that are not dropped
		knobs := []knob{
			{"sync[0].staleness", 0, iterations - 1, 3},
			{"sync[1].schemes[0].until", 1, iterations - 1, -1},
			{"sync[2].required", required, workers, 0},
			{"sync[3].q", 1, pushes, 2},
			{"sync[4].tau", 0, iterations - 1, 8},
			{"train.schedule.at[0]", 1, iterations - 1, -1},
			{"train.schedule.warm_up", 0, iterations, 0},
			{"checkpoint.every_updates", 1, pushes - 1, 0},
			{"evaluate.every_samples", 1, iterations * counted, 0},
			{"faults[0].slow.from", 0, pushes - 1, 0},
			{"cluster.servers", 1, workers, 1},
		}
		values := map[string]int{}
		for _, k := range knobs {
			values[k.path] = rapid.IntRange(k.least, k.most).Draw(t, k.path)
		}
		values["sync[2].required"] = required
		facts := func() settings.Facts {
			return settings.Facts{Workers: workers, Computes: workers, Servers: values["cluster.servers"], Rows: rows, Lead: 1}
		}
		if text := idleText(t, values, batch, iterations*counted, rows, facts()); text != "" {
			t.Fatalf("%d workers, %d iterations, %d pushes, %v: %s", workers, iterations, pushes, values, text)
		}
		k := rapid.SampledFrom(knobs).Draw(t, "beyond")
		values[k.path] = rapid.IntRange(k.most+1, 2*k.most+9).Filter(func(v int) bool { return v != k.def }).Draw(t, "value")
		beyond[k.path]++
		if k.path == "sync[2].required" { // then nothing is dropped
			counted = batch * workers
		}
		text := idleText(t, values, batch, iterations*counted, rows, facts())
		if strings.Count(text, "warning: ") != 1 || !strings.Contains(text, "warning: "+k.path+": ") {
			t.Fatalf("%s = %d is beyond %d; %d workers, %d iterations, %d pushes: %q", k.path, values[k.path], k.most, workers,
				iterations, pushes, text)
		}
	})
	if len(beyond) < 9 {
		t.Errorf("only %v were tried", beyond)
	}
}

// idleText is what Parse and Idle warn of together.
func idleText(t *rapid.T, v map[string]int, batch, samples, rows int, f settings.Facts) string {
	src := fmt.Sprintf(`name: idle
cluster: {servers: %d}
data: {set: generated, rows: %d}
model: {name: mlp, layers: [8, 8, 8, 8]}
train:
  batch_per_worker: %d
  optimizer: {lr: 0.1, weight_decay: 0.1, no_decay: ["fc3.*"]}
  schedule: {name: step, at: [%d], factor: 0.5, warm_up: %d}
  stop: {samples: %d}
evaluate: {every_samples: %d}
checkpoint: {every_updates: %d}
faults: [{worker: 0, slow: {factor: 2, from: %d}}]
sync:
  - {match: "fc1.*", scheme: ssp, staleness: %d}
  - {match: "fc2.*", schemes: [{scheme: bsp, until: %d}, {scheme: asp, weight: 0.5}]}
  - {match: "fc3.*", scheme: drop, required: %d}
  - {match: "fc4.*", scheme: softsync, q: %d}
  - {match: "*", scheme: bounded_delay, tau: %d}
`,
		v["cluster.servers"], rows, batch, v["train.schedule.at[0]"], v["train.schedule.warm_up"],
		samples, v["evaluate.every_samples"], v["checkpoint.every_updates"],
		v["faults[0].slow.from"], v["sync[0].staleness"], v["sync[1].schemes[0].until"], v["sync[2].required"], v["sync[3].q"], v["sync[4].tau"])
	c, o, ds := configs.Parse("idle.yaml", []byte(src), configs.Options{})
	if ds.Failed() {
		t.Fatalf("%v\n%s", ds, src)
	}
	var b strings.Builder
	for _, d := range slices.Concat(ds, idle.More(c, o, f)) {
		if d.Line < 1 || d.Source == "" {
			t.Fatalf("without a place: %v", d)
		}
		b.WriteString(d.String() + "\n")
	}
	return b.String()
}

// A quorum of more workers than there are, and a version of more pushes than the run has, are warned of; one less is not.
func TestIdleLateWorkers(t *testing.T) {
	for _, c := range []struct {
		rule, want string
	}{
		{"scheme: quorum, required: 4", "sync[0].required: 4 is more than the 3 workers"},
		{"scheme: quorum, required: 3", ""},
		// one of 3 pushes counts, if the others are stale
		{"scheme: rennala, pushes: 91", "sync[0].pushes: 91 pushes for a version, but the run has at most 90 pushes"},
		{"scheme: rennala, pushes: 90", ""},
	} {
		cfg, o, ds := configs.Parse("late.yaml", []byte(fmt.Sprintf("name: late\ncluster: {servers: 1}\ndata: {set: generated, "+
			"rows: 480}\nmodel: {name: softmax}\n"+
			"train: {batch_per_worker: 16, optimizer: {lr: 0.1}, stop: {samples: 480}}\nsync: [{match: '*', %s}]\n", c.rule)), configs.Options{})
		if ds.Failed() {
			t.Fatal(ds)
		}
		got := ""
		for _, d := range idle.More(cfg, o, settings.Facts{Workers: 3, Computes: 3, Servers: 1, Rows: 480, Lead: 1}) {
			got += d.String() + "\n"
		}
		if !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "sync[0]") {
			t.Errorf("%s: warned of %q, want %q", c.rule, got, c.want)
		}
	}
}

// A rate that is far from its floor when the run ends, and one that is 0 long before, are warned of; a tenth of the run is no mistake.
func TestIdleDecay(t *testing.T) {
	const over = "train.schedule.over: "
	for schedule, want := range map[string]string{ // the run has 100 iterations
		"over: 100":                         "",
		"over: 110":                         "",
		"over: 111":                         over + "111 iterations until the floor, but the run has 100 iterations",
		"over: 1000":                        "the rate ends at 0.976 of lr; set it to 100",
		"over: 90":                          "",
		"over: 89":                          over + "the rate is 0 after 89 iterations, but the run has 100 iterations",
		"over: 50, floor: 0.01":             "",
		"over: 80, warm_up: 20":             "",
		"over: 100, warm_up: 20":            "set it to 80",
		"over: 69, warm_up: 20":             "the rate is 0 after 89 iterations",
		"over: 50, floor: 0.01, warm_up: 9": "",
		"over: 50, warm_up: 200":            "",
	} {
		c, o, ds := configs.Parse("decay.yaml", []byte("name: decay\ncluster: {servers: 1}\ndata: {set: generated, rows: 480}\n"+
			"model: {name: softmax}\ntrain: {batch_per_worker: 16, optimizer: {lr: 0.1}, stop: {updates: 100}, schedule: {name: cosine, "+
			schedule+"}}\nsync: [{match: '*', scheme: bsp}]\n"), configs.Options{})
		if ds.Failed() {
			t.Fatal(ds)
		}
		f := settings.Facts{Workers: 3, Computes: 3, Servers: 1, Rows: 480, Lead: 1}
		got := strings.Join(strings.Fields(written(t, idle.More(c, o, f))), " ")
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, over) {
			t.Errorf("%s: %q, want %q", schedule, got, want)
		}
	}
}

// Threads move between workers of a host, so a simulation whose ranks are each on a host of their own says that none does.
func TestSimulatedThreadsNeedHosts(t *testing.T) {
	for ranks, warns := range map[int]bool{1: true, 2: false} {
		c, o, ds := configs.Parse("a.yaml", fmt.Appendf(nil, "name: a\ndata: {set: generated, rows: 640}\nmodel: {name: "+
			"softmax}\ntrain: {batch_global: 64, optimizer: {lr: 1}, stop: {epochs: 3}}\n"+
			"device: {kind: cpu, threads: 2}\nwork: {policy: epsp, threads_max: 3}\nsimulate: {ranks_per_host: %d}\n", ranks), configs.Options{})
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		for _, simulated := range []bool{true, false} {
			ds = idle.More(c, o, settings.Facts{Workers: 2, Computes: 2, Servers: 1, Rows: 640, Simulated: simulated})
			if text := written(t, ds); (len(ds) == 1) != (warns && simulated) || len(ds) == 1 &&
				!strings.Contains(text, "work.threads_max: 3, but no two workers share a host") {
				t.Errorf("%d ranks a host, simulated %t: %q", ranks, simulated, text)
			}
		}
	}
}

// Batches that differ gain nothing in a model where each takes equally long, so a simulation of them says so.
func TestSimulatedBatchesCost(t *testing.T) {
	for _, k := range []struct {
		work, compute, want string
		real                bool
	}{
		{work: "policy: dbs", want: "work.policy: dbs deals batches, but simulate.compute is 10ms whatever the batch: a " +
			"smaller batch is not faster; set simulate.compute"},
		{work: "policy: r2sp_batch", compute: "{fixed: 2ms, per_sample: 0s}",
			want: "work.policy: r2sp_batch deals batches, but simulate.compute is 2ms"},
		{work: "shares: [2, 1]", want: "work.shares: the batches of ranks differ, but simulate.compute is 10ms"},
		{work: "policy: fixed"},
		{work: "policy: dbs", compute: "{per_sample: 1us}"},
		{work: "policy: dbs", real: true},
	} {
		c, o, ds := configs.Parse("a.yaml", fmt.Appendf(nil, "name: a\ndata: {set: generated, rows: 640}\nmodel: {name: "+
			"softmax}\ntrain: {batch_global: 64, optimizer: {lr: 1}, stop: {epochs: 3}}\n"+
			"work: {%s}\nsimulate: {compute: %s}\n", k.work, cmp.Or(k.compute, "10ms")), configs.Options{})
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		ds = idle.More(c, o, settings.Facts{Workers: 2, Computes: 2, Servers: 1, Rows: 640, Simulated: !k.real})
		if text := written(t, ds); len(ds) > 1 || (len(ds) == 1) != (k.want != "") || !strings.Contains(text, k.want) {
			t.Errorf("work: {%s}, compute %s: %q", k.work, k.compute, text)
		}
	}
}

// written is what the user reads of the diagnostics.
func written(t *testing.T, ds configs.Diagnostics) string {
	t.Helper()
	var b strings.Builder
	if err := ds.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
