package report

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

var update = flag.Bool("update", false, "write the goldens")

const ms = time.Millisecond

// made is a run of two workers, whose second one computes three times as long, so that the first waits for it.
func made(name, scheme string, seed uint64, speed float64, accuracies ...float64) *Run {
	r := &Run{Folder: "runs/" + name,
		Settings: map[string]string{"name": name, "seed": fmt.Sprint(seed), "sync[0].scheme": scheme}, Staleness: map[int64]int64{0: 6, 1: 2}}
	s := &metrics.Summary{
		Job:    metrics.Job{Name: name, Finished: "ok", Mode: "local", Servers: 1, Workers: 2},
		Extent: metrics.Extent{Iterations: 4, Samples: 256},
		Seed:   seed,
		Costs: metrics.Costs{
			TrainS: metrics.Float(4 / speed), WallS: metrics.Float(5 / speed), SamplesPerS: metrics.Float(64 * speed),
		},
		Traffic:  metrics.Traffic{BytesSent: 2560},
		Quality:  metrics.Quality{TrainLoss: metrics.Some(0.5)},
		PerShard: []metrics.ShardSummary{{Scheme: scheme, DelayedPulls: 4}},
		PerRole: map[string]metrics.RoleTimes{metrics.RoleWorker: {"compute": {Avg: metrics.Float(2.2 / speed)},
			"blocked": {Avg: metrics.Float(1.6 / speed)}}},
	}
	for i, a := range accuracies {
		row := NoRow()
		row.At, row.Iteration, row.Samples, row.TestAccuracy, row.TestLoss = float64(i+1)/speed, float64(i+1), float64(64*(i+1)), a, 1-a
		r.Rows = append(r.Rows, row)
		s.TestAccuracy = metrics.Some(a)
	}
	r.Summary, r.Iterations = s, make([][]timings.Iteration, 2)
	for i := range 4 {
		at := time.Duration(i) * 100 * ms
		r.Iterations[0] = append(r.Iterations[0],
			timings.Iteration{Iter: int64(i), Start: at, Compute: 30 * ms, Push: 1 * ms, Blocked: 66 * ms, Pull: 3 * ms, Samples: 32})
		r.Iterations[1] = append(r.Iterations[1],
			timings.Iteration{Iter: int64(i), Start: at, Compute: 90 * ms, Injected: 60 * ms, Push: 1 * ms, Blocked: 6 * ms,
				Pull: 3 * ms, Samples: 32})
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// Worker 0 waits from 31 ms to 91 ms for worker 1, and 6 ms for the server; worker 1 waits for the server only.
func TestCauses(t *testing.T) {
	r := made("a", "bsp", 1, 1, 0.5)
	c := causesOf(r)
	w0, w1 := c.workers[0], c.workers[1]
	if !near(w0[computing], 0.12) || !near(w0[behind], 0.24) || !near(w0[answering], 0.024) ||
		!near(w0[pushing], 0.004) || !near(w0[pulling], 0.012) || w0[injected] != 0 {
		t.Errorf("worker 0: %v", w0)
	}
	if !near(w1[computing], 0.12) || !near(w1[injected], 0.24) || w1[behind] != 0 || !near(w1[answering], 0.024) {
		t.Errorf("worker 1: %v", w1)
	}
	if w, share := c.culprit(); w != 1 || share != 1 {
		t.Errorf("waited for %d, %v", w, share)
	}
	if got, want := whyBlocked([]*Run{r}), "waiting for worker 1 (83 % of the blocked time), which computes 3 times "+
		"as long as the median worker"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Summary.PerShard[0].DelayedPulls = 0
	if c := causesOf(r); c.workers[0][behind] != 0 || !near(c.workers[0][answering], 0.264) {
		t.Errorf("no pull was delayed: %v", c.workers[0])
	}
	r.Summary.PerShard[0].DelayedGrants = 4
	if c := causesOf(r); !near(c.workers[0][turns], 0.264) || c.workers[0].waits() != c.workers[0][turns] {
		t.Errorf("turns: %v", c.workers[0])
	}
	r.Cut = true
	if c := causesOf(r); !near(c.workers[0][blocked], 0.264) || c.workers[0].waits() != c.workers[0][blocked] {
		t.Errorf("cut: %v", c.workers[0])
	}
	r.Iterations, r.Cut = nil, false
	if c := causesOf(r); !near(c.workers[0][blocked], 1.6) || !near(c.workers[0][computing], 2.2) {
		t.Errorf("without iterations: %v", c.workers[0])
	}
}

// A push that lands a little before its worker has recorded its end releases the others: what they wait is never more
// than they were blocked.
func TestAPushMayLandBeforeItsEnd(t *testing.T) {
	r := made("a", "bsp", 1, 1, 0.5)
	for i := range r.Iterations[0] {
		r.Iterations[0][i].Blocked = 55 * ms // until 86 ms; worker 1 ends at 91 ms, and computed for 90 ms
	}
	if c := causesOf(r); !near(c.workers[0][behind], 0.22) || c.workers[0][answering] != 0 {
		t.Errorf("%v", c.workers[0])
	}
}

// The page says how exactly the clocks of its hosts are known, if they are not one clock.
func TestThePageSaysTheErrorOfItsClocks(t *testing.T) {
	r := made("a", "ssp", 1, 1, 0.5)
	text := func() string {
		d, err := Make([]*Run{r}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return string(d.Page)
	}
	const words = "The clocks of the hosts are known within 1.50 ms"
	if r.Summary.ClockErrorNS = 0; strings.Contains(text(), "The clocks of the hosts") {
		t.Error("the page speaks of the clocks of a single host")
	}
	if r.Summary.ClockErrorNS = 1_500_000; strings.Count(text(), words) != 2 { // in the figure, and in how to read it
		t.Errorf("the page says %d times %q, want 2", strings.Count(text(), words), words)
	}
}

func TestGroups(t *testing.T) {
	runs := []*Run{made("x-bsp", "bsp", 1, 1, 0.5), made("x-asp", "asp", 1, 2, 0.5), made("x-bsp", "bsp", 2, 1, 0.5)}
	other := made("x-ssp", "ssp", 1, 1, 0.5)
	other.Settings = nil // unknown settings: alone
	runs = append(runs, other, func() *Run { r := made("x-ssp", "ssp", 2, 1, 0.5); r.Settings, r.Folder = nil, "elsewhere"; return r }())
	groups := Groups(runs)
	if len(groups) != 4 || len(groups[0].Runs) != 2 || len(groups[2].Runs) != 1 {
		t.Fatalf("%d groups", len(groups))
	}
	groups = Groups(runs[:3])
	if groups[0].Label != "x-bsp" || groups[1].Label != "x-asp" {
		t.Errorf("labels %q, %q", groups[0].Label, groups[1].Label)
	}
	const long = "an-experiment-of-november-"
	groups = Groups([]*Run{made(long+"bsp", "bsp", 1, 1, 0.5), made(long+"asp", "asp", 1, 2, 0.5)})
	if groups[0].Label != "bsp" || groups[1].Label != "asp" {
		t.Errorf("labels of long names: %q, %q", groups[0].Label, groups[1].Label)
	}
	same := []*Run{made("a", "bsp", 1, 1, 0.5), made("a", "asp", 1, 2, 0.5)}
	groups = Groups(same)
	if groups[0].Label != "bsp" || groups[1].Label != "asp" {
		t.Errorf("labels by settings: %q, %q", groups[0].Label, groups[1].Label)
	}
	same[1].Summary.Mode = "simulated"
	if groups = Groups(same); groups[0].Label != "a" || groups[1].Label != "a (simulated)" {
		t.Errorf("labels %q, %q", groups[0].Label, groups[1].Label)
	}
}

func document(t *testing.T, o Options, runs ...*Run) *Document {
	t.Helper()
	d, err := Make(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAsMany(t *testing.T) {
	for ratio, want := range map[float64]string{1: "as many", 1.0001: "as many", 1.33: "1.33 times as many",
		4: "4 times as many", 0.5: "0.5 times as many"} {
		if got := asMany(ratio); got != want {
			t.Errorf("%g: %q, want %q", ratio, got, want)
		}
	}
}

// The first sentence says who won, the next by how much, then why.
func TestVerdict(t *testing.T) {
	d := document(t, Options{Target: &Target{WhatAccuracy, 0.8, GivenFlag}},
		made("bsp", "bsp", 1, 1, 0.5, 0.7, 0.8), made("asp", "asp", 1, 4, 0.4, 0.6, 0.7, 0.8), made("lost", "ssp", 1, 2, 0.1, 0.2))
	got := strings.Join(d.Verdict, "\n")
	for _, want := range []string{
		"asp is ahead: it reached test accuracy 0.8 after 1 s, with one seed.\nbsp took 3 times as long (3 s).\nThe " +
			"target was missed by lost (best 0.2).\n",
		"Against bsp, asp took in 4 times as many samples per second, and needed 1.33 times as many samples to get there.",
		"Worker 1 is a straggler: in 3 of 3 settings it computes 3 times as long as the median worker.",
		"The workers of bsp were blocked for 40 % of training, mostly waiting for worker 1 (83 % of the blocked time), " +
			"which computes 3 times as long as the median worker.",
		"Staleness in versions: the pushes of asp had 0 in the median and at most 1",
		"There is one seed of each",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\ndoes not say %q", got, want)
		}
	}
}

// The headline says "won" only of several seeds, and of a gap that evaluations show: those of a target that was
// missed again, or that are seldom, do not.
func TestWonIsSaidWhereItIsKnown(t *testing.T) {
	for _, c := range []struct {
		what      string
		asp, bsp  []float64 // accuracies
		seeds     [2]uint64
		want, why string
	}{
		{"five evaluations", []float64{0.5, 0.6, 0.7, 0.75, 0.8}, []float64{0.5, 0.6, 0.7, 0.75, 0.8}, [2]uint64{2, 2},
			"asp won: ", "bsp took 1.50 times"},
		{"one seed", []float64{0.5, 0.6, 0.7, 0.75, 0.8}, []float64{0.5, 0.6, 0.7, 0.75, 0.8}, [2]uint64{1, 1},
			"asp is ahead: it reached test accuracy 0.8 after 3.33 s, with one seed.", "bsp took"},
		{"one seed of the other", []float64{0.5, 0.6, 0.7, 0.75, 0.8}, []float64{0.5, 0.6, 0.7, 0.75, 0.8}, [2]uint64{2, 1},
			"asp is ahead: ", "There is one seed of bsp, so the gap may be chance."},
		{"two evaluations", []float64{0.5, 0.8}, []float64{0.5, 0.8}, [2]uint64{2, 2}, "asp is ahead: ",
			"The gap to bsp is within the noise of the evaluations"},
		{"missed again", []float64{0.5, 0.6, 0.8, 0.79, 0.79, 0.79, 0.79, 0.8}, []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.9},
			[2]uint64{2, 2}, "asp is ahead: ", "The gap to bsp is within the noise of the evaluations"},
	} {
		var runs []*Run
		for seed := range c.seeds[0] {
			runs = append(runs, made("asp", "asp", seed, 1.5, c.asp...))
		}
		for seed := range c.seeds[1] {
			runs = append(runs, made("bsp", "bsp", seed, 1, c.bsp...))
		}
		d := document(t, Options{Target: &Target{WhatAccuracy, 0.8, GivenFlag}}, runs...)
		if !strings.HasPrefix(d.Verdict[0], c.want) || !strings.HasPrefix(d.Verdict[1], c.why) {
			t.Errorf("%s: %q", c.what, d.Verdict[:2])
		}
	}
	slow, fast := []*Run{made("bsp", "bsp", 1, 1), made("bsp", "bsp", 2, 1)}, []*Run{made("asp", "asp", 1, 1.5), made("asp", "asp", 2, 1.5)}
	for want, runs := range map[string][]*Run{"asp is the fastest: 96 ± 0 samples": append(slow, fast...),
		"asp is ahead in speed: 96 samples": {slow[0], fast[0]}} {
		if got := document(t, Options{}, runs...).Verdict[0]; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Seeds have a mean and a deviation; a difference within it is no victory.
func TestSeeds(t *testing.T) {
	d := document(t, Options{}, made("bsp", "bsp", 1, 1, 0.8), made("bsp", "bsp", 2, 0.5, 0.8),
		made("ssp", "ssp", 1, 0.8, 0.8), made("ssp", "ssp", 2, 0.9, 0.8))
	got := strings.Join(d.Verdict, "\n")
	if !strings.Contains(got, "No clear winner: ssp and bsp are level. ssp reached test accuracy 0.8 after 1.18 ± "+
		"0.10 s, the mean of 2 seeds.\nbsp took 1.27 times as long, which is no difference here (1.50 ± 0.71 s).") {
		t.Errorf("%s", got)
	}
	rows, err := csv.NewReader(bytes.NewReader(d.Tables[0].CSV())).ReadAll()
	if err != nil || len(rows) != 3 || strings.Join(rows[0][:4], " ") != "run seeds time_to_target_s_mean "+
		"time_to_target_s_deviation" || rows[2][2] != "1.5" || rows[2][3] != "0.707106781" {
		t.Errorf("%v %v", rows, err)
	}
}

// Runs that differ in the seed only, and no other, have a page of their own.
func TestOneSettingWithSeeds(t *testing.T) {
	d := document(t, Options{}, made("bsp", "bsp", 1, 1, 0.8), made("bsp", "bsp", 2, 2, 0.9))
	if want := "bsp: 2 seeds reached test accuracy 0.8500 ± 0.0707, at 96 ± 45 samples per second."; d.Verdict[0] != want {
		t.Errorf("%q, want %q", d.Verdict[0], want)
	}
	if !strings.Contains(string(d.Page), "<h2>Over the seeds</h2>") {
		t.Error("the page has no table over the seeds")
	}
}

func TestChooseTarget(t *testing.T) {
	a, b := made("a", "bsp", 1, 1, 0.5, 0.877), made("b", "asp", 1, 1, 0.9, 0.95)
	if target := chooseTarget(Groups([]*Run{a, b})); target.What != WhatAccuracy || target.Value != 0.87 {
		t.Errorf("%+v", target)
	}
	a.Summary.Target, b.Summary.Target = metrics.Some(0.9), metrics.Some(0.9)
	if target := chooseTarget(Groups([]*Run{a, b})); target.Value != 0.9 || !strings.Contains(target.Given, "configurations") {
		t.Errorf("%+v", target)
	}
	a, b = made("a", "bsp", 1, 1), made("b", "asp", 1, 1)
	if target := chooseTarget(Groups([]*Run{a, b})); target != nil {
		t.Errorf("%+v", target)
	}
	d := document(t, Options{}, a, b)
	if !strings.HasPrefix(d.Verdict[0], "No clear winner: a and b are equally fast") || !strings.Contains(d.Verdict[1], "speed only") {
		t.Errorf("%q", d.Verdict)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3: "3", 0.12345: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123",
		12345: "12,345", -1234567: "-1,234,567", math.NaN(): absent, math.Inf(1): absent, 1e-7: "1e-07"} {
		if got := short(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for _, c := range []struct {
		values []float64
		format func(float64) string
		want   string
	}{
		{[]float64{0.5, 0.6}, percent, "55 ± 7 %"}, {[]float64{700, 800}, seconds, "12.5 ± 1.2 min"},
		{[]float64{1, 1.0001}, short, "1.0000 ± 0.0001"},
		{[]float64{3, math.NaN()}, short, "3"}, {nil, short, absent}, {[]float64{12000, 15000}, short, "13,500 ± 2,121"},
	} {
		if got := spreadOf(c.values).text(c.format); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

// The whole page of a small comparison, so that a change of its words or its look is seen.
func TestGolden(t *testing.T) {
	d := document(t, Options{Build: "v1"}, made("bsp", "bsp", 1, 1, 0.5, 0.7, 0.8), made("asp", "asp", 1, 4, 0.4, 0.6, 0.7, 0.8))
	files := map[string][]byte{"comparison.html": d.Page, "comparison.csv": d.Tables[0].CSV(),
		"comparison.tex": d.Tables[0].LaTeX(), "settings.csv": d.Tables[1].CSV(), "loss-by-time.svg": figureOf(d, "loss-by-time")}
	one := document(t, Options{Build: "v1"}, made("bsp", "bsp", 1, 1, 0.5, 0.7, 0.8))
	files["run.html"] = one.Page
	for name, got := range files {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; look at the difference and write it with -update", path)
		}
	}
}

func figureOf(d *Document, id string) []byte {
	for _, f := range d.Figures {
		if f.ID == id {
			return f.File()
		}
	}
	return nil
}

// A sweep has a row for each run, also for one that has not begun, and a row for each setting with mean and deviation over the seeds.
func TestSweepTables(t *testing.T) {
	each, means := SweepTables([]Point{
		{[]string{"lr=0.1", "seed=1"}, made("a", "bsp", 1, 1, 0.8)}, {[]string{"lr=0.1", "seed=2"}, made("a", "bsp", 2, 2, 0.9)},
		{[]string{"lr==1", "seed=1"}, made("a", "bsp", 1, 1, 0.85)}, {[]string{"lr==1", "seed=2"}, &Run{Folder: "0003"}},
	})
	got, want := string(each.CSV()), "run,lr,seed,finished,samples,train_s,wall_s,samples_per_s,train_loss,test_loss,"+
		"test_accuracy,blocked_share,time_to_accuracy_0.8_s\n"+
		"0000,0.1,1,ok,256,4,5,64,0.5,,0.8,0.4,1\n0001,0.1,2,ok,256,2,2.5,128,0.5,,0.9,0.4,0.5\n"+
		"0002,'=1,1,ok,256,4,5,64,0.5,,0.85,0.4,1\n0003,'=1,2,no summary,,,,,,,,,\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	got = string(means.CSV())
	if !strings.HasPrefix(got, "lr,runs,samples_mean,samples_deviation,train_s_mean,train_s_deviation,") ||
		!strings.Contains(got, "\n0.1,2,256,0,3,1.41421356,") || !strings.Contains(got, "\n'=1,2,256,,4,,") {
		t.Errorf("%s", got)
	}
}
