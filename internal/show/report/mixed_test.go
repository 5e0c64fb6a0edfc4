package report

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Runs that predict numbers have a target of R2, those of classes one of accuracy; both together have none, because no measure is one of
// all.
func TestTargetsOfMixedRuns(t *testing.T) {
	run := func(accuracy, r2, loss float64) *Run {
		w := NoRow()
		w.TestAccuracy, w.TestR2, w.TestLoss = accuracy, r2, loss
		return &Run{Rows: []Row{w}}
	}
	nan := math.NaN()
	classes, numbers := run(1, nan, 0.2), run(nan, 0.978, 0.1)
	for _, c := range []struct {
		runs  []*Run
		what  string
		value float64
	}{{[]*Run{classes}, WhatAccuracy, 1}, {[]*Run{numbers}, WhatR2, 0.97}, {[]*Run{classes, numbers}, "", 0}} {
		var groups []*Group
		for _, r := range c.runs {
			groups = append(groups, &Group{Runs: []*Run{r}})
		}
		got := chooseTarget(groups)
		if (got == nil) != (c.what == "") || got != nil && (got.What != c.what || got.Value != c.value) {
			t.Errorf("%d runs: target %+v, want %s %v", len(c.runs), got, c.what, c.value)
		}
	}
	target := &Target{What: WhatAccuracy, Value: 0.9}
	if at, _, _ := target.reached(numbers); !math.IsNaN(at) || !math.IsNaN(numbers.most(func(w *Row) float64 { return w.TestAccuracy })) {
		t.Error("a run that predicts numbers reaches an accuracy")
	}
}

// A run whose rows are dealt unequally shows how many each worker has.
func TestSharesOfWorkers(t *testing.T) {
	r := &Run{Folder: "f", Rows: []Row{NoRow()}, WorkerRows: []int64{1000, 3000, 4000}}
	d, err := Make([]*Run{r}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(d.Tables, func(t *Table) bool { return t.ID == "worker-rows" })
	if at < 0 {
		t.Fatal("there is no table of the rows")
	}
	if got, want := string(d.Tables[at].CSV()), "worker,rows,share\n0,1000,0.125\n1,3000,0.375\n2,4000,0.5\n"; got != want {
		t.Errorf("table %q, want %q", got, want)
	}
	if text := strings.Join(d.Verdict, " "); !strings.Contains(text, "Its 3 workers have from 1,000 to 4,000 training rows each") {
		t.Errorf("the verdict is %q", text)
	}
}
