package csv

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset/files"
)

// person is a row of Parquet.
type person struct {
	Age   *float64 `parquet:"age,optional"`
	Size  int32    `parquet:"size"`
	City  *string  `parquet:"city,optional,dict"`
	Extra bool     `parquet:"extra"`
	Buys  string   `parquet:"buys"`
	Score float32  `parquet:"score"`
}

// parquetOf writes rows to a file.
func parquetOf[T any](t interface{ Fatal(...any) }, path string, rows []T) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[T](f, parquet.MaxRowsPerRowGroup(7))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file of Parquet is the same table as the CSV of its rows, under every key: values to the bit, classes, texts, missing values, the
// split.
func TestParquetIsTheTableOfItsText(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 60).Draw(t, "rows")
		var rows []person
		text := strings.Builder{}
		text.WriteString("age,size,city,extra,buys,score\n")
		missing := false
		for i := range n {
			p := person{Size: rapid.Int32().Draw(t, "size"), Extra: rapid.Bool().Draw(t, "extra"),
				Score: rapid.Float32Range(-1e6, 1e6).Draw(t, "score"),
				Buys:  []string{"no", "yes", "São, \"Paulo\""}[(i+rapid.IntRange(0, 1).Draw(t, "buys"))%3]}
			age, city := "", ""
			if i == 0 || rapid.IntRange(0, 9).Draw(t, "has") > 0 {
				v := rapid.Float64Range(-1e9, 1e9).Draw(t, "age")
				c := rapid.SampledFrom([]string{"Rome", "Oslo", "a b", "ü"}).Draw(t, "city")
				p.Age, p.City = &v, &c
				age, city = strconv.FormatFloat(v, 'g', -1, 64), c
			} else {
				missing = true
			}
			extra := 0
			if p.Extra {
				extra = 1
			}
			fmt.Fprintf(&text, "%s,%d,%s,%d,\"%s\",%s\n", age, p.Size, city, extra, strings.ReplaceAll(p.Buys, `"`, `""`),
				strconv.FormatFloat(float64(p.Score), 'g', -1, 32))
			rows = append(rows, p)
		}
		a, b := filepath.Join(dir, "t.csv"), filepath.Join(dir, "t.parquet")
		if err := os.WriteFile(a, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		parquetOf(t, b, rows)
		o := Options{Label: rapid.SampledFrom([]string{"buys", "5", "extra"}).Draw(t, "label"), Header: "true", Delimiter: "comma",
			Missing: rapid.SampledFrom([]string{"", MissingMean}).Draw(t, "missing"), Split: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "split"),
			Scale: rapid.SampledFrom([]float64{0, 255}).Draw(t, "scale"), Seed: 3}
		names, kinds := []string{"city"}, []string{string(OneHot)}
		if o.Label == "extra" {
			names, kinds = append(names, "buys"), append(kinds, string(OneHot))
		}
		if rapid.Bool().Draw(t, "standardize") {
			names, kinds = append(names, Others), append(kinds, string(Standardize))
		}
		o.Columns = KindsOf(names, kinds)
		if rapid.Bool().Draw(t, "regress") {
			o.Regress, o.Label = true, "score"
			if !strings.Contains(string(o.Columns), "buys") {
				o.Drop = "buys"
			}
		}
		train, test, found, err := Read([]string{a}, nil, o, files.New(0))
		o.Header, o.Delimiter = "false", "tab" // which Parquet has not
		train2, test2, found2, err2 := ReadParquet([]string{b}, nil, o, files.New(0))
		if missing && o.Missing == "" {
			if err == nil || err2 == nil {
				t.Fatalf("missing values are taken: %v, %v", err, err2)
			}
			return
		}
		if err != nil || err2 != nil {
			if (err == nil) != (err2 == nil) {
				t.Fatalf("text: %v, Parquet: %v", err, err2)
			}
			return
		}
		found.Form, found2.Form = "", ""
		if !reflect.DeepEqual(found, found2) {
			t.Fatalf("text: %+v\nParquet: %+v", found, found2)
		}
		if !reflect.DeepEqual(train.x, train2.x) || !reflect.DeepEqual(train.y, train2.y) || !reflect.DeepEqual(test.x, test2.x) ||
			!reflect.DeepEqual(test.y, test2.y) {
			t.Fatalf("text: %v %v, %v %v\nParquet: %v %v, %v %v", train.x, train.y, test.x, test.y, train2.x, train2.y, test2.x, test2.y)
		}
	})
}

// A mistake in a file of Parquet is named with its row and column, and with what to do.
func TestMistakesInParquet(t *testing.T) {
	type row struct {
		A *float64 `parquet:"a,optional"`
		B string   `parquet:"b"`
		Y float64  `parquet:"y"`
	}
	one, huge := 1.0, 1e300
	dir := t.TempDir()
	for name, c := range map[string]struct {
		rows []row
		o    Options
		want string
	}{
		"missing":      {[]row{{&one, "1", 0}, {nil, "2", 1}}, Options{}, `: row 2, column "a": value "" is not a number; `},
		"missing mean": {[]row{{&one, "1", 0}, {nil, "2", 1}}, Options{}, "; or set data.missing: mean"},
		"text":         {[]row{{&one, "1", 0}, {&one, "Rome", 1}}, Options{}, `: row 2, column "b": value "Rome" is not a number; if column`},
		"text onehot":  {[]row{{&one, "Rome", 0}}, Options{}, `if column "b" has texts, write data.columns: {"b": onehot}`},
		"class":        {[]row{{&one, "1", 0.5}}, Options{}, `column "y": label "0.5" is not a whole number`},
		"huge":         {[]row{{&huge, "1", 1}}, Options{}, `row 1, column "a": value "1e+300"`},
		"control":      {[]row{{&one, "a\x00b", 1}}, Options{Columns: KindsOf([]string{"b"}, []string{"onehot"})}, "a byte 0"},
		"UTF-8":        {[]row{{&one, "a\xffb", 1}}, Options{Columns: KindsOf([]string{"b"}, []string{"onehot"})}, "UTF-8"},
		"column":       {[]row{{&one, "1", 1}}, Options{Label: "c"}, `data.label: there is no column "c"; the columns are "a", "b", "y"`},
		"none":         {nil, Options{}, ": no rows"},
		"features":     {[]row{{&one, "1", 1}}, Options{Features: 5}, "3 columns, want 6 (5 features and the class)"},
	} {
		path := filepath.Join(dir, "f.parquet")
		parquetOf(t, path, c.rows)
		_, _, _, err := ReadParquet([]string{path}, nil, c.o, files.New(0))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	parquetOf(t, filepath.Join(dir, "f.parquet"), []row{{&one, "1", 0}})
	parquetOf(t, filepath.Join(dir, "g.parquet"), []struct {
		A float64 `parquet:"a"`
		C float64 `parquet:"c"`
		Y int32   `parquet:"y"`
	}{{1, 2, 0}})
	_, _, _, err := ReadParquet([]string{filepath.Join(dir, "f.parquet")}, []string{filepath.Join(dir, "g.parquet")}, Options{}, files.New(0))
	if err == nil || !strings.Contains(err.Error(), `column 2 is "c", and "b" in the first file`) {
		t.Errorf("another column: %v", err)
	}
}
