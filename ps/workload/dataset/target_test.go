package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset/csv"
)

// regressing loads files with targets.
func regressing(t *testing.T, s Spec, files map[string]string) (*Set, error) {
	t.Helper()
	dir := write(t, files)
	s.Path, s.Regress.On = filepath.Join(dir, s.Path), true
	if s.Test != "" {
		s.Test = filepath.Join(dir, s.Test)
	}
	return Load(s)
}

// targetsOf are the targets of a table as a batch has them, and as entries of a sparse batch.
func targetsOf(t *testing.T, set *Set, table Table) []float32 {
	t.Helper()
	rows := make([]int32, table.Rows())
	for i := range rows {
		rows[i] = int32(i)
	}
	b, sparse := NewBatch(false, set.Samples(), len(rows)), NewBatch(true, set.Samples(), len(rows))
	if err := b.Take(table, rows); err != nil {
		t.Fatal(err)
	}
	if err := sparse.Take(table, rows); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Targets, sparse.Targets) {
		t.Errorf("targets %v of dense rows, %v of sparse ones", b.Targets, sparse.Targets)
	}
	if half := b.Part(1, len(rows)); !slices.Equal(half.Targets, b.Targets[1:]) {
		t.Errorf("a part has the targets %v of %v", half.Targets, b.Targets)
	}
	return b.Targets
}

// Every reader reads targets, in each form of its numbers.
func TestTargetsOfEachReader(t *testing.T) {
	want := []float32{2.5, -1e-3, 300, 7}
	for name, c := range map[string]struct {
		spec Spec
		file string
	}{
		"csv":           {Spec{Set: "csv", Path: "a"}, "1,2.5\n2,-1e-3\n3,+300\n4,7\n"},
		"csv, named":    {Spec{Set: "csv", Path: "a", Label: "price"}, "price,x\n2.5,1\n-0.001,2\n\"300\",3\n7.0,4\n"},
		"csv, decimals": {Spec{Set: "csv", Path: "a", CSV: csv.Options{Decimal: "comma"}}, "1,5;2,5\n2;-0,001\n3;300\n4;7\n"},
		"csv, scaled":   {Spec{Set: "csv", Path: "a", Scale: 2}, "1,2.5\n2,-.001\n3,300\n4,7\n"},
		"libsvm":        {Spec{Set: "libsvm", Path: "a"}, "2.5 1:1\n-1e-3 2:1\n300 qid:1 1:2\n7 2:3 # last\n"},
	} {
		set, err := regressing(t, c.spec, map[string]string{"a": c.file})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := targetsOf(t, set, set.Train); !slices.Equal(got, want) || set.Classes != 0 || set.ClassNames != nil ||
			!set.Samples().Regress {
			t.Errorf("%s: targets %v, want %v; %d classes %v", name, got, want, set.Classes, set.ClassNames)
		}
	}
}

// The short way and the long way of the parser read the same targets: those of strconv, rounded to float32 once.
func TestTargetsAreThoseOfStrconv(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			v := rapid.Float64Range(-1e30, 1e30).Draw(t, "value")
			form := rapid.SampledFrom([]byte("eEfg")).Draw(t, "form")
			digits := rapid.IntRange(-1, 20).Draw(t, "digits")
			return strconv.FormatFloat(v, form, digits, rapid.SampledFrom([]int{32, 64}).Draw(t, "bits"))
		}), 1, 40).Draw(rt, "values")
		var file strings.Builder
		for i, v := range values {
			fmt.Fprintf(&file, "%d,%s\n", i, v)
		}
		set, err := regressing(t, Spec{Set: "csv", Path: "a"}, map[string]string{"a": file.String()})
		if err != nil {
			rt.Fatal(err)
		}
		x, y := make([]float32, 1), make([]int32, 1)
		for i, v := range values {
			set.Train.Fill(x, y, []int32{int32(i)})
			if want, _ := strconv.ParseFloat(v, 64); math.Float32bits(TargetOf(y[0])) != math.Float32bits(float32(want)) {
				rt.Fatalf("target %q is %v, want %v", v, TargetOf(y[0]), float32(want))
			}
		}
	})
}

// Bad targets are refused with their place, and with what to do.
func TestBadTargets(t *testing.T) {
	for _, c := range []struct {
		set, file string
		spec      Spec
		want      string
	}{
		{"csv", "1,2\n3,x\n", Spec{}, `a:2:3: target: value "x" is not a number; name the column of the target`},
		{"csv", "1,2\n3,\n", Spec{}, `a:2:3: the target is missing (""); remove the row`},
		{"csv", "1,2\n3,nan\n", Spec{CSV: csv.Options{Missing: "mean"}}, `a:2:3: the target is missing ("nan"); remove the row`},
		{"csv", "1,2\n3,inf\n", Spec{}, `a:2:3: target: value "inf" is not finite`},
		{"csv", "1,2\n3,1e39\n", Spec{}, `a:2:3: target: value "1e39" is not finite in float32, whose largest is 3.4028235e+38; correct it, or remove the row$`},
		{"csv", "1,2\n3,4,5\n", Spec{}, `a:2: 3 values, want 2 (1 features and the target)`},
		{"csv", "a,b\n1,2\n", Spec{CSV: csv.Options{Drop: "b"}}, `data.drop: column "b" is the target: name another one`},
		{"csv", "a,b\n1,2\n", Spec{CSV: csv.Options{Columns: "standardize b"}}, `column "b" is the target, which is no feature; data.targets: ` +
			`standardize standardizes it`},
		{"csv", "1,2\n3,2\n", Spec{Regress: Regression{Standardize: true}}, "the target is 2 in all 2 training rows, so it has no deviation"},
		{"csv", "1,2\n3,2\n", Spec{Classes: 2}, "classes is 2, but rows have targets and no classes"},
		{"libsvm", "1 1:2\nx 1:3\n", Spec{}, `a:2: target: value "x" is not a number`},
		{"libsvm", "1 1:2\n1,2 1:3\n", Spec{}, `a:2: label "1,2": data with several labels a row (multi-label) are not read`},
	} {
		c.spec.Set, c.spec.Path = c.set, "a"
		if _, err := regressing(t, c.spec, map[string]string{"a": c.file}); err == nil || !strings.Contains(err.Error()+"$", c.want) {
			t.Errorf("%q: %v, want %q in it", c.file, err, c.want)
		}
	}
	if _, err := Load(Spec{Set: "generated", Rows: 3, Features: 2, Regress: Regression{true, true}}); err == nil {
		t.Error("generated targets are standardized")
	}
	_, err := Load(Spec{Set: "csv", Path: "a", Regress: Regression{Standardize: true}})
	if err == nil || !strings.Contains(err.Error(), "set data.task: regress") {
		t.Errorf("classes are standardized: %v", err)
	}
	if _, err = Load(Spec{Set: "cifar10", Path: "a", Regress: Regression{On: true}}); err == nil ||
		!strings.Contains(err.Error(), "does not take task") {
		t.Errorf("cifar10 has targets: %v", err)
	}
	set, err := regressing(t, Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1,2\n3,2.5\n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Shares(Skew{Dirichlet: 1}, 2, 1); err == nil || !strings.Contains(err.Error(), "rows have targets and no classes") {
		t.Errorf("shares of targets by their class: %v", err)
	}
}

// Standardized targets have mean 0 and deviation 1 over the training rows, test rows follow with the same numbers, and what a set says of
// itself is in the unit of the files.
func TestStandardizedTargets(t *testing.T) {
	train, test := []float64{200000, 350000.5, 120000, 90000, 410000}, []float64{1e6, 200000}
	lines := func(all []float64) string {
		var b strings.Builder
		for i, v := range all {
			fmt.Fprintf(&b, "%d,%v\n", i, v)
		}
		return b.String()
	}
	files := map[string]string{"a": lines(train), "b": lines(test)}
	plain, err := regressing(t, Spec{Set: "csv", Path: "a", Test: "b"}, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(plain.Notes) != 1 || !strings.Contains(plain.Notes[0], "targets have mean 2.34e+05 and deviation 1.") {
		t.Errorf("notes of large targets: %q", plain.Notes)
	}
	set, err := regressing(t, Spec{Set: "csv", Path: "a", Test: "b", Regress: Regression{Standardize: true}}, files)
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	for _, v := range train {
		sum += float64(float32(v))
	}
	mean := sum / 5
	for _, v := range train {
		squares += (float64(float32(v)) - mean) * (float64(float32(v)) - mean)
	}
	deviation := math.Sqrt(squares / 5)
	for part, table := range []Table{set.Train, set.Test} {
		for i, got := range targetsOf(t, set, table) {
			v := append(slices.Clone(train), test...)[part*5+i]
			if want := float32((float64(float32(v)) - mean) / deviation); got != want {
				t.Errorf("target %v is %v, want %v", v, got, want)
			}
		}
	}
	if math.Abs(set.Targets.Mean-mean) > 1e-9 || math.Abs(set.Targets.Deviation-deviation) > 1e-9 {
		t.Errorf("%+v, want %v and %v", set.Targets, mean, deviation)
	}
	if got := set.describe(set.Test).Values; math.Abs(got.Max-1e6) > 1 || math.Abs(got.Mean-600000) > 1 {
		t.Errorf("the test targets are described as %+v", got)
	}
	if set.SHA256() == plain.SHA256() {
		t.Error("standardized targets have the sum of plain ones")
	}
	spread := set.TestSpread() * deviation * deviation // of two values, the square of half their distance
	if want := 400000. * 400000; math.Abs(spread/want-1) > 1e-6 {
		t.Errorf("the test targets have the spread %v, want %v", spread, want)
	}
}

// Targets that differ by little beside their size keep their deviation, and it is said that float32 has not all of their digits.
func TestTargetsFarFromZero(t *testing.T) {
	var file strings.Builder
	for i := range 200 {
		fmt.Fprintf(&file, "%d,%d\n", i, 1_700_000_000+60*i)
	}
	set, err := regressing(t, Spec{Set: "csv", Path: "a", Regress: Regression{Standardize: true}}, map[string]string{"a": file.String()})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Notes) != 1 || !strings.Contains(set.Notes[0], "float32 has steps of 203: digits are lost") {
		t.Errorf("notes %q", set.Notes)
	}
	if d := set.describe(set.Train).Values.Deviation; math.Abs(d-60*57.73) > 60 {
		t.Errorf("the deviation is %v, want about %v", d, 60*57.73)
	}
}

// The best constant has the least loss of all, and the loss is what a naive sum says.
func TestConstantLossOfTargets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var file strings.Builder
	values := make([]float64, 300)
	for i := range values {
		values[i] = float64(float32(math.Exp(2 * r.NormFloat64()))) // the mean is far from the median
		fmt.Fprintf(&file, "%d,%v\n", i, values[i])
	}
	set, err := regressing(t, Spec{Set: "csv", Path: "a"}, map[string]string{"a": file.String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, delta := range []float64{0, 0.1, 1, 50} {
		naive := func(at float64) (loss float64) {
			for _, v := range values {
				switch d := math.Abs(v - at); {
				case delta == 0:
					loss += d * d
				case d <= delta:
					loss += d * d / 2
				default:
					loss += delta*d - delta*delta/2
				}
			}
			return loss / float64(len(values))
		}
		least := math.Inf(1)
		for at := 0.0; at < 60; at += 0.001 {
			least = min(least, naive(at))
		}
		if got := set.ConstantLoss(set.Train, delta); got > least*(1+1e-9) || got < least*(1-1e-3) {
			t.Errorf("delta %g: the loss of a constant is %v, the least of a grid %v", delta, got, least)
		}
	}
}

// Generated targets are a linear function of the features, but for their noise.
func TestGeneratedTargets(t *testing.T) {
	set, err := Load(Spec{Set: "generated", Rows: 3000, TestRows: 1000, Features: 7, Seed: 5, Regress: Regression{On: true}})
	if err != nil {
		t.Fatal(err)
	}
	if spread := set.TestSpread(); math.Abs(spread-1.01) > 0.1 {
		t.Errorf("generated targets have the spread %v, want about 1.01", spread)
	}
	weight := set.Train.(*linear).weight
	x, y := make([]float32, 7), make([]int32, 1)
	var squares float64
	for r := range set.Test.Rows() {
		set.Test.Fill(x, y, []int32{int32(r)})
		miss := float64(TargetOf(y[0]))
		for j, w := range weight {
			miss -= float64(w) * float64(x[j])
		}
		squares += miss * miss
	}
	if mse := squares / 1000; math.Abs(mse-linearNoise*linearNoise) > 0.002 {
		t.Errorf("the mean squared error of the true weights is %v, want about 0.01", mse)
	}
}
