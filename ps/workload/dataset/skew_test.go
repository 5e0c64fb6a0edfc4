package dataset

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every row is one worker's, every worker has one, and the same seed deals the same.
func TestSharesArePartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, workers := rapid.IntRange(8, 400).Draw(t, "rows"), rapid.IntRange(1, 8).Draw(t, "workers")
		set, err := Load(Spec{Set: "generated", Rows: rows, Classes: 9, Features: 2, Seed: rapid.Uint64().Draw(t, "data")})
		if err != nil {
			t.Fatal(err)
		}
		k, seed := Skew{Dirichlet: math.Exp(rapid.Float64Range(-6.9, 6).Draw(t, "dirichlet"))}, rapid.Uint64().Draw(t, "seed")
		if rapid.Bool().Draw(t, "by") {
			k = Skew{By: byClass}
		}
		shares, err := set.Shares(k, workers, seed)
		if err != nil {
			if k.By == "" || !strings.Contains(err.Error(), "values in the training rows, for") {
				t.Fatal(err)
			}
			return
		}
		again, _ := set.Shares(k, workers, seed)
		var all []int32
		for w, share := range shares {
			if len(share) == 0 || !slices.Equal(share, again[w]) {
				t.Fatalf("worker %d has %v, then %v", w, share, again[w])
			}
			all = append(all, share...)
		}
		if slices.Sort(all); !slices.Equal(all, ascending(0, rows, 1)) {
			t.Fatalf("rows %v", all)
		}
	})
}

// A small concentration leaves a worker few classes, and a large one makes all workers alike. By class, no class is on two workers.
func TestSkew(t *testing.T) {
	set, err := Load(Spec{Set: "generated", Rows: 20000, Classes: 10, Features: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	// shares are those of each class on the worker with most of it, and the mean is theirs
	largest := func(k Skew, seed uint64) (mean float64) {
		shares, err := set.Shares(k, 5, seed)
		if err != nil {
			t.Fatal(err)
		}
		var count [10][5]float64
		var sum [10]float64
		for w, share := range shares {
			_, y := rowsOf(set.Train, share...)
			for _, c := range y {
				count[c][w]++
				sum[c]++
			}
		}
		for c := range count {
			mean += slices.Max(count[c][:]) / sum[c] / 10
		}
		return mean
	}
	for _, c := range []struct {
		k        Skew
		min, max float64
	}{{Skew{Dirichlet: 0.01}, 0.93, 1}, {Skew{Dirichlet: 0.3}, 0.5, 0.85}, {Skew{Dirichlet: 1000}, 0.2, 0.23},
		{Skew{By: byClass}, 0.999, 1.001}} {
		if got := (largest(c.k, 1) + largest(c.k, 2) + largest(c.k, 3)) / 3; got < c.min || got > c.max {
			t.Errorf("%+v: a class has %.3f of its rows on one worker, want %v to %v", c.k, got, c.min, c.max)
		}
	}
	// The shares of a class have the moments of the distribution: the mean 1/5, and the variance (1/5)(4/5)/(5*0.5 + 1).
	var share, squares, n float64
	for seed := range uint64(40) {
		shares, _ := set.Shares(Skew{Dirichlet: 0.5}, 5, seed)
		for _, rows := range shares {
			_, y := rowsOf(set.Train, rows...)
			var count [10]float64
			for _, c := range y {
				count[c]++
			}
			for c := range count {
				p := count[c] / 2000
				share, squares, n = share+p, squares+p*p, n+1
			}
		}
	}
	mean, variance := share/n, squares/n-share*share/n/n
	if want := 0.16 / 3.5; math.Abs(mean-0.2) > 0.001 || math.Abs(variance-want) > 0.15*want {
		t.Errorf("shares have the mean %v and the variance %v, want 0.2 and %v", mean, variance, want)
	}
}

// Rows with the same value of a column stay together, and the column is no feature.
func TestRowsStayTogether(t *testing.T) {
	var text strings.Builder
	text.WriteString("user,a,b,class\n")
	for i := range 60 {
		fmt.Fprintf(&text, "u%d,%d,%d,%d\n", i%7, i, i%3, i%2)
	}
	path := filepath.Join(write(t, map[string]string{"a": text.String()}), "a")
	keys := Keys{Set: "csv", Path: path, Text: Defaults().Text, Skew: Skew{By: "user"}}
	set, err := Load(keys.Spec(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	shares, err := set.Shares(keys.Skew, 3, 1)
	if err != nil || set.Train.Cols() != 2 {
		t.Fatalf("%v, %d columns", err, set.Train.Cols())
	}
	var sizes []int
	owner := map[int32]int{}
	for w, share := range shares {
		sizes = append(sizes, len(share))
		for _, r := range share {
			if o, known := owner[r%7]; known && o != w {
				t.Fatalf("user %d is on workers %d and %d", r%7, o, w)
			}
			owner[r%7] = w
		}
	}
	if fmt.Sprint(sizes) != "[18 25 17]" {
		t.Errorf("workers have %v rows", sizes)
	}
	if _, err := set.Shares(keys.Skew, 8, 1); err == nil || !strings.Contains(err.Error(), "user has 7 values in the training rows, for 8") {
		t.Errorf("too many workers: %v", err)
	}
	keys.Skew.By = "nobody"
	_, err = Load(keys.Spec(1, 0))
	if err == nil || !strings.Contains(err.Error(), `data.partition.by: there is no column "nobody"; the columns are "user"`) {
		t.Errorf("no such column: %v", err)
	}
	path = filepath.Join(write(t, map[string]string{"a": "0,0,1\n0,1,2\n1,0,3\n1,2,4\n2,2,5\n"}), "a")
	if set, err = Load(Spec{Set: "ratings", Path: path}); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string]string{"row": "[[0 1 4] [2 3]]", "column": "[[0 1 2] [3 4]]",
		"class": "data.partition.by: set ratings has no class: write row or column"} {
		if shares, err := set.Shares(Skew{By: by}, 2, 1); fmt.Sprint(shares) != want && fmt.Sprint(err) != want {
			t.Errorf("ratings by %s: %v, %v", by, shares, err)
		}
	}
}
