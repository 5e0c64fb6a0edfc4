package csv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset/files"
)

// writeTo writes files into a folder of the test, and returns it.
func writeTo(t testing.TB, texts ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// show prints the rows of a table, as the model gets them.
func show(t *Table) string {
	var b strings.Builder
	x, y := make([]float32, t.Cols()), make([]int32, 1)
	for r := range t.Rows() {
		t.Fill(x, y, []int32{int32(r)})
		fmt.Fprint(&b, strings.Trim(fmt.Sprint(x), "[]"), " ", y[0], "\n")
	}
	return b.String()
}

func kinds(pairs ...string) Kinds {
	var names, of []string
	for i := 0; i < len(pairs); i += 2 {
		names, of = append(names, pairs[i]), append(of, pairs[i+1])
	}
	return KindsOf(names, of)
}

// What the keys say is done, and what they say wrongly is an error that names them.
func TestOptions(t *testing.T) {
	cars := "name,city,age,class\nann,Rome,1,yes\nbob,Oslo,3,no\ncid,Rome,2,yes\n"
	for _, c := range []struct {
		name, text, test string
		o                Options
		train, want      string // the rows, and what is found or noted; or a part of the error
	}{
		{"onehot", cars, "",
			Options{Drop: "name", Columns: kinds("city", "onehot")}, "0 1 1 1\n1 0 3 0\n0 1 2 1\n",
			"column \"city\" has 2 texts, 1 column left out"},
		{"numbers of columns", "ann,Rome,1,yes\nbob,Oslo,3,no\n", "",
			Options{Drop: "1", Columns: kinds("2", "onehot")}, "0 1 1 1\n1 0 3 0\n", ""},
		{"standardize", cars, "",
			Options{Drop: "name\ncity", Columns: kinds("*", "standardize")}, "-1.2247449 1\n1.2247449 0\n0 1\n", "1 column standardized"},
		{"standardized by the training rows", "a,b\n1,0\n3,1\n", "a,b\n5,1\n",
			Options{Columns: kinds("a", "standardize")}, "-1 0\n1 1\n", "test 3 1"},
		{"large numbers standardized", "a,b\n1700000000,0\n1700000002,1\n", "",
			Options{Columns: kinds("a", "standardize")}, "-1 0\n1 1\n", ""},
		{"a constant standardized", "a,b\n7,0\n7,1\n", "",
			Options{Columns: kinds("a", "standardize")}, "0 0\n0 1\n", "column \"a\" is 7 in all training rows"},
		{"label by name", "class,a\n1,5\n0,6\n", "", Options{Label: "class"}, "5 1\n6 0\n", "class in column \"class\""},
		{"label by number", "5,1,6\n7,0,8\n", "", Options{Label: "2"}, "5 6 1\n7 8 0\n", "class in column 2"},
		{"first", "1,5,6\n0,7,8\n", "", Options{Label: "first"}, "5 6 1\n7 8 0\n", ""},
		{"missing", "a,b\n1,0\nNA,1\n3,1\n", "",
			Options{}, "",
			`a:3:1: value "NA" is not a number; every value must be a number: fill in missing values, or remove the row; or set data.missing: mean`},
		{"mean", "a,b\n1,0\nNA,1\n3,1\n", "a,b\n,1\n", Options{Missing: "mean"}, "1 0\n2 1\n3 1\n", "test 2 1"},
		{"mean, standardized", "a,b\n1,0\n,1\n3,1\n", "",
			Options{Missing: "mean", Columns: kinds("a", "standardize")}, "-1 0\n0 1\n1 1\n", "1 missing value filled in"},
		{"missing texts", "a,b\nx,0\n?,1\n", "", Options{Missing: "mean", Columns: kinds("a", "onehot")}, "1 0\n0 1\n", ""},
		{"missing text", "a,b\nx,0\n?,1\n", "",
			Options{Columns: kinds("a", "onehot")}, "", `a:3:1: the value of column "a" is missing ("?")`},
		{"None is a text", "a,b\nNone,0\nx,1\n", "", Options{Columns: kinds("a", "onehot")}, "1 0 0\n0 1 1\n", ""},
		{"all missing", "a,c,b\nNA,1,0\n,2,1\n", "",
			Options{Missing: "mean"}, "", `column "a" has no value in any training row: leave it out by data.drop: ["a"]`},
		{"a text of the test rows", "a,b\nx,0\ny,1\n", "a,b\nz,1\n",
			Options{Columns: kinds("a", "onehot")}, "1 0 0\n0 1 1\n", "texts in 1 test rows that no training row has"},
		{"numbers as texts", "a,b\n10,0\n9,1\n", "", Options{Columns: kinds("a", "onehot")}, "0 1 0\n1 0 1\n", ""},
		{"decimal commas", "a;b;c\n1,5;2;0\n-0,25;3,0;1\n", "",
			Options{Decimal: "comma"}, "1.5 2 0\n-0.25 3 1\n", "semicolon, decimal commas"},
		{"a header above decimal commas", "a;b;c\n1,5;x;no\n2,5;y;yes\n", "", Options{Decimal: "comma", Columns: kinds("b", "onehot")},
			"1.5 1 0 0\n2.5 0 1 1\n", "header found"},
		{"tabs and decimal commas", "1,5\t2\t0\n2,5\t3\t1\n", "",
			Options{Decimal: "comma"}, "1.5 2 0\n2.5 3 1\n", "tab, decimal commas"},
		{"a point and decimal commas", "a;c\n1,5;0\n1.234,5;1\n", "",
			Options{Decimal: "comma"}, "", `value "1.234,5" has a decimal point, but data.decimal is comma`},
		{"decimal commas unsaid", "a;b;c\n1,5;2,5;0\n2,5;3,5;1\n", "", Options{}, "", "or set data.decimal: comma"},
		{"two separators", "1,5;2\n3,4;0\n", "",
			Options{}, "", "both comma and semicolon cut all lines into as many values: set data.delimiter"},
		{"two separators, one of numbers", "a;1,b;2,0\nc;1,d;2,1\n", "",
			Options{Columns: kinds("*", "onehot")}, "1 0 1 0 0\n0 1 0 1 1\n", "comma"},
		{"the delimiter", "1,5;2\n3,4;0\n", "", Options{Delimiter: "semicolon", Decimal: "comma"}, "1.5 2\n3.4 0\n", ""},
		{"spaces", " 5.1  3.5 0\n4.9 3\t1 \n", "", Options{}, "5.1 3.5 0\n4.9 3 1\n", "no header, space"},
		{"R's write.table", "\"a\" \"b\"\n\"1\" 5 0\n\"2\" 6 1\n", "",
			Options{}, "", "the header has 2 names, but rows have 3 values, as R's write.table"},
		{"row numbers", "\"\",\"a\",\"b\"\n\"1\",5,0\n\"2\",6,1\n", "", Options{Drop: "1"}, "5 0\n6 1\n", "1 column left out"},
		{"Excel's separator", "sep=;\na;b\n1;0\n2;1\n", "", Options{}, "1 0\n2 1\n", "header found, semicolon"},
		{"a header of numbers", "0,1,2\n5,6,0\n7,8,1\n", "", Options{}, "", "set data.header: true or false"},
		{"a header of numbers, said", "0,1,2\n5,6,0\n7,8,1\n", "", Options{Header: "true"}, "5 6 0\n7 8 1\n", ""},
		{"numbers in turn, said", "0,1,2\n5,6,0\n7,8,1\n", "", Options{Header: "false"}, "0 1 2\n5 6 0\n7 8 1\n", ""},
		{"letters", "p,x\ne,y\n", "", Options{}, "", "it cannot be told whether the first line, \"p,x\", has the names of the columns"},
		{"letters, said", "p,x\ne,y\n", "",
			Options{Header: "false", Label: "first", Columns: kinds("2", "onehot")}, "1 0 1\n0 1 0\n", "2 classes: \"e\", \"p\""},
		{"a header with years", "id,2019,2020,c\n5,6,7,0\n8,9,1,1\n", "",
			Options{}, "", "some are numbers in turn, and no other line has its words; set data.header: true or false"},
		{"a header with years, said", "id,2019,2020,c\n5,6,7,0\n8,9,1,1\n", "", Options{Header: "true"}, "5 6 7 0\n8 9 1 1\n", ""},
		{"pandas, an array and a class", "0,1,2,class\n1.5,3,1,no\n2.5,3,1,yes\n", "", Options{}, "", "set data.header: true or false"},
		{"the same texts in other lines", "1,2,no\n3,4,yes\n5,6,no\n", "", Options{}, "1 2 0\n3 4 1\n5 6 0\n", ""},
		{"a column without texts", "a,b,y\n1,NA,no\n2,NA,yes\n", "", Options{Missing: "mean", Columns: kinds("b", "onehot")}, "",
			`column "b" has no text in any training row: leave it out by data.drop: ["b"]`},
		{"a comment in place of a dropped field", "id,a,y\n1,10,0\n2,11,1\n#3,12,1\n", "", Options{Drop: "id"}, "10 0\n11 1\n",
			"1 line of comments skipped"},
		{"a quote in a comment", "# disk of 5\" size\na,b,y\n# 3\" disk\n1,2,0\n2,3,1\n", "", Options{}, "1 2 0\n2 3 1\n", "header found"},
		{"a number behind lines in quotes", "a,note,b,y\n1,\"x\ny\",2,0\n2,\"p\nq\",zz9,1\n", "",
			Options{Columns: kinds("note", "onehot")}, "", "a:5:4: value"},
		{"a class behind lines in quotes", "a,note,y\n1,\"x\r\ny\",0\n2,\"p\r\nq\",zz9\n", "", Options{Columns: kinds("note", "onehot")}, "",
			"a:5:4: class"},
		{"an empty last column", "a,b,y,\n1,1,0,\n2,2,1,\n", "", Options{}, "", "would be the class: name the column of the class in data.label"},
		{"an empty last column, said", "a,b,y,\n1,1,0,\n2,2,1,\n", "", Options{Label: "y", Drop: "4"}, "1 1 0\n2 2 1\n", ""},
		{"texts of the test rows in the order", "a,b\n2,0\n10,1\n3,0\n", "a,b\nx,1\n", Options{Columns: kinds("a", "onehot")},
			"1 0 0 0\n0 0 1 1\n0 1 0 0\n", ""},
		{"a field too few, and a space", "1 a yes\n3 b \n", "", Options{Delimiter: "space", Label: "2", Drop: "3"}, "", "2 values, want 3"},
		{"commas for both", "1,5,2\n", "", Options{Delimiter: "comma", Decimal: "comma"}, "", "are both comma"},
		{"a header of two lines", "x,x,y\na,b,class\n1.5,2,no\n2.5,3,yes\n", "", Options{}, "", "keep one line of names"},
		{"ones and twos", "1,2,2\n1.5,2.5,1\n2.5,3,0\n", "", Options{}, "1 2 2\n1.5 2.5 1\n2.5 3 0\n", ""},
		{"lines in quotes", "a,b\n1,\"x\ny\"\n2,z\n", "", Options{}, "1 0\n2 1\n", "2 classes: \"x\\ny\", \"z\""},
		{"an error behind lines in quotes", "a,b\n1,\"x\ny\"\nq,z\n", "", Options{}, "", "a:4:1: value"},
		{"classes from 1", "1,1\n2,3\n", "", Options{}, "1 0\n2 1\n", "classes are 1, 3, and are numbered 0 to 1"},
		{"signs", "1,-1\n2,+1\n", "", Options{}, "1 0\n2 1\n", "classes are -1, 1"},
		{"classes as floats", "1,0.0\n2,1.0\n", "", Options{}, "1 0\n2 1\n", ""},
		{"no class", "1,0\n2,NA\n", "", Options{}, "", `a:2:3: the class is missing ("NA"); remove the row`},
		{"a value as the class", "1,0\n2,0.5\n", "", Options{}, "", `a:2:3: label "0.5" is not a whole number`},
		{"texts among numbers", "1,0\n2,x\n", "",
			Options{}, "", `a:2:3: class "x" is no whole number, but those of the rows above are, such as "0"`},
		{"a class far away", "1,0\n1,1\n1,2\n2,5000\n", "",
			Options{}, "1 0\n1 1\n1 2\n2 5000\n", "class 5000 is far from the others, which are at most 2; 1 of 4 training rows"},
		{"another column is called class", "class,a\n1,0\n0,1\n", "",
			Options{}, "1 0\n0 1\n", "column 1 is called \"class\": if that is the class, set data.label: class"},
		{"no such label", "a,b\n1,0\n", "",
			Options{Label: "species"}, "", `data.label: there is no column "species"; the columns are "a", "b"`},
		{"capitals", "a,Class\n1,0\n", "", Options{Label: "class"}, "", `there is no column "class": did you mean "Class", column 2?`},
		{"no header to name", "1,0\n2,1\n", "",
			Options{Label: "a"}, "", "the files have no header: write a number from 1 to 2, or set data.header: true"},
		{"no such number", "a,b\n1,0\n", "",
			Options{Drop: "7"}, "", "data.drop: there is no column 7: columns have the numbers 1 to 2"},
		{"a name that is a number", "2,a,b\n1,0,1\n2,3,0\n", "",
			Options{Header: "true", Drop: "2"}, "", "2 is the name of column 1, and the number of another one"},
		{"nothing left", "a,b\n1,0\n", "", Options{Drop: "a"}, "", "no column is left beside the class"},
		{"the class dropped", "a,b\n1,0\n", "", Options{Drop: "b"}, "", "is the class: name another one as data.label"},
		{"dropped and named", "a,c,b\n1,2,0\n", "", Options{Drop: "a", Columns: kinds("a", "onehot")}, "", "is also in data.drop"},
		{"another header", "a,b\n1,0\n", "x,b\n1,0\n",
			Options{}, "", `b:1: column 1 of the header is "x", and in the training file it is "a"`},
		{"a header in one file", "a,b\n1,0\n2,1\n", "1,0\n", Options{}, "", "the first line is no header, and the first file has one"},
		{"a header in the other file", "1,0\n2,1\n", "a,b\n1,0\n",
			Options{}, "", "the first line is a header, and the first file has none"},
		{"one test row of another separator", "1;2;0\n2;3;1\n", "4;5;1\n", Options{}, "1 2 0\n2 3 1\n", "test 4 5 1"},
	} {
		dir := writeTo(t, c.text, c.test)
		tests := []string{filepath.Join(dir, "b")}
		if c.test == "" {
			tests = nil
		}
		in := files.New(0)
		train, test, _, err := Read([]string{filepath.Join(dir, "a")}, tests, c.o, in)
		if c.train == "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		said := strings.Join(append(slices.Concat(in.Found, in.Notes), "test "+show(test)), "\n")
		if got := show(train); got != c.train || !strings.Contains(said, c.want) {
			t.Errorf("%s: rows %q, said %q; want %q, %q", c.name, got, said, c.train, c.want)
		}
	}
}

// A split numbers the classes of all rows, and says of which it has left none for training. The last line is named whatever the size.
func TestRareClasses(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "%d.5,%d\n", i, 1+i%2)
	}
	text.WriteString("5,3\n")
	dir := writeTo(t, text.String(), strings.Repeat("1,2,0\n", 60_000)+"3,4,1")
	noted := 0
	for seed := range uint64(20) {
		in := files.New(0)
		_, test, found, err := Read([]string{filepath.Join(dir, "a")}, nil, Options{Split: 0.3, Seed: seed}, in)
		if err != nil || found.Classes != 3 || fmt.Sprint(found.Names) != "[1 2 3]" {
			t.Fatalf("seed %d: %v, %v", seed, err, found.Names)
		}
		if has := slices.Contains(test.y, 2); has != strings.Contains(strings.Join(in.Notes, "\n"), `leaves all rows of class "3" in the test part`) {
			t.Errorf("seed %d: the class is in the test part: %v; notes %q", seed, has, in.Notes)
		} else if has {
			noted++
		}
	}
	if noted == 0 || noted == 20 {
		t.Errorf("%d of 20 splits have the class in the test part", noted)
	}
	in := files.New(0)
	_, _, _, err := Read([]string{filepath.Join(dir, "b")}, nil, Options{}, in)
	if err != nil || !strings.Contains(fmt.Sprint(in.Notes), "line 60001, the last,") {
		t.Errorf("%v, notes %q", err, in.Notes)
	}
}

// Forms are those of what was understood, not of how the keys say so.
func TestForms(t *testing.T) {
	dir := writeTo(t, "id,city,age,buys\n1,Rome,3,no\n2,Oslo,4,yes\n3,Rome,5,no\n", "1,2,0\n3,4,1\n")
	form := func(file string, o Options) string {
		_, _, found, err := Read([]string{filepath.Join(dir, file)}, nil, o, files.New(0))
		if err != nil {
			t.Fatal(err)
		}
		return found.Form
	}
	city := kinds("city", "onehot")
	same := form("a", Options{Columns: city, Drop: "id"})
	for _, o := range []Options{
		{Columns: kinds("2", "onehot", "age", "number"), Drop: "1", Header: "true", Delimiter: "comma"},
		{Columns: city, Drop: "id", Label: "buys", Missing: MissingMean}, {Columns: city, Drop: "id", Label: "4", Decimal: "point"},
	} {
		if got := form("a", o); got != same {
			t.Errorf("%+v has the form %q, want %q", o, got, same)
		}
	}
	if same != "0 dropped; 1 onehot" || form("b", Options{}) != "" || form("b", Options{Header: "false", Label: "last"}) != "" {
		t.Errorf("forms %q, %q", same, form("b", Options{Header: "false"}))
	}
	seen := map[string]bool{}
	for _, o := range []Options{
		{Columns: city}, {Columns: kinds("city", "onehot", "age", "standardize")},
		{Columns: kinds("city", "onehot", "buys", "onehot"), Label: "id"},
		{Columns: city, Group: "id"},
		{Columns: city, Drop: "age"}, {Columns: kinds("*", "onehot"), Header: "false"},
	} {
		if got := form("a", o); seen[got] {
			t.Errorf("%+v has the form %q of another one", o, got)
		} else {
			seen[got] = true
		}
	}
}

// Several files are read in the order of their names, and a pattern that fits none is an error.
func TestPaths(t *testing.T) {
	dir := writeTo(t, "x,y\n1,0\n", "x,y\n2,1\n", "x,z\n2,1\n")
	paths, err := Paths(filepath.Join(dir, "[ab]"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("%v, %v", paths, err)
	}
	in := files.New(0)
	train, _, _, err := Read(paths, nil, Options{}, in)
	if err != nil || show(train) != "1 0\n2 1\n" || len(in.Files) != 2 {
		t.Errorf("%v, %d files", err, len(in.Files))
	}
	if paths, err = Paths(filepath.Join(dir, "*")); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err = Read(paths, nil, Options{}, files.New(0)); err == nil || !strings.Contains(err.Error(), `c:1: column 2 of the header is "z"`) {
		t.Errorf("another header: %v", err)
	}
	for pattern, want := range map[string]string{"/q*": "no file fits", "/[": "is no pattern of files"} {
		if _, err := Paths(dir + pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// A split takes the rows that it should, whatever the order of the columns, and both parts have all rows.
func TestSplit(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "%d,%d\n", i, i%3)
	}
	dir := writeTo(t, text.String())
	read := func(share float64, seed uint64) (train, test string, n int) {
		a, b, _, err := Read([]string{filepath.Join(dir, "a")}, nil, Options{Split: share, Seed: seed}, files.New(0))
		if err != nil {
			t.Fatal(err)
		}
		return show(a), show(b), b.Rows()
	}
	train, test, n := read(0.2, 1)
	again, _, _ := read(0.2, 1)
	other, _, _ := read(0.2, 2)
	all := strings.Split(strings.TrimSpace(train+test), "\n")
	slices.SortFunc(all, func(a, b string) int {
		x, _ := strconv.Atoi(strings.Fields(a)[0])
		y, _ := strconv.Atoi(strings.Fields(b)[0])
		return x - y
	})
	whole := strings.ReplaceAll(strings.TrimSpace(text.String()), ",", " ")
	if n != 20 || again != train || other == train || strings.Join(all, "\n") != whole {
		t.Errorf("%d test rows; the same seed gives the same rows: %v; another one too: %v; all rows %v", n, again == train, other == train, all)
	}
	if _, _, _, err := Read([]string{filepath.Join(dir, "a")}, nil, Options{Split: 0.001}, files.New(0)); err == nil ||
		!strings.Contains(err.Error(), "makes 0 of 100 rows test rows") {
		t.Errorf("a share without rows: %v", err)
	}
}

// A table that is written in any dialect is read back: numbers to the bit, texts and classes as they were.
func TestWrittenTablesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTable(t)
		dir, err := os.MkdirTemp("", "csv")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "a")
		if err := os.WriteFile(path, []byte(w.text()), 0o600); err != nil {
			t.Fatal(err)
		}
		train, _, found, err := Read([]string{path}, nil, w.options(), files.New(0))
		if err != nil {
			t.Fatalf("%v\n%q", err, w.text())
		}
		if got, want := show(train), w.want(); got != want {
			t.Fatalf("read %q, want %q, of %q", got, want, w.text())
		}
		if len(found.Columns) != len(w.kinds)+1 {
			t.Fatalf("%d columns", len(found.Columns))
		}
	})
}

// written is a random table, and how it is written.
type written struct {
	sep, end, point  string
	header, comments bool
	quoted           bool
	label            int
	kinds            []Kind // of the columns without the class
	numbers          [][]float64
	texts            [][]string
	classes          []string
	rows             int
}

func drawTable(t *rapid.T) *written {
	w := &written{
		sep: rapid.SampledFrom([]string{",", ";", "\t", "|"}).Draw(t, "sep"), end: rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end"),
		point: ".", header: rapid.Bool().Draw(t, "header"), comments: rapid.Bool().Draw(t, "comments"),
		quoted: rapid.Bool().Draw(t, "quoted"), rows: rapid.IntRange(2, 30).Draw(t, "rows"),
	}
	if w.sep != "," && rapid.Bool().Draw(t, "comma") {
		w.point = ","
	}
	w.kinds = append([]Kind{Number}, rapid.SliceOfN(rapid.SampledFrom([]Kind{Number, OneHot}), 0, 4).Draw(t, "kinds")...)
	w.label = rapid.IntRange(0, len(w.kinds)).Draw(t, "label")
	text := rapid.SampledFrom([]string{"Rome", "Oslo", "São Paulo", "a\"b", "x y", "New, York", "q;r", "it's", "#5"})
	for _, k := range w.kinds {
		var numbers []float64
		var texts []string
		for range w.rows {
			numbers = append(numbers, float64(rapid.Float32Range(-1e6, 1e6).Draw(t, "number")))
			texts = append(texts, text.Draw(t, "text"))
		}
		if k == Number {
			texts = nil
		}
		w.numbers, w.texts = append(w.numbers, numbers), append(w.texts, texts)
	}
	class := rapid.SampledFrom([]string{"yes", "no", "ünsure"})
	if rapid.Bool().Draw(t, "numbers") {
		class = rapid.SampledFrom([]string{"3", "-1", "7"})
	}
	for range w.rows {
		w.classes = append(w.classes, class.Draw(t, "class"))
	}
	return w
}

func (w *written) options() Options {
	o := Options{Label: strconv.Itoa(w.label + 1), Header: strconv.FormatBool(w.header)}
	o.Delimiter = delimiterName(w.sep[0])
	if w.point == "," {
		o.Decimal = DecimalComma
	}
	var names, of []string
	for i, k := range w.kinds {
		if k == OneHot {
			names, of = append(names, strconv.Itoa(w.column(i)+1)), append(of, string(k))
		}
	}
	o.Columns = KindsOf(names, of)
	return o
}

// column is the place of a column in the file.
func (w *written) column(i int) int {
	if i >= w.label {
		return i + 1
	}
	return i
}

func (w *written) field(text string) string {
	if w.quoted || strings.ContainsAny(text, w.sep+"\"") || strings.HasPrefix(text, "#") {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

func (w *written) text() string {
	var b strings.Builder
	line := func(of func(i int) string, class string) {
		fields := make([]string, len(w.kinds)+1)
		for i := range w.kinds {
			fields[w.column(i)] = of(i)
		}
		fields[w.label] = class
		b.WriteString(strings.Join(fields, w.sep) + w.end)
	}
	if w.header {
		line(func(i int) string { return w.field("c" + strconv.Itoa(i)) }, w.field("class"))
	}
	for r := range w.rows {
		if w.comments && r%3 == 1 {
			b.WriteString("# it's \"so" + w.end + w.end)
		}
		line(func(i int) string {
			if w.kinds[i] == OneHot {
				return w.field(w.texts[i][r])
			}
			return strings.Replace(strconv.FormatFloat(w.numbers[i][r], 'g', -1, 64), ".", w.point, 1)
		}, w.field(w.classes[r]))
	}
	return b.String()
}

// want are the rows as the model gets them, made in the plainest way.
func (w *written) want() string {
	order := slices.Compact(slices.Sorted(slices.Values(w.classes)))
	if _, err := strconv.Atoi(order[0]); err == nil {
		slices.SortFunc(order, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return x - y
		})
	}
	var b strings.Builder
	for r := range w.rows {
		var x []float32
		for i, k := range w.kinds {
			if k == Number {
				x = append(x, float32(w.numbers[i][r]))
				continue
			}
			for _, text := range slices.Compact(slices.Sorted(slices.Values(w.texts[i]))) {
				one := float32(0)
				if text == w.texts[i][r] {
					one = 1
				}
				x = append(x, one)
			}
		}
		fmt.Fprint(&b, strings.Trim(fmt.Sprint(x), "[]"), " ", slices.Index(order, w.classes[r]), "\n")
	}
	return b.String()
}

// A file of many blocks has the rows of its lines in their order, and its errors have their places.
func TestManyBlocks(t *testing.T) {
	var text strings.Builder
	text.WriteString("n,kind,wide,class\n")
	draw := rand.New(rand.NewPCG(5, 6))
	const rows = 60_000
	for i := range rows {
		kind := []string{"red", "green", "\"blue, dark\"", "\"a\nb\""}[draw.IntN(4)]
		fmt.Fprintf(&text, "%d,%s,%v,%s\n", i, kind, draw.NormFloat64()*1e6, []string{"cat", "dog"}[draw.IntN(2)])
	}
	for _, memory := range []int64{0, 64 << 20} { // blocks of several sizes
		dir := writeTo(t, text.String())
		o := Options{Columns: kinds("kind", "onehot", "wide", "standardize")}
		train, _, found, err := Read([]string{filepath.Join(dir, "a")}, nil, o, files.New(memory))
		if err != nil {
			t.Fatal(err)
		}
		x, y := make([]float32, train.Cols()), make([]int32, 1)
		var sum, squares float64
		for r := range rows {
			train.Fill(x, y, []int32{int32(r)})
			if x[0] != float32(r) || x[1]+x[2]+x[3]+x[4] != 1 {
				t.Fatalf("row %d is %v", r, x)
			}
			sum, squares = sum+float64(x[5]), squares+float64(x[5])*float64(x[5])
		}
		if train.Rows() != rows || math.Abs(sum/rows) > 1e-6 || math.Abs(squares/rows-1) > 1e-5 || fmt.Sprint(found.Names) != "[cat dog]" {
			t.Errorf("%d rows, mean %v, variance %v, classes %v", train.Rows(), sum/rows, squares/rows, found.Names)
		}
	}
	lines := strings.SplitAfter(text.String(), "\n")
	for at, bad := range map[int]string{20_000: "1,red,x,cat\n", 40_001: "1,red,2\n", len(lines) - 2: "1,red,2,7\n"} {
		dir := writeTo(t, strings.Join(lines[:at], "")+bad+strings.Join(lines[at:], ""))
		_, _, _, err := Read([]string{filepath.Join(dir, "a")}, nil, Options{Columns: kinds("kind", "onehot")}, files.New(0))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a:%d:", at+1)) {
			t.Errorf("a mistake in line %d: %v", at+1, err)
		}
	}
}

// Of a table with several columns of texts the first mistake names all of them, with the key as it is to be written; so do dates.
func TestColumnsOfTextsAreNamedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	table := "id,plan,since,age,city,left\nC1,plus,2021-07-21,31,Rome,no\nC2,basic,2020-01-02,NA,Oslo,yes\n" +
		"C3,plus,2019-11-30,44,\"Rome, Italy\",no\n"
	for columns, want := range map[Kinds]string{
		"": `these columns have texts: write data.columns: {"id": onehot, "plan": onehot, "since": onehot, "city": onehot}, ` +
			`or leave out some by data.drop: ["id", "plan", "since", "city"]`,
		KindsOf([]string{"id", "plan", "city"}, []string{"onehot", "onehot", "onehot"}): `if column "since" has texts, write data.columns: {"since": onehot}`,
	} {
		if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := Read([]string{path}, nil, Options{Columns: columns}, files.New(0))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", columns, err, want)
		}
	}
}
