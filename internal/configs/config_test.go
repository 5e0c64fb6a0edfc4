package configs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/reading"
	"fluentps/internal/configs/settings"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics/records"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

const base = `name: base
data: {set: generated}
model: {name: mlp, layers: [16, 8]}
train:
  batch_per_worker: 32
  optimizer: {name: momentum, lr: 0.1}
  stop: {epochs: 1}
sync:
  - {match: "fc1.*", scheme: bsp}
  - {match: "*", scheme: ssp, staleness: 2}
`

func accept(t *testing.T, src string, o Options) (*settings.Config, *diag.Origins) {
	t.Helper()
	c, origins, ds := Parse("base.yaml", []byte(src), o)
	if len(ds) > 0 {
		t.Fatalf("problems:\n%s", written(t, ds))
	}
	return c, origins
}

// TestValues compares a whole Config field by field, so that no key lands in the wrong place. What the file does not give is as
// the constructor has it.
func TestValues(t *testing.T) {
	c, origins, ds := Parse("everything.yaml", sources(t)["everything.good.yaml"], Options{})
	if len(ds) > 0 {
		t.Fatal(written(t, ds))
	}
	want := &settings.Config{
		Name: "everything_1.2-x", Seed: 18446744073709551615, Baseline: settings.BaselineNone,
		Cluster: settings.Cluster{Servers: 3, Placement: "colocate", Hierarchy: "none", SharedMemory: settings.SharedOff,
			Bind: settings.BindOff, MemoryMax: 8 << 30},
		Data:  dataset.Keys{Set: "csv", Path: "data/train set.csv", Test: "data/test.csv", Scale: 16, Partition: "overlap_reshuffle"},
		Model: workload.ModelSpec{Name: "mlp", Layers: []int{512, 256, 128}},
		Train: settings.Train{
			BatchGlobal: 1024,
			Optimizer:   settings.Optimizer{Spec: optim.Spec{Name: "nesterov", LR: 1e-3, WeightDecay: 5e-4}, NoDecay: []string{}},
			Schedule:    optim.Schedule{Name: "step", At: []int64{1000, 2000}, Factor: 0.5, WarmUp: 100},
			Stop:        settings.Stop{Epochs: 2.5, Samples: 10000000, Updates: 4000, Time: 90 * time.Minute, Target: 0.975},
		},
		Evaluate: settings.Evaluate{EveryEpochs: 0.25, Where: "online"},
		Device:   settings.Device{Kind: "cpu", Threads: 4},
		Shards:   shard.Spec{Slice: "layer", MaxBytes: 1500000},
		Sync: []settings.Rule{
			{Match: "fc?.bias", Push: "gradient", Update: "optimizer",
				Phase: settings.Phase{Scheme: "bsp", Common: scheme.Common{Fold: scheme.FoldArrival, Weight: 0.25},
					Params: &scheme.BSPParams{Strict: false, Release: scheme.ReleaseBlock}}},
			{Match: "fc1.*", Push: "gradient", Update: "optimizer",
				Phase: settings.Phase{Scheme: "ssp", Common: scheme.Common{Fold: scheme.FoldRank},
					Params: &scheme.SSPParams{Staleness: 0, Release: scheme.ReleaseSoft}}},
			{Match: "*", Push: "gradient", Update: "optimizer",
				Phase: settings.Phase{Scheme: "asp", Common: scheme.Common{Fold: scheme.FoldArrival, Weight: 0.125}, Params: &scheme.ASPParams{}}},
		},
		Send: send.Spec{Order: "credit", Credit: 6_000_000,
			Tune: send.Tune{Points: 8, Steps: 50, Min: 1_000_000, Max: 32_000_000}, Overlap: false},
		Payload: settings.Payload{Push: "threshold", Pull: "bfloat16", Params: payload.Params{Ratio: 0.125, Threshold: 0.5}},
		Work:    work.Spec{Policy: "fixed"}, Local: local.Spec{Policy: "none", Steps: 1, HostSteps: 1, Period: local.Period{Name: "constant"}},
		Faults: []settings.Fault{
			{Worker: -1, Slow: straggler.Spec{Kind: "constant", Sleep: 2 * time.Millisecond}},
			{Worker: 3, Slow: straggler.Spec{Kind: "two_state", Factor: 5, Enter: 0.5, Leave: 1, From: 100, Until: 200}},
			{Worker: 0, Pause: settings.FaultPause{At: time.Second, For: 2 * time.Second}, Slow: straggler.Spec{Kind: "constant"}},
		},
		Stall:      settings.Stall{Warn: 90 * time.Second, Abort: time.Hour, Peer: 150 * time.Second},
		Checkpoint: settings.Checkpoint{Keep: 5, Best: settings.BestNone},
		Metrics:    records.Spec{Sinks: []string{"csv"}, Interval: 500 * time.Millisecond},
		Simulate: settings.Simulate{
			Workers: 10000, RanksPerHost: 8,
			Compute: workload.Cost{Fixed: 250 * time.Microsecond, PerSample: time.Microsecond}, PerWorker: []float64{1, 0.25},
			Network:  settings.Network{Bandwidth: 12_500_000_000, Memory: 40_000_000_000},
			FoldRate: 0, CommitRate: 512 << 20, PushNorm: 0.1, Gradients: true,
		},
	}
	top := keys.Bind("", keys.TopKeys, want)
	for _, l := range top.Leaves {
		if origins.Of(l.Path) != "default" {
			l.Key = &yaml.Node{}
		}
	}
	(&walker{}).finish(top, nil) // with the defaults of the rest
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v, want\n%+v", c, want)
	}
}

func TestPrecedence(t *testing.T) {
	env := []string{"FLUENTPS_SEED=3", "FLUENTPS_TRAIN__STOP__EPOCHS=7", "HOME=/", "FLUENTPS_DEVICE__THREADS=2", "FLUENTPS_CLUSTER__SERVERS="}
	c, o := accept(t, base, Options{Env: env, Set: []string{"train.stop.epochs=8", "seed=4", "seed=5"}})
	for _, want := range []struct {
		path, origin string
		got, value   any
	}{
		{"cluster.servers", "default", c.Cluster.Servers, 1},
		{"train.batch_per_worker", "base.yaml:5", c.Train.BatchPerWorker, 32},
		{"device.threads", "env FLUENTPS_DEVICE__THREADS", c.Device.Threads, 2},
		{"train.stop.epochs", "--set", c.Train.Stop.Epochs, 8.0},
		{"seed", "--set", c.Seed, uint64(5)},
		{"sync[1].release", "default", c.Sync[1].Params.(*scheme.SSPParams).Release, scheme.ReleaseSoft},
	} {
		if want.got != want.value || o.Of(want.path) != want.origin {
			t.Errorf("%s is %v from %s, want %v from %s", want.path, want.got, o.Of(want.path), want.value, want.origin)
		}
	}
}

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		set  []string
		want func(*settings.Config) bool
	}{
		{[]string{"sync[1].staleness=5"}, func(c *settings.Config) bool { return c.Sync[1].Params.(*scheme.SSPParams).Staleness == 5 }},
		{[]string{"sync[1].staleness=null", "sync[1].scheme=asp"}, func(c *settings.Config) bool { return c.Sync[1].Scheme == "asp" }},
		{[]string{`sync=[{match: "*", scheme: asp}]`}, func(c *settings.Config) bool { return len(c.Sync) == 1 && c.Sync[0].Scheme == "asp" }},
		{[]string{"sync[1].match=fc2.*", "sync[2].match=*", "sync[2].scheme=bsp"}, func(c *settings.Config) bool {
			return len(c.Sync) == 3 && c.Sync[1].Match == "fc2.*" && c.Sync[2].Match == "*"
		}},
		{[]string{"sync[0]="}, func(c *settings.Config) bool { return len(c.Sync) == 1 && c.Sync[0].Match == "*" }},
		{[]string{"faults[0].worker=*", "faults[0].slow.factor=5"}, func(c *settings.Config) bool {
			return c.Faults[0] == settings.Fault{Worker: -1, Slow: straggler.Spec{Kind: "constant", Factor: 5}}
		}},
		{[]string{"faults=[{worker: 3, slow: {sleep: 2ms}}]"},
			func(c *settings.Config) bool { return c.Faults[0].Slow.Sleep == 2*time.Millisecond }},
		{[]string{"model.layers[1]=99", "model.layers[2]=5"},
			func(c *settings.Config) bool { return slices.Equal(c.Model.Layers, []int{16, 99, 5}) }},
		{[]string{"model.layers[0]=null"}, func(c *settings.Config) bool { return slices.Equal(c.Model.Layers, []int{8}) }},
		{[]string{"name=7"}, func(c *settings.Config) bool { return c.Name == "7" }},
		{[]string{`name="quoted"`}, func(c *settings.Config) bool { return c.Name == "quoted" }},
		{[]string{"train.batch_per_worker=null", "train.batch_global=64"},
			func(c *settings.Config) bool { return c.Train.BatchGlobal == 64 && c.Train.BatchPerWorker == 0 }},
		{[]string{"train.optimizer={name: sgd, lr: 2}"},
			func(c *settings.Config) bool { return c.Train.Optimizer.Name == "sgd" && c.Train.Optimizer.LR == 2 }},
		{[]string{"data.set=idx", "data.path=/a=b # c"}, func(c *settings.Config) bool { return c.Data.Path == "/a=b # c" }},
		{[]string{"shards.max_bytes=64KiB"}, func(c *settings.Config) bool { return c.Shards.MaxBytes == 65536 }},
		{[]string{"evaluate.every_samples=640"}, func(c *settings.Config) bool {
			return c.Evaluate.EverySamples == 640 &&
				c.Evaluate.EveryEpochs == 0
		}},
		{[]string{"evaluate.every_samples=0"}, func(c *settings.Config) bool {
			return c.Evaluate.EverySamples == 0 &&
				c.Evaluate.EveryEpochs == 1
		}},
		{[]string{"metrics.sinks=[csv]"}, func(c *settings.Config) bool { return slices.Equal(c.Metrics.Sinks, []string{"csv"}) }},
	} {
		t.Run(strings.Join(tt.set, " "), func(t *testing.T) {
			if c, _ := accept(t, base, Options{Set: tt.set}); !tt.want(c) {
				t.Errorf("not applied: %+v", c)
			}
		})
	}
}

// TestEnvList shows that indices are segments of their own.
func TestEnvList(t *testing.T) {
	c, o := accept(t, base,
		Options{Env: []string{"FLUENTPS_SYNC__1__STALENESS=9", "FLUENTPS_NAME=2024", "FLUENTPS_LOG=debug",
			"FLUENTPS_TEST_DATA=/x", "FLUENTPS_KERNELS_ISA=avx2"}})
	if got := c.Sync[1].Params.(*scheme.SSPParams).Staleness; got != 9 || c.Name != "2024" {
		t.Errorf("staleness is %d and name %s, want 9 and 2024", got, c.Name)
	}
	if got := o.Of("sync[1].staleness"); got != "env FLUENTPS_SYNC__1__STALENESS" {
		t.Errorf("origin is %s", got)
	}
}

// TestAliasOverride changes one use of an anchor and leaves the other alone.
func TestAliasOverride(t *testing.T) {
	c, _ := accept(t, string(sources(t)["anchors.good.yaml"]), Options{Set: []string{"faults[1].slow.factor=9"}})
	if c.Faults[0].Slow.Factor != 2 || c.Faults[1].Slow.Factor != 9 {
		t.Errorf("factors are %v and %v, want 2 and 9", c.Faults[0].Slow.Factor, c.Faults[1].Slow.Factor)
	}
}

func TestOverrideProblems(t *testing.T) {
	o := Options{
		Env: []string{
			"FLUENTPS_TRAIN__BACH_PER_WORKER=64", "FLUENTPS_LR=3", "FLUENTPS_SWEEP={seed: [1]}",
			"FLUENTPS_SYNC__0__SCHEM=bsp", "FLUENTPS_DEVICE__THREADS=many", "FLUENTPS_XYZZY=1",
		},
		Set: []string{
			"seed", "=3", "train..stop=1", "train.stop[x]=1", "lr=3", "train.stop.epoch=3", "name.first=x", "name[0]=x",
			"sync[7].scheme=asp", "sync[1].staleness=-1", "sync[0].staleness=1", "model.layers=[1, x]", "train=[1",
			"cluster={serverz: 3}", "seed=\xff", "data.set=idxx", "metrics.sinks=*.x", "faults[0]=null",
		},
	}
	c, _, ds := Parse("base.yaml", []byte(base), o)
	if c != nil {
		t.Error("was accepted")
	}
	sane(t, ds)
	golden(t, "testdata/overrides.yaml", []byte(written(t, ds)))
}

// TestOverridesSaveFile shows that only the values that count are checked.
func TestOverridesSaveFile(t *testing.T) {
	src := strings.Replace(base, "lr: 0.1", "lr: -1", 1)
	if c, _ := accept(t, src, Options{Set: []string{"train.optimizer.lr=0.5"}}); c.Train.Optimizer.LR != 0.5 {
		t.Errorf("lr is %v, want 0.5", c.Train.Optimizer.LR)
	}
}

func TestResolvedOrigins(t *testing.T) {
	c, o := accept(t, base,
		Options{Env: []string{"FLUENTPS_SEED=3"},
			Set: []string{"sync[1].staleness=null", "sync[1].scheme=asp", "faults[0]={worker: 1, slow: {factor: 2}}"}})
	var out bytes.Buffer
	if err := keys.Resolved(&out, c, o); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/resolved.yaml", out.Bytes())
	roundTrip(t, c, o, 0)
}

func TestHash(t *testing.T) {
	a, _ := accept(t, base, Options{})
	b, _ := accept(t, base, Options{Set: []string{"train.stop.epochs=1", "cluster.servers=1"}})
	d, _ := accept(t, base, Options{Set: []string{"sync[1].staleness=4"}})
	if keys.Hash(a) != keys.Hash(b) {
		t.Error("the hash depends on where values come from")
	}
	if keys.Hash(a) == keys.Hash(d) {
		t.Error("the hash misses a scheme's key")
	}
	if len(keys.Hash(a)) != 64 {
		t.Errorf("hash is %q, want 64 hexadecimal digits", keys.Hash(a))
	}
}

func TestJSON(t *testing.T) {
	_, _, ds := Parse("x.yaml", []byte(strings.Replace(base, "seed", "sed", 1)+"  - {match: fc1.bias, scheme: "+
		"bspp}\nsend: {order: fifi}\n"), Options{})
	var got struct {
		Errors, Warnings []struct {
			File, Path, Message, Hint, Severity, Source string
			Line, Col                                   int
		}
	}
	if err := json.Unmarshal(ds.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Errors) != 2 || len(got.Warnings) != 1 {
		t.Fatalf("%d errors and %d warnings, want 2 and 1: %s", len(got.Errors), len(got.Warnings), ds.JSON())
	}
	if e := got.Errors[1]; e.File != "x.yaml" || e.Line != 12 || e.Col != 15 || e.Path != "send.order" || e.Severity != "error" ||
		e.Message != `"fifi" is unknown` || e.Hint != "did you mean fifo?" || e.Source != "send: {order: fifi}" {
		t.Errorf("error is %+v", e)
	}
	if w := got.Warnings[0]; w.Severity != "warning" || w.Path != "sync[2].match" {
		t.Errorf("warning is %+v", w)
	}
	if got := string((diag.Diagnostics)(nil).JSON()); !strings.Contains(got, `"errors": []`) || !strings.Contains(got, `"warnings": []`) {
		t.Errorf("no problems are %s, want two empty lists", got)
	}
}

func TestLoadRefusals(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, bytes.Repeat([]byte("# data\n"), diag.BytesMax/7+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"testdata/absent.yaml": "testdata/absent.yaml: cannot be read: no such file or directory\n",
		"testdata":             "testdata: cannot be read: it is a folder\n",
		big:                    big + ": cannot be read: more than 1048576 bytes; name the configuration, not the data\n",
	} {
		c, _, ds := Load(file, Options{})
		if got := written(t, ds); c != nil || got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

// TestLoops feeds aliases that stand for what they are part of.
func TestLoops(t *testing.T) {
	for _, src := range []string{"name: &a [*a]\n", "sync: &a [*a, *a]\n", "train: &t {optimizer: *t, stop: *t}\n", "&r {train: *r}\n"} {
		c, _, ds := Parse("loop.yaml", []byte(src), Options{Set: []string{"train.stop.epochs=1", "train.optimizer.lr=1"}})
		if c != nil || !ds.Failed() {
			t.Errorf("%q was accepted", src)
		}
		sane(t, ds)
	}
}

// TestTableDefaults reads every default by itself; fill panics on one that its own key refuses.
func TestTableDefaults(t *testing.T) {
	for _, k := range keys.All() {
		if k.Doc == "" {
			t.Errorf("%s has no doc", k.Path)
		}
		if k.Required && k.Default != "" {
			t.Errorf("%s is required and has a default", k.Path)
		}
	}
	for _, l := range keys.Bind("", keys.TopKeys, &settings.Config{}).Leaves {
		if l.Def != "" {
			w := &walker{Reading: reading.New(diag.NewText("", nil), nil, diag.NewOrigins())}
			w.fill(l)
			if len(w.Diags) > 0 {
				t.Errorf("default of %s: %s", l.Path, w.Diags[0])
			}
		}
	}
}

// A key that another section has may be meant for one of its own section that begins with the same word.
func TestKeysOfTheSectionComeFirst(t *testing.T) {
	_, _, ds := Parse("base.yaml", []byte(base+"\ncheckpoint: {every_epochs: 1}\n"), Options{})
	if want := "checkpoint.every_epochs: unknown key; did you mean checkpoint.every, checkpoint.every_updates or " +
		"evaluate.every_epochs?"; !strings.Contains(written(t, ds), want) {
		t.Errorf("%s, want %s", written(t, ds), want)
	}
}
