package profile

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/images"
)

// loaded is the set of a file of csv.
func loaded(t testing.TB, text string, change func(*dataset.Spec)) *dataset.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := dataset.Spec{Set: "csv", Path: path}
	if change != nil {
		change(&spec)
	}
	set, err := dataset.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func profiled(t testing.TB, set *dataset.Set, o Options) *Profile {
	t.Helper()
	p, err := Of(set, o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Of(set, o)
	if err != nil || !reflect.DeepEqual(p.Columns, again.Columns) && !strings.Contains(fmt.Sprint(p.Columns), "NaN") {
		t.Errorf("a second look shows something else: %v", err)
	}
	return p
}

// A table whose columns are mistakes of known kinds.
func TestMistakesAreSeen(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,copy,constant,noise,city,y\n")
	for i := range 400 {
		y := i * 7 % 3
		fmt.Fprintf(&b, "%d,%d,5,%d,%s,%d\n", 100+2*i, 10*y, i*7919%101, []string{"Rome", "Oslo", "Rome", "Bonn"}[i%4], y)
	}
	set := loaded(t, b.String(), func(s *dataset.Spec) {
		s.CSV.Columns = csv.KindsOf([]string{"city", "id"}, []string{"onehot", "standardize"})
		s.Split.Test = 0.25
	})
	p := profiled(t, set, Options{})
	if p.Train.Rows != set.Train.Rows() || p.Test.Rows != set.Test.Rows() || p.Left != 0 || len(p.Columns) != 5 {
		t.Fatalf("looked at %+v, %+v, %d columns", p.Train, p.Test, len(p.Columns))
	}
	id, copied, constant, noise, city := p.Columns[0], p.Columns[1], p.Columns[2], p.Columns[3], p.Columns[4]
	if !id.Rises || copied.Rises || constant.Rises || noise.Rises {
		t.Error("the wrong column rises")
	}
	if h := id.Shown; h.Least < 100 || h.Least > 110 || h.Most > 898 || h.Most < 890 || h.Least != math.Trunc(h.Least) {
		t.Errorf("the histogram of a standardized column is from %g to %g, not as the file has it", h.Least, h.Most)
	}
	if copied.Alone < 0.999 || noise.Alone > 0.6 || !constant.Constant || noise.Constant {
		t.Errorf("alone: copy %g, noise %g; constant %v, %v", copied.Alone, noise.Alone, constant.Constant, noise.Constant)
	}
	if city.Texts[0].Name != "Rome" || math.Abs(city.Texts[0].Train-0.5) > 0.06 {
		t.Errorf("the texts are %+v", city.Texts)
	}
	if h := constant.Shown; !h.Whole || len(h.Train) != 1 || h.Train[0] != 100 {
		t.Errorf("the histogram of a constant is %+v", h)
	}
}

// Test rows that are training rows are counted, and the most telling of many columns are kept.
func TestRepeatedRowsAndManyColumns(t *testing.T) {
	rows := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			for j := range 60 {
				fmt.Fprintf(&b, "%d,", (i*(j+3)*7919+j*i*i)%1009+5000*(i%2)*(j/59))
			}
			fmt.Fprintf(&b, "%d\n", i%2)
		}
		return b.String()
	}
	test := filepath.Join(t.TempDir(), "test.csv")
	if err := os.WriteFile(test, []byte(rows(190, 230)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := profiled(t, loaded(t, rows(0, 200), func(s *dataset.Spec) { s.Test = test }), Options{})
	if p.Repeated != 10 {
		t.Errorf("%d rows are repeated, want 10", p.Repeated)
	}
	if len(p.Columns) != columnsMost || p.Left != 60-columnsMost || p.Columns[0].Name != "column 60" {
		t.Errorf("%d columns and %d more, the first %s", len(p.Columns), p.Left, p.Columns[0].Name)
	}
}

// A large table is looked at in rows at equal distances.
func TestRowsAtEqualDistances(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%d,%d\n", i, i%2)
	}
	p := profiled(t, loaded(t, b.String(), nil), Options{Rows: 10})
	if h := p.Columns[0].Shown; p.Train != (Looked{10, 1000}) || h.Least >= 100 || h.Most < 900 || h.Most-h.Least < 800 {
		t.Errorf("looked at %+v from %g to %g", p.Train, h.Least, h.Most)
	}
	if !math.IsNaN(p.Columns[0].Alone) {
		t.Errorf("a guess from 10 rows is judged: %g", p.Columns[0].Alone)
	}
}

// Rows of a file with an order are no accusation: of a file whose classes alternate, no random column tells the class.
func TestAFileWithAnOrder(t *testing.T) {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "%d,%d\n", i*7919%1009, i%2)
	}
	p := profiled(t, loaded(t, b.String(), nil), Options{})
	if c := p.Columns[0]; c.Alone > 0.6 || p.Train.Rows != 20_000 {
		t.Errorf("a random column alone has accuracy %g, of %d rows", c.Alone, p.Train.Rows)
	}
}

// A standardized column with a large mean keeps its values.
func TestALargeMeanIsNoConstant(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "%.3f,%d\n", 1e7+0.2*float64(i*7919%100)/100+0.2*float64(i*31%2), i*31%2)
	}
	set := loaded(t, b.String(), func(s *dataset.Spec) { s.CSV.Columns = csv.KindsOf([]string{"1"}, []string{"standardize"}) })
	if c := profiled(t, set, Options{}).Columns[0]; c.Constant || c.Alone < 0.9 || c.Shown.Most-c.Shown.Least < 0.3 {
		t.Errorf("constant %v, alone %g, from %g to %g", c.Constant, c.Alone, c.Shown.Least, c.Shown.Most)
	}
}

// Of rows with very many columns none is looked at, so that a page takes no longer than reading them.
func TestVeryManyColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wide")
	if err := os.WriteFile(path, []byte("0 1:1 3000000:2\n1 2:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Load(dataset.Spec{Set: "libsvm", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if p := profiled(t, set, Options{}); p.Left != 3_000_000 || p.Columns != nil {
		t.Errorf("%d columns, %d left", len(p.Columns), p.Left)
	}
}

// Targets are shown as the file has them, also if they are standardized.
func TestTargets(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "%d,%d,%d\n", i%50, i*7919%23, 1000+3*(i%50))
	}
	set := loaded(t, b.String(), func(s *dataset.Spec) { s.Regress = dataset.Regression{On: true, Standardize: true} })
	p := profiled(t, set, Options{})
	if math.Abs(p.Outcome.Least-1000) > 0.01 || math.Abs(p.Outcome.Most-1147) > 0.01 {
		t.Errorf("targets are from %g to %g", p.Outcome.Least, p.Outcome.Most)
	}
	if p.Columns[0].Alone < 0.9999 || p.Columns[1].Alone > 0.2 {
		t.Errorf("alone: %g and %g", p.Columns[0].Alone, p.Columns[1].Alone)
	}
}

func TestRatings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	if err := os.WriteFile(path, []byte("0 0 5\n0 1 3\n0 2 1\n1 1 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Load(dataset.Spec{Set: "ratings", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	p := profiled(t, set, Options{})
	if h := p.PerRow; h.Least != 1 || h.Most != 3 || p.Outcome.Most != 5 || p.PerColumn.Most != 2 || p.Columns != nil {
		t.Errorf("%+v, %+v", p.PerRow, p.PerColumn)
	}
}

// Contact sheets show the bytes of the files, and the changes of training.
func TestSheets(t *testing.T) {
	set, err := dataset.Load(dataset.Spec{Set: "generated", Rows: 200, Classes: 4, Features: 48, Seed: 3,
		Image: dataset.Image{Channels: 3, Height: 4, Width: 4}})
	if err != nil {
		t.Fatal(err)
	}
	p := profiled(t, set, Options{Sheets: true, Augment: images.Augment{Cutout: 3}, Seed: 7})
	if len(p.Sheets) != 3 || len(p.Sheets[0].Strips) != 4 || len(p.Shades) != 3 || len(p.Sheets[2].Strips) != 1 {
		t.Fatalf("%d sheets of %d strips", len(p.Sheets), len(p.Sheets[0].Strips))
	}
	for _, s := range p.Sheets[1].Strips {
		differ := 0
		for k := 1; k < s.Count; k++ {
			for at := range 16 {
				if s.Picture.At(at%4, at/4) != s.Picture.At(k*(4+gap)+at%4, at/4) {
					differ++
				}
			}
		}
		if s.Count != ofStrip || differ == 0 {
			t.Errorf("strip %s of %d: no picture has changed", s.Label, s.Count)
		}
	}
}

// Every value is in the bin that a search of all bins finds, outside, or not finite.
func TestHistogramsCountAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.Map(rapid.IntRange(-30, 90), func(i int) float64 { return float64(i) }),
			rapid.SampledFrom([]float64{0, 1e9, -1e30, math.Inf(1), math.NaN(), 0.1}))
		whole := rapid.Map(rapid.IntRange(-300, 900), func(i int) float64 { return float64(i) })
		values := rapid.OneOf(rapid.SliceOfN(value, 1, 300), rapid.SliceOfN(whole, 1, 300)).Draw(t, "values")
		h := histogram(values, values)
		if !reflect.DeepEqual(h.Train, h.Test) {
			t.Fatalf("the same values have other shares: %v and %v", h.Train, h.Test)
		}
		var all, outside float64
		counts := make([]float64, len(h.Train))
		for _, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			at := -1
			for k := range counts {
				from, to := h.From+float64(k)*h.Width, h.From+float64(k+1)*h.Width
				last := k == len(counts)-1 && v <= h.Most && v <= to+1e-9*h.Width
				if v >= from && (v < to || last) {
					at = k
				}
			}
			if at < 0 {
				outside++
			} else {
				counts[at]++
			}
			all++
		}
		n := float64(len(values))
		for k, c := range counts {
			if math.Abs(h.Train[k]-100*c/n) > 100.0001/n { // at the edge of a bin, one value may be on either side
				t.Fatalf("bin %d has %g %%, must be %g; %+v", k, h.Train[k], 100*c/n, h)
			}
		}
		sum := 0.0
		for _, share := range h.Train {
			sum += share
		}
		if math.Abs(sum+h.Outside+100*float64(h.NotFinite)/n-100) > 1e-6 {
			t.Fatalf("bins have %g %%, outside are %g %%, %d are not finite", sum, h.Outside, h.NotFinite)
		}
		if len(counts) > max(binsMost+1, wholeMost) || h.Outside > 1 {
			t.Fatalf("%d bins, %g %% outside", len(counts), h.Outside)
		}
	})
}

// A guess is as good as one that compares every tried row with every learned row.
func TestGuessesAgreeWithASearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, classes := rapid.IntRange(rowsToGuess, 120).Draw(t, "n"), rapid.IntRange(2, 4).Draw(t, "classes")
		p := &part{rows: n}
		values := make([]float64, n)
		for i := range n {
			values[i] = float64(rapid.IntRange(0, 12).Draw(t, "value"))
			p.y = append(p.y, int32(rapid.IntRange(0, classes-1).Draw(t, "class")))
			p.target = append(p.target, float64(rapid.IntRange(0, 9).Draw(t, "target")))
		}
		// texts: the group of a value is the value
		g := newGuess(p, classes)
		right := 0
		tried := 0
		for i := range n {
			if learns(i) {
				continue
			}
			tried++
			counts, all := make([]int, classes), make([]int, classes)
			seen, most, pick := false, 0, int32(-1)
			for j := range n {
				if !learns(j) {
					continue
				}
				all[p.y[j]]++
				if values[j] == values[i] {
					seen = true
					if counts[p.y[j]]++; counts[p.y[j]] > most { // the first class that has so many rows
						most, pick = counts[p.y[j]], p.y[j]
					}
				}
			}
			if !seen {
				pick = int32(slices.Index(all, slices.Max(all)))
			}
			if pick == p.y[i] {
				right++
			}
		}
		if got, want := g.from(values, true), float64(right)/float64(tried); math.Abs(got-want) > 1e-12 {
			t.Fatalf("accuracy %g, want %g", got, want)
		}
		g.classes = 0
		var errors, spread, mean float64
		for i := range n {
			if !learns(i) {
				mean += p.target[i] / float64(tried)
			}
		}
		for i := range n {
			if learns(i) {
				continue
			}
			sum, k, total, learned := 0.0, 0.0, 0.0, 0.0
			for j := range n {
				if !learns(j) {
					continue
				}
				total, learned = total+p.target[j], learned+1
				if values[j] == values[i] {
					sum, k = sum+p.target[j], k+1
				}
			}
			if k == 0 {
				sum, k = total, learned
			}
			errors += (p.target[i] - sum/k) * (p.target[i] - sum/k)
			spread += (p.target[i] - mean) * (p.target[i] - mean)
		}
		if got, want := g.from(values, true), max(0, 1-errors/spread); spread > 0 && math.Abs(got-want) > 1e-9 {
			t.Fatalf("R2 %g, want %g", got, want)
		}
		if got := newGuess(p, classes).from(values, false); !(got >= 0 && got <= 1) {
			t.Fatalf("the accuracy of a guess from groups of numbers is %g", got)
		}
	})
}
