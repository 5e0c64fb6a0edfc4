package calibrate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// recorded returns the options of a run of two workers and a server, and its two files.
func recorded(t testing.TB) (o sim.Options, summary, iterations []byte) {
	t.Helper()
	r := record(t, simtest.Setting{Workers: 2, Servers: 1, Scheme: "ssp, staleness: 2", Iterations: 12, Bytes: 4000, Seed: 1,
		Set: append(simtest.Noisy(10*time.Millisecond, 0.1), "simulate.network={bandwidth: 10MB, latency: 50us}",
			"simulate.server={fold: 100MB, commit: 100MB}")})
	summary, err := r.Summary.JSON()
	if err != nil {
		t.Fatal(err)
	}
	iterations = timings.Header()
	for w, of := range r.Iterations {
		keep := timings.Recorder{Max: len(of)}
		for _, it := range of {
			keep.Add(it)
			keep.Waited(it.Blocked, it.Pull)
		}
		for k := range keep.Chunks() {
			iterations = append(iterations, keep.Chunk(w, k)...)
		}
	}
	o = r.Options
	o.Computed = nil
	return o, summary, iterations
}

// tryCalibrate fits models to arbitrary files. Either the error names one of the files, or the models are valid in a configuration.
// It fails the test if the simulated run breaks a law or panics.
func tryCalibrate(t *testing.T, o sim.Options, summary, iterations []byte) (err error) {
	t.Helper()
	o.Observer = check.Observe
	r := calibrate.Recording{Options: o, Summary: &metrics.Summary{}, Path: "run/iterations.csv"}
	if err := json.Unmarshal(summary, r.Summary); err != nil {
		return err
	}
	if r.Iterations, err = timings.Parse(bytes.NewReader(iterations)); err != nil {
		return err
	}
	cal, err := calibrate.Fit(r)
	if failure := (*sim.Failure)(nil); errors.As(err, &failure) {
		t.Fatalf("%v, of\n%s%s", err, summary, iterations)
	}
	if err != nil {
		return err
	}
	const rest = "name: x\ndata: {set: generated}\nmodel: {name: softmax}\ntrain: {batch_per_worker: 1, optimizer: " +
		"{name: sgd, lr: 0.1}, stop: {updates: 1}}\n"
	for range 2 { // with the trace, then with the fitted noise
		if cfg, _, ds := configs.Parse("x", []byte(rest), configs.Options{Set: []string{cal.Setting()}}); cfg == nil {
			t.Fatalf("%v in %s, of\n%s%s", ds, cal.Setting(), summary, iterations)
		}
		cal.Draw()
	}
	return nil
}

// FuzzCalibrate tries arbitrary summary.json and iterations.csv.
func FuzzCalibrate(f *testing.F) {
	o, summary, iterations := recorded(f)
	short := fmt.Appendf(nil, `{"mode":"mpi","servers":1,"workers":2,"iterations":12,"per_role":{"server":{"fold":{"avg":0.001}}}}`)
	f.Add(summary, iterations)
	f.Add(short, iterations)
	f.Add(bytes.Replace(short, []byte("0.001"), []byte("1e-308"), 1), iterations)
	f.Add(bytes.Replace(short, []byte(`"servers":1`), []byte(`"servers":3000`), 1), iterations)
	f.Fuzz(func(t *testing.T, summary, iterations []byte) {
		_ = tryCalibrate(t, o, summary, iterations)
	})
}

// damages are texts that replace a number.
var damages = []string{"0", "-1", "1", "2", "5", "3000", "1000000000", "9223372036854775807", "1e-308", "1e-12",
	"1e8", "999999999", "1e308", "null", `""`, "[]"}

// Each number that the fit reads is changed, one at a time.
func TestCalibrateOfChangedFiles(t *testing.T) {
	o, summary, iterations := recorded(t)
	if err := tryCalibrate(t, o, summary, iterations); err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(summary, &whole); err != nil {
		t.Fatal(err)
	}
	fold := whole["per_role"].(map[string]any)["server"].(map[string]any)["fold"].(map[string]any)
	for key, in := range map[string]map[string]any{"mode": whole, "hierarchy": whole, "servers": whole, "workers": whole,
		"iterations": whole, "avg": fold} {
		was, had := in[key]
		for _, d := range damages {
			in[key] = json.RawMessage(d)
			changed, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			err = tryCalibrate(t, o, changed, iterations)
			if number := key == "servers" || key == "workers"; number && err == nil && d != fmt.Sprint(was) {
				t.Errorf("%s: %s in place of %v was taken", key, d, was)
			}
		}
		if in[key] = was; !had {
			delete(in, key)
		}
	}
	rows := strings.Split(strings.TrimSpace(string(iterations)), "\n")
	for column := range strings.Split(rows[0], ",") {
		for _, which := range [][]int{{1}, {len(rows) - 1}, {4, 5, 6}, nil} { // nil: all
			for _, d := range damages {
				changed := slices.Clone(rows)
				for k := 1; k < len(rows); k++ {
					if cells := strings.Split(rows[k], ","); which == nil || slices.Contains(which, k) {
						cells[column] = d
						changed[k] = strings.Join(cells, ",")
					}
				}
				_ = tryCalibrate(t, o, summary, []byte(strings.Join(changed, "\n")+"\n"))
			}
		}
	}
}

// The error for files that do not fit together names the files and the field, and says what to do.
func TestRecordingsThatDoNotFitTogetherAreRefused(t *testing.T) {
	o, summary, iterations := recorded(t)
	good := func() calibrate.Recording {
		r := calibrate.Recording{Options: o, Summary: &metrics.Summary{}, Path: "run/iterations.csv"}
		var err error
		if r.Iterations, err = timings.Parse(bytes.NewReader(iterations)); err != nil {
			t.Fatal(err)
		}
		if err = json.Unmarshal(summary, r.Summary); err != nil {
			t.Fatal(err)
		}
		return r
	}
	foldIs := func(avg float64) func(*calibrate.Recording) {
		return func(r *calibrate.Recording) {
			r.Summary.PerRole["server"]["fold"] = metrics.Range{Avg: metrics.Float(avg)}
		}
	}
	for want, spoil := range map[string]func(*calibrate.Recording){
		"summary.json has 5 servers, but cluster.servers in resolved.yaml makes 1 with 2 workers; name the folder of one " +
			"run": func(r *calibrate.Recording) { r.Summary.Servers = 5 },
		"run/iterations.csv has the iterations of 2 workers, but the run had 9 (workers in summary.json); name the " +
			"folder of one run": func(r *calibrate.Recording) { r.Summary.Workers = 9 },
		"summary.json has 1e-308 seconds in per_role.server.fold.avg for 12 iterations: its servers would fold ": foldIs(1e-308),
		"summary.json has 1e+09 seconds in per_role.server.fold.avg for 12 iterations of 2 workers, the first ":  foldIs(1e9),
		"summary.json has -1 seconds in per_role.server.fold.avg":                                                foldIs(-1),
		"run/iterations.csv: worker 1 works for more than 27777h46m40s": func(
			r *calibrate.Recording) {
			r.Iterations[1][3].Compute = 2 * calibrate.RecordedMax
		},
		"run/iterations.csv: worker 0 takes 12": func(r *calibrate.Recording) {
			for i := range r.Iterations[0] {
				r.Iterations[0][i] = timings.Iteration{Compute: time.Second}
			}
		},
	} {
		r := good()
		spoil(&r)
		if _, err := calibrate.Fit(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
