package dataset

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestGeneratedSparse(t *testing.T) {
	const features, nonzeros, rows = 300, 12, 4000
	spec := Spec{Set: "generated_sparse", Rows: rows, TestRows: 500, Features: features, Nonzeros: nonzeros, Seed: 3}
	set, err := Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Samples{Cols: features, Classes: 2}); set.Samples() != want {
		t.Errorf("samples are %+v, want %+v", set.Samples(), want)
	}
	b := NewBatch(true, set.Samples(), rows)
	b.Take(set.Train, ascending(0, rows, 1))
	w := set.Train.(*words)
	ones, right, early, total := 0, 0, 0, 0
	for r := range rows {
		index, value := b.Entries.Index[b.Entries.Start[r]:b.Entries.Start[r+1]], b.Entries.Value[b.Entries.Start[r]:b.Entries.Start[r+1]]
		x, y := rowsOf(set.Train, int32(r))
		var score float64
		for k, j := range index {
			if k > 0 && j <= index[k-1] {
				t.Fatalf("row %d has features %v, want them ascending", r, index)
			}
			if x[j] != 1 || value[k] != 1 {
				t.Fatalf("row %d: feature %d is %v as an entry and %v in full, want 1", r, j, value[k], x[j])
			}
			x[j] = 0
			score += float64(w.weight[j])
			if j < features/8 {
				early++
			}
		}
		if len(index) < 1 || len(index) > nonzeros || slices.Max(x) != 0 || slices.Min(x) != 0 || y[0] != b.Y[r] {
			t.Fatalf("row %d has %d entries, class %d and %d, and outside the entries %v", r, len(index), b.Y[r], y[0], x)
		}
		total += len(index)
		ones += int(y[0])
		if (score > 0) == (y[0] == 1) {
			right++
		}
	}
	if ones < rows/4 || ones > 3*rows/4 {
		t.Errorf("%d of %d rows are of class 1", ones, rows)
	}
	if share := float64(right) / rows; share < 0.75 || share > 0.98 { // the best guess: good, but not perfect
		t.Errorf("the weights are right about %g of the rows", share)
	}
	if share := float64(early) / float64(total); share < 0.35 || share > 0.55 { // half of the draws, and more of them twice
		t.Errorf("%g of the entries are in the first eighth of the features", share)
	}
	zeros := 0
	for _, v := range w.weight {
		if v == 0 {
			zeros++
		}
	}
	if zeros < features*6/10 || zeros > features*9/10 {
		t.Errorf("%d of %d weights are 0, want three quarters", zeros, features)
	}
	spec.Rows = rows - 1 // the first test row is then what was the last training row
	moved, _ := Load(spec)
	last, y := rowsOf(set.Train, rows-1)
	expect(t, moved.Test, []int32{0}, last, y)
	spec.Seed = 4
	other, _ := Load(spec)
	first, _ := rowsOf(set.Train, 0)
	if otherX, _ := rowsOf(other.Train, 0); slices.Equal(otherX, first) {
		t.Error("another seed gives the same row")
	}
}

func TestBadGeneratedSparse(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"needs rows":                     func(s *Spec) { s.Rows = 0 },
		"features is 0":                  func(s *Spec) { s.Features = 0 },
		"nonzeros is 9, must be 1 to":    func(s *Spec) { s.Nonzeros = 9 },
		"nonzeros is 0":                  func(s *Spec) { s.Nonzeros = 0 },
		"at most 2147483647 together":    func(s *Spec) { s.Rows, s.TestRows = math.MaxInt32, 1 },
		"does not take classes":          func(s *Spec) { s.Classes = 2 },
		"generated does not take nonzer": func(s *Spec) { s.Set = "generated" },
	} {
		s := Spec{Set: "generated_sparse", Rows: 10, Features: 8, Nonzeros: 2}
		change(&s)
		if _, err := Load(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", s, err, want)
		}
	}
}
