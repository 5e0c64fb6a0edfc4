package real

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/sim"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// The page for users of SystemDS, as its readers see it. Each row of its tables is run.
const paramservPage = "../../../configs/SYSTEMDS.md"

// paramservCall is what the tests take for the names in angle brackets.
var paramservCall = map[string]float64{"k": 4, "kept": 3, "lr": 0.05, "batches": 15, "nbatches": 5, "batchsize": 8, "epochs": 2, "seed": 23}

// paramservTable reads the cells of the rows of the page whose header begins with first.
func paramservTable(t *testing.T, first string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile(paramservPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n| "+first+" |")
	if !found {
		t.Fatalf("%s has no table that begins with the column %s", paramservPage, first)
	}
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, cells)
	}
	return rows
}

var (
	spans  = regexp.MustCompile("`([^`]*)`")
	angles = regexp.MustCompile(`<([a-z_*]+)>`)
)

// settings are the configuration of a cell, with numbers for the names in angle brackets.
func settings(t *testing.T, cell string) (set []string) {
	t.Helper()
	for _, m := range spans.FindAllStringSubmatch(cell, -1) {
		text := angles.ReplaceAllStringFunc(m[1], func(s string) string {
			product := 1.0
			for _, name := range strings.Split(strings.Trim(s, "<>"), "*") {
				value, known := paramservCall[name]
				if !known {
					t.Fatalf("%s: nobody says what %s is", m[1], name)
				}
				product *= value
			}
			return strconv.FormatFloat(product, 'g', 6, 64)
		})
		key, value, is := strings.Cut(text, ": ")
		if !is {
			t.Fatalf("%q is not KEY: VALUE", text)
		}
		set = append(set, key+"="+value)
	}
	return set
}

// paramservSpeeds are factors of the workers' computing times, and paramservApart those of workers that are further apart. No two pushes
// come at once.
var (
	paramservSpeeds = []float64{1, 1.013713, 1.029111, 1.047303}
	paramservApart  = []float64{1, 1.413713, 1.929111, 3.147303}
)

// perWorker gives the workers of a run these times, and takes those of SystemDS's loop.
func perWorker(factors []float64) (set string, takes func(worker, batch int) time.Duration) {
	return "simulate.per_worker=" + strings.ReplaceAll(fmt.Sprint(factors), " ", ", "), func(n, _ int) time.Duration {
		return time.Duration(float64(10*time.Millisecond) * factors[n])
	}
}

// paramservFaults slow one worker after the other, so that each is late in some rounds and in time in others. The slow one needs more than
// the others, but not so much that it misses two rounds, if a round has so many steps.
func paramservFaults(steps int) (faults string, sleep func(worker, batch int) time.Duration) {
	var items []string
	type key struct{ worker, batch int }
	all := map[key]time.Duration{}
	for i := 0; i < 40; i++ {
		w, batch := (3*i+1)%4, (2*i+1)*steps
		d := time.Duration(5000+100*(i%7))*time.Microsecond + time.Duration(steps-1)*time.Millisecond
		items = append(items, fmt.Sprintf("{worker: %d, slow: {sleep: %v, from: %d, until: %d}}", w, d, batch, batch+1))
		all[key{w, batch}] = d
	}
	return "faults=[" + strings.Join(items, ", ") + "]", func(worker, batch int) time.Duration { return all[key{worker, batch}] }
}

// paramservBase is what all rows have.
func paramservBase(set ...string) []string {
	return append([]string{"model={name: mlp, layers: [16]}", "evaluate={every_epochs: 0, where: after}",
		"train.stop={epochs: 2}", "simulate.compute=10ms",
		"simulate.network={bandwidth: 0B, latency: 0s}", "simulate.server={fold: 0B, commit: 0B}", "faults=[]"}, set...)
}

// plainParamserv makes SystemDS's loop for a run: the rows of its workers, and the first values of its parameters.
func plainParamserv(t *testing.T, o training, p paramserv) *paramserv {
	t.Helper()
	c, set := o.Config, o.Gradients.Set
	most := 4 * c.Train.BatchPerWorker
	model, err := workload.NewModel(c.ModelSpec(), set.Samples(), cpu.New(1), most)
	if err != nil {
		t.Fatal(err)
	}
	shapes := configstest.Params(t, c.ModelSpec(), set.Samples())
	views := func() (flat []float32, views [][]float32) {
		for _, s := range shapes {
			flat = append(flat, make([]float32, s.N())...)
		}
		at := 0
		for _, s := range shapes {
			views = append(views, flat[at:at+s.N()])
			at += s.N()
		}
		return flat, views
	}
	w, wViews := views()
	g, gViews := views()
	for k, s := range shapes {
		workload.Fill(wViews[k], c.Seed, s, 0)
	}
	if p.batches == nil {
		p.batches = slices.Repeat([]int{int(paramservCall["batches"])}, c.Simulate.Workers)
	}
	samplers := make([]*dataset.Sampler, len(p.batches))
	for n := range samplers {
		rows, err := dataset.Partition(c.Data.Partition, set.Train.Rows(), len(samplers), n, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		samplers[n] = dataset.NewSampler(rows, c.Train.BatchPerWorker, c.Seed, n)
	}
	if p.rows == nil {
		p.rows = func(n, batch int) []int32 { return samplers[n].Batch(int64(batch), nil) }
	}
	b := workload.NewBatch(c.Model.Name, set.Samples(), most)
	p.upd = func(at []float64, n, batch int) []float64 {
		for i, x := range at {
			w[i] = float32(x)
		}
		b.Take(set.Train, p.rows(n, batch))
		model.Bind(wViews, gViews)
		model.Forward(b, nil)
		model.Backward(nil)
		mean := make([]float64, len(g))
		for i, x := range g {
			mean[i] = float64(x) / float64(b.N)
		}
		return mean
	}
	if p.takes == nil {
		p.takes = func(int, int) time.Duration { return time.Second }
	}
	return newParamserv(p, w)
}

// apartFrom is the relative difference of the parameters of a run to those of SystemDS's loop.
func apartFrom(t *testing.T, r *sim.Result, p *paramserv) float64 {
	t.Helper()
	if len(r.Parameters) != len(p.model.w) {
		t.Fatalf("%d parameters, want %d", len(r.Parameters), len(p.model.w))
	}
	var diff, norm float64
	for i, x := range p.model.w {
		d := float64(r.Parameters[i]) - x
		diff, norm = diff+d*d, norm+x*x
	}
	return math.Sqrt(diff / norm)
}

func mustEnd(t *testing.T, p *paramserv) {
	t.Helper()
	if stuck, err := p.run(); err != nil || stuck != nil {
		t.Fatalf("SystemDS's loop: %v, and workers %v wait for ever", err, stuck)
	}
}

// paramservUpdates is how many updates a run of ASP or SBP makes, by freq.
var paramservUpdates = map[string]int{"BATCH": 40, "NBATCHES": 16, "EPOCH": 8}

// stepsOf is how many batches a push has.
var stepsOf = map[string]int{"BATCH": 1, "NBATCHES": 5, "EPOCH": 15}

// Each row of the table of updates is run. Where the table says that it is the same, the run ends with the parameters of SystemDS's loop,
// and what does not depend on times ends so in a process, too.
func TestParamservUpdates(t *testing.T) {
	rows := paramservTable(t, "utype")
	for _, utype := range []string{"BSP", "ASP", "SBP", "SSP"} {
		for _, freq := range []string{"BATCH", "EPOCH", "NBATCHES"} {
			for _, modelAvg := range []string{"FALSE", "TRUE"} {
				fits := func(cell, value string) bool { return cell == "any" || cell == "`"+value+"`" }
				of := slices.DeleteFunc(slices.Clone(rows),
					func(r []string) bool { return !fits(r[0], utype) || !fits(r[1], freq) || !fits(r[2], modelAvg) })
				if len(of) != 1 {
					t.Errorf("%d rows for utype %s, freq %s, modelAvg %s, want 1", len(of), utype, freq, modelAvg)
					continue
				}
				t.Run(utype+" "+freq+" "+modelAvg, func(t *testing.T) {
					p := paramserv{utype: utype, freq: freq, modelAvg: modelAvg == "TRUE", nbatches: 5, backups: 1, lr: paramservCall["lr"], epochs: 2}
					runRow(t, p, settings(t, of[0][3]), of[0][4])
				})
			}
		}
	}
}

func runRow(t *testing.T, p paramserv, set []string, result string) {
	set = paramservBase(set...)
	if p.utype == "ASP" || p.utype == "SBP" {
		p.epochs, p.updates = 0, paramservUpdates[p.freq]
		set = append(set, fmt.Sprintf("train.stop={updates: %d}", p.updates))
	}
	factors := map[string][]float64{"ASP": paramservApart, "SBP": paramservSpeeds}[p.utype]
	if factors != nil {
		var speeds string
		speeds, p.takes = perWorker(factors)
		set = append(set, speeds)
	}
	if p.utype == "SBP" {
		faults, sleep := paramservFaults(stepsOf[p.freq])
		set = append(set, faults)
		even := p.takes
		p.takes = func(n, batch int) time.Duration { return even(n, batch) + sleep(n, batch) }
	}
	o := realOptions(t, set...)
	dumb := plainParamserv(t, o, p)
	if strings.HasPrefix(result, "only here") {
		if _, err := dumb.run(); err == nil {
			t.Error("SystemDS runs it, too")
		}
		s := measured(t, o)
		if s.Finished != "ok" || s.TestAccuracy == nil || !(*s.TestAccuracy > 0.5) {
			t.Errorf("finished %q with accuracy %v", s.Finished, s.TestAccuracy)
		}
		return
	}
	if !strings.HasPrefix(result, "same") {
		t.Fatalf("the result is %q, must begin with same or only here", result)
	}
	first := dumb.model
	mustEnd(t, dumb)
	r := runReal(t, o)
	rel := apartFrom(t, r, dumb)
	t.Logf("relative difference %.2g after %d updates, used %v, discarded %v", rel, dumb.made, dumb.used, dumb.discarded)
	if !(rel <= 1e-5) {
		t.Errorf("relative difference %.3g, the limit is 1e-5", rel)
	}
	if moved := apartFrom(t, r, &paramserv{model: first}); moved < 0.05 {
		t.Errorf("the parameters moved by %.3g of their size: nothing was learnt that could differ", moved)
	}
	if p.utype == "ASP" && slices.Max(dumb.used) == slices.Min(dumb.used) {
		t.Errorf("used %v: all workers are equally fast", dumb.used)
	}
	if p.utype == "SBP" && (slices.Min(dumb.used) == 0 || slices.Max(dumb.discarded) == 0 || dumb.missedMost > 1) {
		t.Errorf("used %v, discarded %v, missed at most %d rounds: want pushes of all, some discarded, and no push that "+
			"misses two rounds", dumb.used, dumb.discarded, dumb.missedMost)
	}
	s := measured(t, o)
	if p.utype == "BSP" && s.ParametersSHA256 != r.Summary.ParametersSHA256 || s.Finished != "ok" {
		t.Errorf("in a process: finished %q, parameters %.12s; in virtual time %.12s", s.Finished, s.ParametersSHA256, r.Summary.ParametersSHA256)
	}
}
