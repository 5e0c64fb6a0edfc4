package runtime

import (
	"encoding/json"
	"errors"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/show/metrics"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload/external/externaltest"
)

func TestMain(m *testing.M) {
	if code, isChild := externaltest.Main(); isChild {
		os.Exit(code)
	}
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // of children: they end without a second's rest
	goleak.VerifyTestMain(m)
}

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, set...)
}

func options(c *configs.Config, tr comm.Transport) Options {
	return Options{Config: c, Hash: "h", Build: "test", Mode: "local", Host: "here", PID: 100 + tr.Rank(), Transport: tr, Load: cached,
		NewDevice: func() (kernels.Device, error) { return cpu.New(1), nil }, Lead: LeadOptions{Out: io.Discard}, Warn: io.Discard}
}

// world runs ranks as goroutines; change edits each rank's options.
func world(t testing.TB, c *configs.Config, n int, change func(*Options)) ([]Result, []error) {
	t.Helper()
	return runOver(t, inproc.New(n, inproc.Options{}), c, change)
}

func runOver(t testing.TB, ts []comm.Transport, c *configs.Config, change func(*Options)) ([]Result, []error) {
	t.Helper()
	res, errs := make([]Result, len(ts)), make([]error, len(ts))
	var wg sync.WaitGroup
	for i, tr := range ts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			o := options(c, tr)
			if change != nil {
				change(&o)
			}
			res[i], errs[i] = Run(o)
			if errs[i] != nil {
				var agreed *ExitError
				if !errors.As(errs[i], &agreed) {
					tr.Abort(CodeFailed)
				}
			}
			if err := tr.Close(); err != nil && errs[i] == nil {
				errs[i] = fmt.Errorf("close: %w", err)
			}
		}()
	}
	wg.Wait()
	return res, errs
}

// mustTrain is world that must end well. It returns rank 0's result.
func mustTrain(t testing.TB, c *configs.Config, n int) Result {
	t.Helper()
	res, errs := world(t, c, n, nil)
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
	return res[0]
}

func TestBSPTrainsAndTheSummaryAddsUp(t *testing.T) {
	s := mustTrain(t, load(t), 6).Summary
	if s.Finished != "ok" || s.Mode != "local" || s.Servers != 2 || s.Workers != 4 || s.Iterations != 30 || s.Samples != 960 {
		t.Errorf("summary %+v", s)
	}
	if s.MaxLead != 0 {
		t.Errorf("max_lead %d under bsp", s.MaxLead)
	}
	if acc := float64(*s.TestAccuracy); acc < 0.8 {
		t.Errorf("test accuracy %.3f", acc)
	}
	if len(s.Evaluations) != 2 || s.Evaluations[0].Samples != 480 || s.Evaluations[1].Samples != 960 ||
		*s.Evaluations[1].TestAccuracy != *s.TestAccuracy {
		t.Errorf("evaluations %+v", s.Evaluations)
	}
	for _, sh := range s.PerShard {
		if sh.Pushes != 120 || sh.Pulls != 124 || sh.StalenessMax != 0 || sh.Dropped != 0 {
			t.Errorf("shard %+v", sh)
		}
	}
	if s.BytesSent != s.BytesReceived || s.BytesSent < 31*4*21*4*4 {
		t.Errorf("bytes sent %d, received %d", s.BytesSent, s.BytesReceived)
	}
}

// BSP is exact: the same bits for 1, 2 and 3 servers, and every slicing, piece size, placement and fold of ranks.
func TestBSPHashDoesNotDependOnServersSlicingPiecesOrPlacement(t *testing.T) {
	want := mustTrain(t, load(t, "cluster.servers=1"), 5).Summary.ParametersSHA256
	for _, c := range []struct {
		ranks int
		set   []string
	}{
		{6, []string{"cluster.servers=2"}},
		{7, []string{"cluster.servers=3"}},
		{7, []string{"cluster.servers=3", "shards.slice=layer"}},
		{6, []string{"shards.slice=range"}},
		{6, []string{"shards.max_bytes=64B"}},
		{6, []string{"shards={slice: layer, max_bytes: 64B}", "send={order: priority, window: 256B}"}},
		{6, []string{"shards={slice: slices, max_bytes: 64B}", "send={order: priority, overlap: false}"}},
		{6, []string{"shards.max_bytes=64B", "send={order: credit, credit: 100B, tune: {points: 3, steps: 2, min: 50B, max: 500B}}"}},
		{4, []string{"cluster.placement=colocate"}},
		{6, []string{"cluster.placement=pack", "evaluate.where=online"}},
	} {
		t.Run(strings.Join(c.set, " "), func(t *testing.T) {
			if got := mustTrain(t, load(t, c.set...), c.ranks).Summary.ParametersSHA256; got != want {
				t.Errorf("sha256 %s, want %s", got, want)
			}
		})
	}
	for _, longest := range []int{-1, 64} { // no pieces in frames; some pieces in frames
		res, errs := world(t, load(t, "model={name: mlp, layers: [8]}"), 6, func(o *Options) { o.thresholds.Inline = longest })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if got, want := res[0].Summary.ParametersSHA256,
			mustTrain(t, load(t, "model={name: mlp, layers: [8]}"), 6).Summary.ParametersSHA256; got != want {
			t.Errorf("pieces of up to %d bytes in frames: sha256 %s, want %s", longest, got, want)
		}
	}
	layers := []string{"model={name: mlp, layers: [24, 16, 8]}", "shards.slice=layer", "shards.max_bytes=256B"} // forward may start early
	want4 := mustTrain(t, load(t, append(layers, "cluster.servers=1")...), 5).Summary.ParametersSHA256
	for ranks, cluster := range map[int]string{6: "cluster={servers: 2}", 4: "cluster={servers: 2, placement: colocate}"} {
		if got := mustTrain(t, load(t, append(layers, cluster)...), ranks).Summary.ParametersSHA256; got != want4 {
			t.Errorf("4 layers, %s: sha256 %s, want %s", cluster, got, want4)
		}
	}
	if other := mustTrain(t, load(t, "seed=12"), 6).Summary.ParametersSHA256; other == want {
		t.Error("another seed gave the same parameters")
	}
}

// Before training rank 0 is told what the run is, and writes down what each rank computes with.
func TestWhatRanksAreIsKnownBeforeTraining(t *testing.T) {
	dir, known := filepath.Join(t.TempDir(), "out"), configs.Facts{}
	_, errs := runPart(t, load(t), 6, dir, "", func(o *Options) {
		o.Lead.Known = func(f configs.Facts) { known = f }
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if want := (configs.Facts{Workers: 4, Computes: 4, Servers: 2, Rows: 480, Lead: 1}); known != want {
		t.Errorf("rank 0 was told %+v, want %+v", known, want)
	}
	var info struct{ Ranks []coordinate.RankInfo }
	text, err := os.ReadFile(filepath.Join(dir, metrics.RunInfoName))
	if err := errors.Join(err, json.Unmarshal(text, &info)); err != nil || len(info.Ranks) != 6 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, r := range info.Ranks {
		if r.KernelSet != cpu.Backend() {
			t.Errorf("rank %d, %s, has kernel set %q, want %q", r.Rank, r.Role, r.KernelSet, cpu.Backend())
		}
	}
}
