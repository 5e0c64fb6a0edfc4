package layout

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func TestThePlanSaysWhenSchemesChange(t *testing.T) {
	c := load(t, "sync=[{match: '*', schemes: [{scheme: bsp, until: 10}, {scheme: asp, until: {epochs: 2}}, {scheme: ssp}]}]")
	p, err := Plan(c, []workload.Param{{Name: "w", Shape: []int{100}}}, 2, Link{})
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"a", "a", "a", "a", "a", "a"}
	roles, err := shard.Assign(hosts, 2, "spread")
	if err != nil {
		t.Fatal(err)
	}
	set, err := cached(DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	text := Text(c, p, roles, hosts, set, Link{})
	for _, want := range []string{"bsp>asp>ssp",
		"*: bsp until iteration 10, then asp until iteration 30, then ssp; each change waits until all workers have come to it"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "WARNING") {
		t.Errorf("a warning in\n%s", text)
	}
}

// An epoch that a policy deals ends with an iteration of the rows that are left, and the plan counts it.
func TestThePlanCountsTheIterationsOfDealtEpochs(t *testing.T) {
	set := []string{"data={set: generated, rows: 200}", "train.batch_per_worker=null", "train.batch_global=48", "train.stop={epochs: 5}",
		"sync=[{match: '*', schemes: [{scheme: bsp, until: {epochs: 2}}, {scheme: asp}]}]"}
	for policy, want := range map[string][]string{
		"fixed": {"iterations: 21 in all, 5 an epoch", "bsp until iteration 9, then asp", "asp: 48 updates"},
		"dbs":   {"iterations: 25 in all, 5 an epoch", "bsp until iteration 10, then asp", "asp: 60 updates"},
	} {
		text := textOf(t, append(set, "work.policy="+policy)...)
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", policy, want, text)
			}
		}
	}
}

var update = flag.Bool("update", false, "rewrite the goldens")

func TestTextGolden(t *testing.T) {
	textGolden(t, "plan", "model={name: mlp, layers: [16, 12]}", "train.stop={epochs: 4}", "shards={slice: layer, max_bytes: 512B}",
		"sync=[{match: 'fc9.*', scheme: asp}, {match: 'fc3.*', scheme: bsp}, {match: '*', scheme: ssp, staleness: 3, fold: rank}]")
	textGolden(t, "plan-keys", "model={name: mlp, layers: [200]}", "baseline={name: pslite, keys: scalar}")
	textGolden(t, "plan-payload", "model={name: mlp, layers: [200]}",
		"payload={push: topk, ratio: 0.01, pull: bfloat16}", "send={order: priority}")
}

// textOf is the plan of a run of 2 servers and 4 workers on 2 hosts.
func textOf(t *testing.T, settings ...string) string {
	t.Helper()
	c := load(t, settings...)
	set, err := dataset.Load(DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Architecture(c, set)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"h1", "h1", "h1", "h2", "h2", "h2"}
	roles, err := shard.Assign(hosts, c.Cluster.Servers, c.Cluster.Placement)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Plan(c, a.Params(), c.Cluster.Servers, Link{})
	if err != nil {
		t.Fatal(err)
	}
	return Text(c, p, roles, hosts, set, Link{})
}

func textGolden(t *testing.T, name string, settings ...string) {
	t.Helper()
	got := textOf(t, settings...)
	file := "testdata/" + name + ".txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The tables of a plan fit into 80 columns, with many layers, long names, large models and many ranks on a host.
func TestTablesFit(t *testing.T) {
	for _, set := range [][]string{
		{"model={name: mlp, layers: [16, 12]}", "shards={slice: layer, max_bytes: 512B}"},
		{"model={name: mlp, layers: [20000, 2000]}", "shards.slice=range"},
		{"data={set: generated, rows: 480, image: [3, 32, 32], classes: 10}", "model={name: resnet20}", "shards.slice=layer",
			`sync=[{match: "conv1.*a.very.long.pattern.of.names.*", scheme: asp}, {match: "*", scheme: bounded_delay}]`},
	} {
		table := false
		for line := range strings.Lines(textOf(t, set...)) {
			table = table && line != "\n" || strings.HasPrefix(line, "Roles:") || strings.HasPrefix(line, "  shard  ")
			if n := len(strings.TrimSuffix(line, "\n")); table && n > metrics.TextWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	var b strings.Builder
	hosts := slices.Repeat([]string{"a-host-with-a-name"}, 64)
	roles, err := shard.Assign(hosts, 2, "spread")
	if err != nil {
		t.Fatal(err)
	}
	planRoles(&b, roles, hosts)
	for line := range strings.Lines(b.String()) {
		if len(line) > metrics.TextWidth+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

// plan warns of uneven servers if another slicing evens them out, but not if they are uneven on purpose.
func TestWarningAboutAFullServer(t *testing.T) {
	for _, c := range []struct {
		set  string
		warn bool
	}{
		{"shards={slice: layer}", true},
		{"shards={slice: even}", false},
		{"cluster.placement=mixed", false},
	} {
		cfg := load(t, "model={name: mlp, layers: [200]}", c.set)
		set, err := cached(DataSpec(cfg))
		if err != nil {
			t.Fatal(err)
		}
		a, err := Architecture(cfg, set)
		if err != nil {
			t.Fatal(err)
		}
		hosts := []string{"h1", "h2", "h3", "h4", "h5", "h6"}
		roles, err := Roles(cfg, hosts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Plan(cfg, a.Params(), len(roles.Servers), Link{})
		if err != nil {
			t.Fatal(err)
		}
		if text := Text(cfg, p, roles, hosts, set, Link{}); strings.Contains(text, "times the mean: use shards.slice: even") != c.warn {
			t.Errorf("%s: want a warning: %t; got\n%s", c.set, c.warn, text)
		}
	}
}

// The plan says when checkpoints are written, whether workers wait for them, and which are kept.
func TestPlanSaysHowCheckpointsAreMade(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"checkpoint.every=10m"}, "every 10m0s, of a version announced in advance; no worker waits\n  kept: the newest 3\n"},
		{[]string{"checkpoint={every_updates: 50, keep: 2, best: loss}", "evaluate.where=online", "sync=[{match: '*', scheme: asp}]"},
			"every 50 versions of the lead shard, all workers pause for each until the slowest has ended its iteration\n  " +
				"kept: the newest 2, and the best by test loss, for which rank 0 evaluates each, beside training\n"},
		{[]string{"checkpoint.every=10m", "sync=[{match: '*.bias', scheme: bsp}, {match: '*', scheme: asp}]"},
			"has ended its iteration, the same iteration for all\n"},
	} {
		if text := textOf(t, c.set...); !strings.Contains(text, c.want) {
			t.Errorf("%v: no %q in\n%s", c.set, c.want, text)
		}
	}
}

// The plan says at which share of a step an update of single pushes is, if it knows. It knows for gradients under ssp,
// although deltas have another weight.
func TestPlanSaysHowLargeAnUpdateIs(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"scheme: asp", ", at 1/4 of a whole step"},
		{"scheme: ssp", ", at 1/4 of a whole step"},
		{"scheme: ssp, weight: 0.5", ", at 0.5 of a whole step"},
		{"scheme: ssp, push: delta", ", at 1 of a whole step"},
		{"scheme: essp", ", at 1 of a whole step"},
		{"scheme: dynsgd", ", at the share of a step that fluentps explain dynsgd gives"},
	} {
		if text := textOf(t, "sync=[{match: '*', "+c.rule+"}]"); !strings.Contains(text, c.want+"\n") {
			t.Errorf("%s: no %q in\n%s", c.rule, c.want, text)
		}
	}
}

// With steps of the workers' own the plan says what a step and an iteration are, what the servers do, and that shards
// whose fragments take turns make fewer versions. What only the run decides is an upper limit.
func TestThePlanOfStepsOfTheirOwn(t *testing.T) {
	// 100 steps of 64 samples
	base := []string{"data={set: generated, rows: 640}", "train.batch_per_worker=16", "train.stop={epochs: 10}",
		"model={name: mlp, layers: [16]}"}
	for local, want := range map[string][]string{
		"{policy: averaging, steps: 5}": {"a step is 64 samples", "iterations: 20 in all, 2 an epoch",
			"an iteration is 5 steps of each worker and an exchange; 100 steps of each worker in all", "local averaging: each worker takes",
			"servers: sgd, lr 1, along the mean of the changes, weighted by samples: averaging of parameters",
			"bsp: 20 updates of a shard, one for each iteration: effective batch 320 samples"},
		"{policy: diloco, steps: 5, period: {name: qsr, alpha: 0.5}}": {"an iteration is 5 to (0.5 / learning rate)^2 " +
			"steps of each worker and an exchange", "iterations: at most 100 in all, at most 10 an epoch",
			"servers: nesterov, lr 0.7, momentum 0.9",
			"bsp: at most 100 updates of a shard, one for each iteration: effective batch 64 samples or more"},
		"{policy: slowmo, steps: 8, period: {name: adacomm, interval: 3}}": {"at first 8 steps of each worker, and " +
			"fewer every 3 exchanges as the loss falls", "servers: slowmo, lr 1, momentum 0.5"},
		"{policy: averaging, steps: 8, period: {name: selsync, threshold: 0.2}}": {"1 to 8 steps of each worker, until " +
			"the gradients of one have changed by 0.2 (1 up to step 25), and an exchange"},
		"{policy: hpsgd, compensate: 0.04}": {"as many steps of each worker as the last one takes, at least 1",
			"while its last push is in flight", "all of the same weight, which workers correct with lambda 0.04"},
		"{policy: post_local, switch: 30}": {"1 step of each worker and an exchange up to step 30, and from there 4 " +
			"steps of each worker and an exchange"},
		"{policy: streaming_diloco, steps: 10, fragments: 2, delay: 3, keep: 0.5}": {"5 steps of each worker and the " +
			"exchange of one of 2 fragments, in turn", "goes on for 3 steps before it takes an answer over, and keeps 0.5 of its own parameters",
			"bsp: 10 updates of a shard, one for each of its exchanges: effective batch 640 samples",
			"Traffic per 2 iterations, in which each shard is exchanged once"},
		"{policy: async_local, steps: 4}": {"4 steps of the fastest worker, fewer of slower ones",
			"servers: delayed_nesterov, lr 0.1, momentum 0.9, along each change; the momentum changes every 4 versions"},
		"{policy: easgd, steps: 4}": {"each push moves them 0.1 of the way to its worker, and the worker as far to them",
			"while its last push is in flight"},
	} {
		text := textOf(t, append(base, "local="+local)...)
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", local, want, text)
			}
		}
	}
}
