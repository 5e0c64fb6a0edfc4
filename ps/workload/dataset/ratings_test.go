package dataset

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRatings(t *testing.T) {
	dir := write(t, map[string]string{"u.base.gz": "\xef\xbb\xbf3,1,4.5\n\n0,2 ,-1,881250949\n 3, 0,2.5 \n", "u.test": "5 0 1\n1  7 2\n"})
	spec := Spec{Set: "ratings", Path: filepath.Join(dir, "u.base"), Test: filepath.Join(dir, "u.test")}
	set, err := Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Samples{Cols: 3, Matrix: Matrix{6, 8}}); set.Samples() != want || set.Train.Rows() != 3 || set.Test.Rows() != 2 {
		t.Errorf("%+v with %d and %d rows, want %+v with 3 and 2", set.Samples(), set.Train.Rows(), set.Test.Rows(), want)
	}
	expect(t, set.Train, []int32{2, 0, 1}, []float32{3, 0, 2.5, 3, 1, 4.5, 0, 2, -1}, []int32{0, 0, 0})
	expect(t, set.Test, []int32{1}, []float32{1, 7, 2}, []int32{0})

	spec.Center, spec.Rows = true, 2 // the mean is the file's: 2
	if set, err = Load(spec); err != nil {
		t.Fatal(err)
	}
	expect(t, set.Train, []int32{0, 1}, []float32{3, 1, 2.5, 0, 2, -3}, []int32{0, 0})
	expect(t, set.Test, []int32{0, 1}, []float32{5, 0, -1, 1, 7, 0}, []int32{0, 0})
	r, err := described(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := Part{Rows: 2, Counts: []int{}, Values: Values{Mean: -0.25, Deviation: 2.75, Min: -3, Max: 2.5}}
	if r.Matrix != (Matrix{6, 8}) || r.Train.Values != want.Values || r.Train.Rows != 2 || r.Classes != 0 || len(r.Files) != 2 {
		t.Errorf("report %+v, want training rows %+v", r, want)
	}
}

// Common files of ratings are read unchanged.
func TestRatingsAreSeparatedByOneThing(t *testing.T) {
	for name, text := range map[string]string{
		"MovieLens 100K":  "1\t2\t3.5\t881250949\n4\t5\t6\t891717742\n",
		"MovieLens 1M":    "1::2::3.5::978300760\n4::5::6::978302109\n",
		"MovieLens 20M":   "1,2,3.5,\"2005-04-02 23:53:47\"\n4,5,6,\"2005-04-02 23:31:16\"\n",
		"MovieLens 32M":   "1,2,3.5,944249077\n4,5,6,944250228\n",
		"its ratings.csv": "userId,movieId,rating,timestamp\r\n1,2,3.5,944249077\r\n4,5,6,944250228\r\n",
		"quoted names":    "\"user\";\"item\";\"rating\"\n1;2;3.5\n4;5;6\n",
		"semicolons":      "1;2;3.5\n4;5;6;7\n",
		"spaces":          "1 2 3.5\n4 5 6 2005-09-06 07:00\n",
		"columns":         "  1    2 3.5\n  4    5 6  \n",
		"comma, space":    "1, 2, 3.5\n4 ,5, 6 , 2005-09-06 07:00\n",
		"date, time":      "1,2,3.5,2005-09-06,7:00\n4,5,6\n",
	} {
		set, err := Load(Spec{Set: "ratings", Path: filepath.Join(write(t, map[string]string{"u": text}), "u")})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		expect(t, set.Train, []int32{0, 1}, []float32{1, 2, 3.5, 4, 5, 6}, []int32{0, 0})
	}
}

// Rows and columns may have names, or numbers of any size: they are numbered in their order, over both files.
func TestIdentifiers(t *testing.T) {
	for _, c := range []struct {
		name, train, test string
		want              []float32 // of the training rows, then of the test rows
		rows, columns     string
		matrix            Matrix
	}{
		{"names", "user,item,rating\nbob,tea,3\nann,\"milk, cold\",4\n", "ann,tea,5\ncid,tea,1\n",
			[]float32{1, 1, 3, 0, 0, 4, 0, 1, 5, 2, 1, 1}, "[ann bob cid]", "[milk, cold tea]", Matrix{3, 2}},
		{"late names", "7,2,3\n007,1,4\nx,2,5\n", "", []float32{0, 2, 3, 0, 1, 4, 1, 2, 5}, "[7 x]", "[]", Matrix{2, 3}},
		{"large numbers", "76561198000,10,3\n3,20000000,4\n", "3,5,1\n", []float32{1, 1, 3, 0, 2, 4, 0, 0, 1},
			"[3 76561198000]", "[5 10 20000000]",
			Matrix{2, 3}},
		{"beyond int64", "18446744073709551615,1,3\n2,1,4\n", "", []float32{0, 1, 3, 1, 1, 4}, "[18446744073709551615 2]", "[]", Matrix{2, 2}},
		{"quoted numbers", "\"4\";\"1\";\"3.5\"\n\"0\";\"2\";\"1\"\n", "", []float32{4, 1, 3.5, 0, 2, 1}, "[]", "[]", Matrix{5, 3}},
		{"MatrixMarket", "%%MatrixMarket matrix coordinate real general\n% by scipy\n4 3 2\n1 2 0.5\n3 3 -4\n", "",
			[]float32{0, 1, 0.5, 2, 2, -4}, "[]", "[]",
			Matrix{4, 3}},
		{"names of another file", "1,2,3\n", "ann,2,4\n", []float32{0, 2, 3, 1, 2, 4}, "[1 ann]", "[]", Matrix{2, 3}},
	} {
		dir := write(t, map[string]string{"a": c.train, "b": c.test})
		s := Spec{Set: "ratings", Path: filepath.Join(dir, "a")}
		if c.test != "" {
			s.Test = filepath.Join(dir, "b")
		}
		set, err := Load(s)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, _ := rowsOf(set.Train, ascending(0, set.Train.Rows(), 1)...)
		more, _ := rowsOf(set.Test, ascending(0, set.Test.Rows(), 1)...)
		if got = append(got, more...); !slices.Equal(got, c.want) || set.Matrix != c.matrix || fmt.Sprint(set.RowNames) != c.rows ||
			fmt.Sprint(set.ColumnNames) != c.columns {
			t.Errorf("%s: %v of %+v, rows %v, columns %v", c.name, got, set.Matrix, set.RowNames, set.ColumnNames)
		}
	}
}

// Rows of MatrixMarket have numbers from 1, and those of other files from 0 or names: a set has one kind of files.
func TestMarketAndOtherRatings(t *testing.T) {
	market := "%%MatrixMarket matrix coordinate real general\n2 2 1\n2 2 3.0\n"
	for _, c := range [][2]string{{"alice,a,3\nbob,b,4\n", market}, {market, "1,1,3\n"}} {
		dir := write(t, map[string]string{"a": c[0], "b": c[1]})
		_, err := Load(Spec{Set: "ratings", Path: filepath.Join(dir, "a"), Test: filepath.Join(dir, "b")})
		if err == nil || !strings.Contains(err.Error(), "is of MatrixMarket, whose rows and columns have the numbers from 1, and") {
			t.Errorf("%q: %v", c, err)
		}
	}
	dir := write(t, map[string]string{"a": market, "b": market})
	if _, err := Load(Spec{Set: "ratings", Path: filepath.Join(dir, "a"), Test: filepath.Join(dir, "b")}); err != nil {
		t.Error(err)
	}
}

// Which files are for training is part of the sum, and files that are read twice are noted.
func TestFilesOfBothParts(t *testing.T) {
	dir := write(t, map[string]string{"p1": "1,2,0\n3,4,1\n", "p2": "1,3,0\n", "p3": "1,4,1\n", "q": "1,2,0\n3,4,1\n",
		"r1.gz": "1,2,0\n", "r2.gz": "1,3,1\n"})
	load := func(path, test string) *Set {
		s := Spec{Set: "csv", Path: filepath.Join(dir, path)}
		if test != "" {
			s.Test = filepath.Join(dir, test)
		}
		set, err := Load(s)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	sums := map[string]bool{}
	for _, of := range [][2]string{{"p[12]", "p3"}, {"p1", "p[23]"}, {"p[123]", ""}, {"p1", "p2"}, {"p[12]", ""}} {
		set := load(of[0], of[1])
		if sums[set.SHA256()] || len(set.Notes) > 0 {
			t.Errorf("%v: the sum of another set: %v, notes %q", of, sums[set.SHA256()], set.Notes)
		}
		sums[set.SHA256()] = true
	}
	if notes := fmt.Sprint(load("p1", "q").Notes); !strings.Contains(notes, "the test rows are training rows, too") {
		t.Errorf("the training file as the test file: %s", notes)
	}
	notes := fmt.Sprint(load("[pq]*", "").Notes)
	if !strings.Contains(notes, "q has the same bytes as ") || !strings.Contains(notes, "the rows are read twice") {
		t.Errorf("a file twice: %s", notes)
	}
	if n := load("r?", "").Train.Rows(); n != 2 {
		t.Errorf("%d rows of packed files", n)
	}
}

// A split takes ratings of each of both parts, and the mean of the training part.
func TestSplitOfRatings(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "%d,%d,%d\n", i, 2*i, 3*i)
	}
	s := Spec{Set: "ratings", Path: filepath.Join(write(t, map[string]string{"a": text.String()}), "a"),
		Split: Split{Test: 0.25}, Center: true}
	set, err := Load(s)
	if err != nil || set.Train.Rows() != 75 || set.Test.Rows() != 25 {
		t.Fatalf("%v, %d and %d rows", err, set.Train.Rows(), set.Test.Rows())
	}
	seen, sum := map[float32]bool{}, 0.0
	offset := float32(math.NaN())
	for _, table := range []Table{set.Train, set.Test} {
		for r := range table.Rows() {
			x, _ := rowsOf(table, int32(r))
			if offset != offset {
				offset = 3*x[0] - x[2]
			}
			if seen[x[0]] || x[1] != 2*x[0] || math.Abs(float64(3*x[0]-x[2]-offset)) > 1e-3 {
				t.Fatalf("rating %v, seen %v", x, seen[x[0]])
			}
			if seen[x[0]] = true; len(seen) <= 75 {
				sum += float64(x[2])
			}
		}
	}
	if math.Abs(sum) > 1e-2 {
		t.Errorf("the training values have the sum %v", sum)
	}
	again, err := Load(s)
	if err != nil || again.SHA256() != set.SHA256() {
		t.Errorf("the same split has another sum: %v", err)
	}
	s.Split.Seed = 7
	if other, err := Load(s); err != nil || other.SHA256() == set.SHA256() {
		t.Errorf("another split has the same sum: %v", err)
	}
}

func TestBadRatings(t *testing.T) {
	for content, want := range map[string]string{
		"":                               "u: no ratings",
		"userId,movieId,rating\n":        "u: no ratings",
		"1,2,3\nuserId,movieId,rating\n": `u:2: value "rating" is not a number`,
		"1,2,3\n1,2\n":                   "u:2: 2 values, want 3: row,column,value",
		"1,2,3\n1,2.5,3\n":               `u:2: column "2.5" is not a whole number`,
		"1,2,3\n-1,2,3\n":                "u:2: row -1 is out of range, must be 0 to 16777215",
		"1,2,3\n1,2,x\n":                 `u:2: value "x" is not a number`,
		"+1 1:1 3:0.5\n":                 `u:1: value "3:0.5" is not a number`,
		"1,2,nan\n":                      `value "nan" is not finite`,
		"0,0,4,978300760\n1,,3,978301968\n2,1,,978300275\n": "u:2: the column, field 2, is empty; want row,column,value",
		"0,0,4\n2,1,,978300275\n":                           "u:2: the value, field 3, is empty",
		"0\t0\t4\n\t1\t3\n":                                 "u:2: the row, field 1, is empty",
		"1::::3::978301968\n":                               "u:1: the column, field 2, is empty",
		"0;0;4,5\n":                                         `u:1: value "4,5" is not a number: it has a decimal comma; write 4.5`,
		"0;0;4\n1;1;4,5\n":                                  `u:2: value "4,5" is not a number: it has a decimal comma; write 4.5`,
		"1,2,3\n1::2::3\n": "u:2: 1 values, want 3: row,column,value; the first line " +
			"separates fields with commas, so all lines must",
		"1\t2\t3\n1 2 3\n": "u:2: 1 values, want 3: row,column,value; the first line separates fields with tabs",
		"1,NA,3\n":         `u:1: column "NA" names nothing`,
		"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n":        "the matrix has all entries (array)",
		"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n":     "entries have no value, or more than one (pattern)",
		"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 3\n":    "half of the entries are not in the file (symmetric)",
		"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n":      "the head promises 2 entries, the file has 1: it is cut short",
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 3\n":      "u:3: row \"3\" must be a whole number from 1 to 2",
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 3\n":      "u:3: column \"0\" must be a whole number from 1 to 2",
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n":      "u:3: value \"x\" is not a number",
		"%%MatrixMarket matrix coordinate real general\n2 99999999 1\n":      "u:2: column \"99999999\" must be a whole number from 1 to",
		"1 2 3\n%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 3": "must be the first line",
		strings.Repeat("1", 2<<20):                                           "u: line 1 is longer than 1048576 bytes; want lines of row,",
	} {
		path := filepath.Join(write(t, map[string]string{"u": content}), "u")
		if _, err := Load(Spec{Set: "ratings", Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q in it", content, err, want)
		}
	}
	good := Spec{Set: "generated_ratings", Rows: 10, Matrix: Matrix{4, 4}, Rank: 1}
	for want, change := range map[string]func(*Spec){
		"needs rows":                  func(s *Spec) { s.Rows = 0 },
		"a matrix of 0 x 4":           func(s *Spec) { s.Matrix.Rows = 0 },
		"rank 0 of a matrix":          func(s *Spec) { s.Rank = 0 },
		"(rows+columns)*rank at most": func(s *Spec) { s.Matrix, s.Rank = Matrix{1 << 20, 1 << 20}, 4000 },
		"noise is -1":                 func(s *Spec) { s.Noise = -1 },
		"noise is NaN":                func(s *Spec) { s.Noise = math.NaN() },
		"at most 2147483647 together": func(s *Spec) { s.Rows, s.TestRows = math.MaxInt32, 1 },
		"set generated_ratings does not take features": func(s *Spec) { s.Features = 3 },
		"set generated does not take matrix":           func(s *Spec) { s.Set = "generated" },
	} {
		s := good
		change(&s)
		if _, err := Load(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", s, err, want)
		}
	}
}

func TestGeneratedRatings(t *testing.T) {
	spec := Spec{Set: "generated_ratings", Rows: 20000, TestRows: 1000, Matrix: Matrix{50, 30}, Rank: 4, Noise: 0.5, Seed: 3}
	set, err := Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	p := set.Train.(*product)
	x, _ := rowsOf(set.Train, ascending(0, 20000, 1)...)
	rows, columns := make([]int, 50), make([]int, 30)
	var noise, squares, values float64
	for i := 0; i < len(x); i += RatingCols {
		row, column, v := int(x[i]), int(x[i+1]), float64(x[i+2])
		rows[row]++
		columns[column]++
		e := v
		for k := range 4 {
			e -= float64(p.left[row*4+k]) * float64(p.right[column*4+k])
		}
		noise, squares, values = noise+e, squares+e*e, values+v*v
	}
	n := 20000.0
	if math.Abs(noise/n) > 0.02 || math.Abs(math.Sqrt(squares/n)-0.5) > 0.02 {
		t.Errorf("noise has mean %g and deviation %g, want 0 and 0.5", noise/n, math.Sqrt(squares/n))
	}
	if v := values/n - 0.25; v < 0.5 || v > 1.6 { // 80 vectors of 4 numbers: the product's own variance varies
		t.Errorf("entries of the product have variance %g, want about 1", v)
	}
	if slices.Min(rows) < 300 || slices.Max(rows) > 500 || slices.Min(columns) < 540 || slices.Max(columns) > 800 {
		t.Errorf("rows have %v ratings, columns %v", rows, columns)
	}
	spec.Rows = 19999 // the first test row is now the former last training row
	moved, _ := Load(spec)
	last, y := rowsOf(set.Train, 19999)
	expect(t, moved.Test, []int32{0}, last, y)
	spec.Seed = 4
	other, _ := Load(spec)
	if otherX, _ := rowsOf(other.Train, 5); slices.Equal(otherX, x[5*RatingCols:6*RatingCols]) {
		t.Error("another seed gives the same rating")
	}
}
