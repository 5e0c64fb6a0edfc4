package real

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/sim"
	"fluentps/ps/scheme"
	"fluentps/ps/workload/dataset"
)

// paramservRows are the rows of worker j of k in SystemDS, as it cuts them [C]; nil where a permutation decides, and for a worker that does
// not exist.
func paramservRows(scheme string, n, k int) (all [][]int32) {
	of := func(from, to, step int) (rows []int32) {
		for r := from; r < min(to, n); r += step {
			rows = append(rows, int32(r))
		}
		return rows
	}
	size := (n + k - 1) / k
	switch scheme {
	case "disjoint_contiguous":
		for begin := 1; begin < n; begin += size { // counted from 1, and the last row is never a begin
			all = append(all, of(begin-1, begin-1+size, 1))
		}
	case "disjoint_round_robin":
		for j := range k {
			all = append(all, of(j, n, k))
		}
	}
	return all
}

func ourRows(t *testing.T, scheme string, n, k int) (all [][]int32) {
	t.Helper()
	for j := range k {
		rows, err := dataset.Partition(scheme, n, k, j, 23)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows)
	}
	return all
}

func sameRows(a, b [][]int32) bool { return slices.EqualFunc(a, b, slices.Equal) }

// eachRow runs the test of each row of a table. Every row has one, and no test is without a row.
func eachRow(t *testing.T, column string, tests map[string]func(t *testing.T, row []string)) {
	var names []string
	for _, row := range paramservTable(t, column) {
		name := strings.ReplaceAll(row[0], "`", "")
		names = append(names, name)
		if test := tests[name]; test == nil {
			t.Errorf("the row %q has no test", name)
		} else {
			t.Run(name, func(t *testing.T) { test(t, row) })
		}
	}
	for name := range maps.Keys(tests) {
		if !slices.Contains(names, name) {
			t.Errorf("the table has no row %q", name)
		}
	}
}

// learns runs a configuration in a process, with the default call of SystemDS's user.
func learns(t *testing.T, set []string) {
	t.Helper()
	o := realOptions(t, paramservBase(set...)...)
	if s := measured(t, o); s.Finished != "ok" || !(*s.TestAccuracy > 0.5) {
		t.Errorf("finished %q with accuracy %v", s.Finished, *s.TestAccuracy)
	}
}

// Each row of the table of other options is run.
func TestParamservOptions(t *testing.T) {
	partition := func(name string) func(t *testing.T, row []string) {
		return func(t *testing.T, row []string) {
			o := realOptions(t, paramservBase(settings(t, row[1])...)...)
			if o.Config.Data.Partition != name {
				t.Fatalf("the partition is %s", o.Config.Data.Partition)
			}
			const n, k = 480, 4
			computed := int64(2 * n) // samples of 2 epochs of SystemDS
			if name == "overlap_reshuffle" {
				computed *= k
			}
			if s := measured(t, o); s.Finished != "ok" || s.Samples != computed {
				t.Errorf("finished %q after %d samples, want %d", s.Finished, s.Samples, computed)
			}
			ours, theirs := ourRows(t, name, n, k), paramservRows(name, n, k)
			if theirs != nil && !sameRows(ours, theirs) {
				t.Errorf("rows %v, in SystemDS %v", ours, theirs)
			}
			all := slices.Concat(ours...)
			slices.Sort(all)
			if once := slices.Compact(slices.Clone(all)); name != "overlap_reshuffle" && (len(all) != n || len(once) != n) {
				t.Errorf("%d rows, %d of them different, want each of %d once", len(all), len(once), n)
			}
			for j, rows := range ours { // blocks of rows / k of a permutation, or all rows
				want := n / k
				if name == "overlap_reshuffle" {
					want = n
				}
				if distinct := slices.Compact(slices.Sorted(slices.Values(rows))); len(rows) != want || len(distinct) != want {
					t.Errorf("worker %d has %d rows, %d of them different, want %d", j, len(rows), len(distinct), want)
				}
			}
		}
	}
	eachRow(t, "option", map[string]func(t *testing.T, row []string){
		"model, upd":                    func(t *testing.T, row []string) { learns(t, settings(t, row[1])) },
		"features, labels":              paramservFiles,
		"val_features, val_labels, val": paramservValidates,
		"agg, hyperparams":              paramservMomentum,
		"mode, k":                       paramservRanks,
		"batchsize":                     paramservBatches,
		"epochs":                        paramservEpochs,
		"scheme: DISJOINT_CONTIGUOUS":   partition("disjoint_contiguous"),
		"scheme: DISJOINT_ROUND_ROBIN":  partition("disjoint_round_robin"),
		"scheme: DISJOINT_RANDOM":       partition("disjoint_random"),
		"scheme: OVERLAP_RESHUFFLE":     partition("overlap_reshuffle"),
		"seed":                          paramservSeeds,
		"checkpointing":                 paramservCheckpoints,
	})
}

// paramservFiles trains on files that hold the generated rows, and ends as the run on these rows themselves.
func paramservFiles(t *testing.T, row []string) {
	from := realOptions(t, paramservBase()...)
	t.Chdir(t.TempDir())
	for name, table := range map[string]dataset.Table{"train.csv": from.Gradients.Set.Train, "test.csv": from.Gradients.Set.Test} {
		var text strings.Builder
		x, y := make([]float32, table.Cols()), make([]int32, 1)
		for r := range table.Rows() {
			table.Fill(x, y, []int32{int32(r)})
			for _, v := range x {
				text.WriteString(strconv.FormatFloat(float64(v), 'g', -1, 32) + ",")
			}
			fmt.Fprintln(&text, y[0])
		}
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, want := measured(t, realOptions(t, paramservBase(settings(t, row[1])...)...)), measured(t, from)
	if got.ParametersSHA256 != want.ParametersSHA256 || *got.TestAccuracy != *want.TestAccuracy {
		t.Errorf("parameters %.12s with accuracy %v, of the same rows in memory %.12s with %v", got.ParametersSHA256,
			*got.TestAccuracy, want.ParametersSHA256, *want.TestAccuracy)
	}
}

// paramservValidates evaluates after each epoch, as SystemDS calls val.
func paramservValidates(t *testing.T, row []string) {
	s := measured(t, realOptions(t, paramservBase(settings(t, row[1])...)...))
	if len(s.Evaluations) != 2 || s.Evaluations[0].Samples != 480 || s.Evaluations[1].Samples != 960 {
		t.Errorf("evaluations %+v, want one after each of 2 epochs of 480 samples", s.Evaluations)
	}
}

// paramservMomentum has an agg with momentum: under BSP with BATCH the velocity of a sum is a sum of velocities.
func paramservMomentum(t *testing.T, row []string) {
	o := realOptions(t, paramservBase(settings(t, row[1])...)...)
	dumb := plainParamserv(t, o, paramserv{utype: "BSP", freq: "BATCH", epochs: 2, lr: paramservCall["lr"], momentum: 0.9})
	mustEnd(t, dumb)
	if rel := apartFrom(t, runReal(t, o), dumb); !(rel <= 1e-5) {
		t.Errorf("relative difference %.3g, the limit is 1e-5", rel)
	}
}

// paramservRanks starts as many ranks as the row says.
func paramservRanks(t *testing.T, row []string) {
	m := regexp.MustCompile("`fluentps run FILE --local ([0-9]+)`").FindStringSubmatch(row[2])
	if m == nil {
		t.Fatal("the row does not say how to start a run")
	}
	s := measured(t, realOptions(t, paramservBase(settings(t, row[1])...)...))
	if fmt.Sprint(s.Workers+s.Servers) != m[1] || s.Workers != int(paramservCall["k"]) || s.Mode != "local" {
		t.Errorf("%d servers and %d workers, mode %s; the row says %s ranks", s.Servers, s.Workers, s.Mode, m[1])
	}
}

func paramservBatches(t *testing.T, row []string) {
	set := append(settings(t, row[1]), "train.optimizer={name: sgd, lr: 0.1}", "train.stop={epochs: 2}")
	s := measured(t, realOptions(t, append([]string{"train.batch_per_worker=null"}, paramservBase(set...)...)...))
	if s.Samples != s.Iterations*4*int64(paramservCall["batchsize"]) {
		t.Errorf("%d samples in %d iterations of 4 workers", s.Samples, s.Iterations)
	}
}

func paramservEpochs(t *testing.T, row []string) {
	o := realOptions(t, paramservBase(settings(t, row[1])...)...)
	dumb := plainParamserv(t, o, paramserv{utype: "BSP", freq: "BATCH", epochs: 2})
	mustEnd(t, dumb)
	if s := measured(t, o); s.Samples != 2*480 || s.Iterations != int64(dumb.made) {
		t.Errorf("%d samples in %d iterations, in SystemDS %d updates", s.Samples, s.Iterations, dumb.made)
	}
}

func paramservSeeds(t *testing.T, row []string) {
	run := func(set ...string) string {
		return measured(t, realOptions(t, paramservBase(set...)...)).ParametersSHA256
	}
	of := settings(t, row[1])
	if a, b, other := run(of...), run(of...), run("seed=24"); a != b || a == other {
		t.Errorf("parameters %.12s and %.12s with one seed, %.12s with another", a, b, other)
	}
}

func paramservCheckpoints(t *testing.T, row []string) {
	dir := filepath.Join(t.TempDir(), "run")
	o := realOptions(t, paramservBase(settings(t, row[1])...)...)
	s := measuredIn(t, o, dir)
	files, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*", "manifest.json"))
	// One that is due while another is being written is left out, and this run takes no longer than a write.
	if err != nil || len(files) < 1 || len(files) > 3 || s.Iterations != 30 || o.Config.Checkpoint.EveryUpdates != 10 {
		t.Errorf("every %d updates, %d checkpoints of %d iterations, want 10, and the last of at most 3: %v, %v",
			o.Config.Checkpoint.EveryUpdates, len(files), s.Iterations, files, err)
	}
}

// The file at the top of the page is the call above it.
func TestParamservExample(t *testing.T) {
	page, err := os.ReadFile(paramservPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ends := strings.Cut(rest, "```")
	if !ends {
		t.Fatal("the page has no YAML")
	}
	o := optionsOf(t, text, "simulate.workers=4")
	dumb := plainParamserv(t, o, paramserv{utype: "BSP", freq: "EPOCH", epochs: 2, lr: 0.05})
	mustEnd(t, dumb)
	if rel := apartFrom(t, runReal(t, o), dumb); !(rel <= 1e-5) {
		t.Errorf("relative difference %.3g, the limit is 1e-5", rel)
	}
	if s := measured(t, o); !(*s.TestAccuracy > 0.5) {
		t.Errorf("accuracy %v", *s.TestAccuracy)
	}
}

// Each difference of the page shows.
func TestParamservDiffers(t *testing.T) {
	const tells = 1e-3 // the least relative difference that is none of rounding
	bsp := `sync=[{match: "*", scheme: bsp}]`
	// run compares a run of ours with SystemDS's loop.
	run := func(t *testing.T, p paramserv, set ...string) (rel float64, dumb *paramserv, r *sim.Result) {
		t.Helper()
		if p.lr == 0 {
			p.lr = paramservCall["lr"]
		}
		o := realOptions(t, paramservBase(set...)...)
		dumb = plainParamserv(t, o, p)
		mustEnd(t, dumb)
		r = runReal(t, o)
		return apartFrom(t, r, dumb), dumb, r
	}
	differs := func(t *testing.T, p paramserv, set ...string) {
		t.Helper()
		if rel, _, _ := run(t, p, set...); !(rel >= tells) {
			t.Errorf("relative difference %.3g, want %g or more", rel, tells)
		}
	}
	sgd, momentum := "train.optimizer={name: sgd, lr: 0.05}", "train.optimizer={name: momentum, lr: 0.05, momentum: 0.9}"
	epoch := func(set string) string { return "local={policy: averaging, steps: 15" + set + "}" }
	eachRow(t, "subject", map[string]func(t *testing.T, row []string){
		"sum of gradients": func(t *testing.T, _ []string) {
			differs(t, paramserv{utype: "BSP", freq: "BATCH", epochs: 2}, bsp, sgd)
		},
		"local steps": func(t *testing.T, row []string) {
			differs(t, paramserv{utype: "BSP", freq: "EPOCH", epochs: 2}, bsp, sgd, epoch(""))
		},
		"state of agg": func(t *testing.T, _ []string) {
			differs(t, paramserv{utype: "BSP", freq: "EPOCH", epochs: 2, momentum: 0.9}, bsp, momentum, epoch(", outer: {lr: 4}"))
			differs(t, paramserv{utype: "BSP", freq: "EPOCH", epochs: 2, momentum: 0.9, modelAvg: true}, bsp, momentum, epoch(""))
		},
		"late pushes":         paramservLate,
		"contiguous blocks":   paramservBlocks,
		"epochs that overlap": paramservOverlap,
		"epochs under ASP":    paramservASPEpochs,
		"short batches":       paramservShort,
		"order of rows": func(t *testing.T, _ []string) {
			blocks := ourRows(t, "disjoint_contiguous", 480, 4)
			rows := func(n, batch int) []int32 { return blocks[n][batch%15*8:][:8] }
			differs(t, paramserv{utype: "BSP", freq: "BATCH", epochs: 2, rows: rows}, bsp,
				"train.optimizer={name: sgd, lr: 0.2}", "data.partition=disjoint_contiguous")
		},
		"unequal workers": paramservUnequal,
	})
}

// paramservLate has a fast worker that misses three rounds with one push. Its next pushes are fresh. In SystemDS a discarded one misses its
// round, too, which counts again.
func paramservLate(t *testing.T, _ []string) {
	speeds, takes := perWorker([]float64{1, 1.013713, 1.2, 0.9})
	set := []string{speeds, "faults=[{worker: 3, slow: {sleep: 36ms, from: 4, until: 5}}]", "train.stop={updates: 30}",
		"train.optimizer={name: sgd, lr: 0.15}",
		`sync=[{match: "*", scheme: drop, required: 3}]`}
	o := realOptions(t, paramservBase(set...)...)
	dumb := plainParamserv(t, o,
		paramserv{utype: "SBP", freq: "BATCH", backups: 1, updates: 30, lr: 0.05, takes: func(n, batch int) time.Duration {
			if n == 3 && batch == 4 {
				return takes(n, batch) + 36*time.Millisecond
			}
			return takes(n, batch)
		}})
	mustEnd(t, dumb)
	dropped := 0
	o.Decided = func(_ scheme.Event, decisions []scheme.Decision) {
		for _, d := range decisions {
			if d.Kind == scheme.Drop && d.Worker == 3 {
				dropped++
			}
		}
	}
	rel := apartFrom(t, runReal(t, o), dumb)
	if dumb.missedMost != 3 || dumb.discarded[3] != 9 || dropped != 1 || rel < 1e-3 {
		t.Errorf("after at most %d missed rounds SystemDS discards %d pushes of worker 3 and ours %d, relative "+
			"difference %.3g; want 3, 9, 1 and 1e-3 or more", dumb.missedMost, dumb.discarded[3], dropped, rel)
	}
}

func paramservBlocks(t *testing.T, _ []string) {
	const scheme = "disjoint_contiguous"
	if lost, ours := paramservRows(scheme, 7, 3), ourRows(t, scheme, 7, 3); len(slices.Concat(lost...)) != 6 ||
		len(slices.Concat(ours...)) != 7 {
		t.Errorf("7 rows for 3 workers: there %v, here %v", lost, ours)
	}
	if fewer, ours := paramservRows(scheme, 9, 4), ourRows(t, scheme, 9, 4); len(fewer) != 3 || len(ours) != 4 {
		t.Errorf("9 rows for 4 workers: there %v, here %v", fewer, ours)
	}
}

func paramservOverlap(t *testing.T, _ []string) {
	o := realOptions(t, paramservBase("data.partition=overlap_reshuffle", "train.stop={epochs: 1}")...)
	dumb := plainParamserv(t, o, paramserv{utype: "BSP", freq: "BATCH", epochs: 1, batches: []int{60, 60, 60, 60}})
	mustEnd(t, dumb)
	if s := measured(t, o); dumb.made != 60 || s.Iterations != 15 || s.Samples != 480 {
		t.Errorf("an epoch has %d updates in SystemDS, and %d iterations of %d samples in all here; want 60, 15 and 480",
			dumb.made, s.Iterations, s.Samples)
	}
}

func paramservASPEpochs(t *testing.T, _ []string) {
	speeds, takes := perWorker(paramservApart)
	o := realOptions(t, paramservBase(speeds, `sync=[{match: "*", scheme: asp, weight: 1}]`, "train.optimizer={name: sgd, lr: 0.05}")...)
	dumb := plainParamserv(t, o, paramserv{utype: "ASP", freq: "BATCH", epochs: 2, takes: takes})
	mustEnd(t, dumb)
	counts := make([]int, 4)
	o.Computed = func(w int, _ int64, _, _ time.Duration) { counts[w]++ }
	r := runReal(t, o)
	if slices.Min(dumb.used) != 30 || slices.Max(dumb.used) != 30 || counts[0] < 40 || counts[3] > 20 ||
		r.Summary.Samples < 960 || r.Summary.Samples > 960+4*8 {
		t.Errorf("SystemDS's workers push %v times, ours compute %v times, %d samples; want 30 of each, and about 960 of "+
			"all, most by worker 0", dumb.used, counts, r.Summary.Samples)
	}
}

// paramservShort has 25 rows for each worker: three batches of 8 and one of 1.
func paramservShort(t *testing.T, _ []string) {
	hundred := []string{"data={set: generated, rows: 100, test_rows: 20, features: 20, classes: 4}", "train.stop={epochs: 2}"}
	for _, c := range []struct {
		freq, local  string
		theirs, ours int64
	}{
		{"BATCH", "local={policy: none}", 8, 7},                   // 200 samples are 6.25 iterations of 32
		{"NBATCHES", "local={policy: averaging, steps: 3}", 4, 3}, // batches 3, 1, 3, 1; here 3, 3 and the rest
	} {
		o := realOptions(t, paramservBase(append(slices.Clone(hundred), c.local)...)...)
		dumb := plainParamserv(t, o, paramserv{utype: "BSP", freq: c.freq, nbatches: 3, epochs: 2, batches: []int{4, 4, 4, 4}})
		mustEnd(t, dumb)
		if s := measured(t, o); int64(dumb.made) != c.theirs || s.Iterations != c.ours {
			t.Errorf("%s: %d updates there, %d here, want %d and %d", c.freq, dumb.made, s.Iterations, c.theirs, c.ours)
		}
	}
}

// paramservUnequal has 25 rows for 4 workers: blocks of 7, 7, 7 and 4.
func paramservUnequal(t *testing.T, _ []string) {
	o := realOptions(t, paramservBase("data={set: generated, rows: 25, test_rows: 20, features: 20, classes: 4, "+
		"partition: disjoint_contiguous}", "train={batch_per_worker: 2, stop: {epochs: 2}, optimizer: {name: sgd, lr: 0.1}}")...)
	var batches []int
	for _, rows := range paramservRows("disjoint_contiguous", 25, 4) {
		batches = append(batches, (len(rows)+1)/2)
	}
	stuck, err := plainParamserv(t, o, paramserv{utype: "BSP", freq: "BATCH", epochs: 2, batches: batches}).run()
	if err != nil || !slices.Equal(batches, []int{4, 4, 4, 2}) || !slices.Equal(stuck, []int{0, 1, 2}) {
		t.Errorf("SystemDS: batches %v, workers %v wait for ever, %v", batches, stuck, err)
	}
	if s := measured(t, o); s.Finished != "ok" || s.Samples < 50 {
		t.Errorf("finished %q after %d samples of 50", s.Finished, s.Samples)
	}
}
