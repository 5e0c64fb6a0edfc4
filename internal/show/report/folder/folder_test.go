package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runOf writes files to a new folder.
func runOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const rows = "worker,iter,start_s,compute_s,injected_s,push_s,blocked_s,pull_s,samples\n" +
	"0,0,0.1,0.2,0,0.001,0.3,0.001,32\n1,0,0.1,0.4,0,0.001,0.1,0.001,32\n"

func TestWholeRun(t *testing.T) {
	run, err := Read(runOf(t, map[string]string{
		"summary.json":   `{"name":"a","finished":"ok","mode":"local","train_s":2,"per_shard":[{"shard":0,"scheme":"bsp"}],"evaluations":[]}`,
		"resolved.yaml":  "name: a # default\nseed: 3\ntrain:\n  optimizer: {lr: 0.1}\nsync:\n  - {scheme: bsp}\nmodel: {layers: [64, 10]}\n",
		"metrics.jsonl":  `{"at_s":1,"iteration":2,"samples":64,"train/loss":0.5}` + "\n" + `{"at_s":2,"train/loss":null}` + "\n",
		"iterations.csv": rows,
		"histograms.csv": "shard,what,value,count\n0,staleness,1,5\n1,staleness,1,2\n0,lead,3,1\n",
		"what-if.json":   `{"line": "w1 cost 3 %", "candidates": [{"name": "asp", "ratio": 2.5, "staleness_p50": 2, "staleness_max": 9}]}`,
		"summary.txt":    "x\n\nNOTE: one\n      two\nNOTE: three\n\nFinished: ok\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Damage) > 0 || run.Summary.Name != "a" || len(run.Rows) != 2 || run.Rows[0].TrainLoss != 0.5 ||
		run.Rows[1].TrainLoss == run.Rows[1].TrainLoss {
		t.Errorf("%q, %+v", run.Damage, run.Rows)
	}
	if s := run.Settings; s["train.optimizer.lr"] != "0.1" || s["sync[0].scheme"] != "bsp" ||
		s["model.layers"] != "[64, 10]" || s["name"] != "a" {
		t.Errorf("%v", s)
	}
	if len(run.Iterations) != 2 || run.Staleness[1] != 7 || len(run.Staleness) != 1 {
		t.Errorf("%v %v", run.Iterations, run.Staleness)
	}
	if strings.Join(run.Notes, "|") != "one two|three" {
		t.Errorf("%q", run.Notes)
	}
	if w := run.WhatIf; w == nil || w.Line != "w1 cost 3 %" || len(w.Candidates) != 1 || w.Candidates[0].Name != "asp" ||
		w.Candidates[0].Ratio != 2.5 || w.Candidates[0].StalenessMax != 9 {
		t.Errorf("%+v", w)
	}
}

// What the user wrote is told from what is a default, and in a run of a sweep from what its configuration was filled with.
func TestChosenSettings(t *testing.T) {
	const resolved = "name: a    # f.yaml:1\nseed: 3  # default\ntrain:\n  optimizer:\n    lr: 0.1  # --set\nsync:\n  " +
		"- match: \"*\"  # f.yaml:7\n    scheme: ssp # f.yaml:8\n    staleness: 3 # default\nfaults: []  # f.yaml:9\n"
	for head, want := range map[string]string{
		"name: a": "0 [name train.optimizer.lr sync[0].match sync[0].scheme faults]",
		"# run 5 of a sweep: sync[0].scheme=ssp name=a b=c seed=3": "3 [sync[0].scheme name seed train.optimizer.lr]", // b is no key
		"# run 5 of a sweep: sync=[{match: \"*\", scheme: ssp}]":   "1 [sync train.optimizer.lr]",
	} {
		run, err := Read(runOf(t, map[string]string{"run.json": "{}", "config.yaml": head + "\nseed: 3\n", "resolved.yaml": resolved}))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(run.Swept, " ", run.Chosen); got != want {
			t.Errorf("%s: %s, want %s", head, got, want)
		}
	}
	run, err := Read(runOf(t, map[string]string{"run.json": "{}", "resolved.yaml": "name: a\nseed: 3\n"}))
	if err != nil || run.Chosen != nil {
		t.Errorf("%v of a file that does not say it, %v", run.Chosen, err)
	}
}

// A damaged run gives what is there, and says what is not.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string // in the damage
		rows  int
		iters int
	}{
		"killed": {map[string]string{"run.json": "{}", "metrics.jsonl": `{"at_s":1}` + "\n" + `{"at_s":2,"tra`},
			[]string{"summary.json is missing", "metrics.jsonl: damaged lines were left out: 1", "iterations.csv is missing",
				"resolved.yaml is missing"}, 1, 0},
		"bad what-if": {map[string]string{"what-if.json": "{", "summary.json": `{"finished":"ok"}`},
			[]string{"what-if.json is damaged and was left out"}, 0, 0},
		"cut iterations": {map[string]string{"iterations.csv": rows + "0,1,0.7,0.2,0,0.0"},
			[]string{"iterations.csv was read up to its first damaged line: line 4"}, 0, 2},
		"no iterations": {map[string]string{"iterations.csv": "nonsense\n"}, []string{"iterations.csv is damaged and was left out"}, 0, 0},
		"bad summary":   {map[string]string{"summary.json": "{"}, []string{"summary.json is damaged"}, 0, 0},
		"failed": {map[string]string{"summary.json": `{"finished":"stalled\u001b[2J"}`},
			[]string{`the run did not finish: "stalled\x1b[2J"`}, 0, 0},
		"csv": {map[string]string{"metrics.csv": "at_s,train/loss\n1,0.5\n2,NaN\n3,0.", "run.json": "{}"},
			[]string{"metrics.csv: damaged lines were left out: 1"}, 2, 0},
		"both": {map[string]string{"metrics.jsonl": `{"at_s":1}` + "\n{\n{\n",
			"metrics.csv": "at_s,train/loss\n1,0.5\n2,0.25\n", "run.json": "{}"},
			[]string{"metrics.jsonl: damaged lines were left out: 2", "its records were taken from metrics.csv"}, 2, 0},
		"both damaged": {map[string]string{"metrics.jsonl": `{"at_s":1}` + "\n{\n", "metrics.csv": "at_s,train/loss\n1,",
			"run.json": "{}"}, []string{"metrics.jsonl: damaged", "metrics.csv: damaged"}, 1, 0},
		"bad yaml": {map[string]string{"run.json": "{}", "resolved.yaml": "a: [\n"}, []string{"resolved.yaml is damaged"}, 0, 0},
		"histograms": {map[string]string{"run.json": "{}",
			"histograms.csv": "shard,what,value,count\n0,staleness,-1,5\n0,staleness,1\n"},
			[]string{"histograms.csv: damaged lines were left out: 2"}, 0, 0},
	} {
		run, err := Read(runOf(t, c.files))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		damage := strings.Join(run.Damage, "\n")
		for _, want := range c.want {
			if !strings.Contains(damage, want) {
				t.Errorf("%s: %q does not say %q", name, damage, want)
			}
		}
		iters := 0
		for _, all := range run.Iterations {
			iters += len(all)
		}
		if len(run.Rows) != c.rows || iters != c.iters {
			t.Errorf("%s: %d rows and %d iterations, want %d and %d", name, len(run.Rows), iters, c.rows, c.iters)
		}
	}
}

func TestNoRun(t *testing.T) {
	file := filepath.Join(runOf(t, map[string]string{"thesis.tex": ""}), "thesis.tex")
	for dir, want := range map[string]string{t.TempDir(): "holds no run", file: "is not a folder", "nowhere": "no such file"} {
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}

// Below finds each run once, follows no link, and looks for no run inside another.
func TestBelow(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/1", "a/2/checkpoints/x", "b/c/d", "empty"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"a/1/run.json", "a/2/summary.json", "a/2/checkpoints/x/run.json", "b/c/d/metrics.jsonl"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("1", filepath.Join(root, "a", "latest")); err != nil {
		t.Fatal(err)
	}
	found, err := Below(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i], _ = filepath.Rel(root, found[i])
	}
	if got := strings.Join(found, " "); got != "a/1 a/2 b/c/d" {
		t.Errorf("%s", got)
	}
}

// The summary that an earlier start has left, and what belongs to it, is not that of the newest start.
func TestASummaryOfAnEarlierStartIsLeftOut(t *testing.T) {
	files := map[string]string{
		"run.json":       `{"start": "s.2"}`,
		"summary.json":   `{"start":"s.1","name":"a","finished":"ok"}`,
		"histograms.csv": "shard,what,value,count\n0,staleness,1,5\n",
		"what-if.json":   `{"line": "w1 cost 3 %"}`,
		"summary.txt":    "NOTE: one\n",
	}
	run, err := Read(runOf(t, files))
	if err != nil || run.Summary != nil || run.Staleness != nil || run.WhatIf != nil || run.Notes != nil ||
		len(run.Damage) == 0 || !strings.Contains(run.Damage[0], "summary.json is of an earlier start") {
		t.Errorf("%+v, %v", run, err)
	}
	files["run.json"] = `{"start": "s.1"}`
	if run, err = Read(runOf(t, files)); err != nil || run.Summary == nil || run.WhatIf == nil || len(run.Notes) != 1 {
		t.Errorf("%+v, %v", run, err)
	}
}
