package datapage

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/profile"
)

var update = flag.Bool("update", false, "write the goldens")

func made(t *testing.T, spec dataset.Spec, o profile.Options) (page string) {
	t.Helper()
	set, err := dataset.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Describe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Of(set, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Files { // not the folder of this test
		r.Files[i].Path = filepath.Base(r.Files[i].Path)
	}
	for i := range r.Found {
		r.Found[i] = strings.ReplaceAll(r.Found[i], filepath.Dir(spec.Path)+"/", "")
	}
	out, err := Make(&Source{Title: "shop", Report: r, Profile: p, Build: "(test)"})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// shop is a file with mistakes in it, and names that want to be more than text.
func shop(t *testing.T) string {
	var b strings.Builder
	b.WriteString("id,age,city,flat,buys\n")
	for i := range 240 {
		age := 20 + i*7919%60
		city, buys := []string{"Rome", `"<script>alert(1)</script>"`, "Oslo"}[i%3], []string{"no", "yes"}[min(1, age/50)]
		fmt.Fprintf(&b, "%d,%d,%s,1,%s\n", i, age, city, buys)
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestThePageOfATable(t *testing.T) {
	page := made(t, dataset.Spec{Set: "csv", Path: shop(t), Label: "buys", Split: dataset.Split{Test: 0.25},
		CSV: csv.Options{Columns: csv.KindsOf([]string{"city"}, []string{"onehot"})}}, profile.Options{})
	golden := filepath.Join("testdata", "table.html")
	if *update {
		if err := os.WriteFile(golden, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(page)) {
		t.Errorf("%s differs; look at the difference and write it with -update", golden)
	}
	for _, part := range []string{"Always guessing the commonest class", "A guess from column age alone has accuracy",
		"is it made from what is to be predicted?", "Column id rises from row to row", "data.drop: [id]",
		"Constant, so they tell nothing: flat."} {
		if !strings.Contains(page, part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("a name of the file is a script of the page")
	}
}

func TestThePageOfPictures(t *testing.T) {
	page := made(t, dataset.Spec{Set: "generated", Rows: 300, TestRows: 40, Classes: 12, Features: 108, Seed: 1,
		Image: dataset.Image{Channels: 3, Height: 6, Width: 6}}, profile.Options{Sheets: true, Augment: images.Augment{Flip: true, Rotate: 20}})
	for part, n := range map[string]int{`<img src="data:image/png;base64,`: 10 + 10 + 2, `alt="8 pictures: Training pictures, 0"`: 1,
		"img-src data:": 1, "<svg": 4, "<caption>No file was read": 1} {
		if got := strings.Count(page, part); got != n {
			t.Errorf("%q is %d times in the page, want %d", part, got, n)
		}
	}
}

// Of every other kind of rows there is a page, also of rows that are elsewhere, and of very few.
func TestEveryKindHasAPage(t *testing.T) {
	ratings := filepath.Join(t.TempDir(), "r")
	if err := os.WriteFile(ratings, []byte("0 0 5\n0 1 3\n0 2 1\n1 1 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec dataset.Spec
		says []string
	}{
		"ratings": {dataset.Spec{Set: "ratings", Path: ratings}, []string{"4 training rows and 0 test rows of a matrix of 2 x 3",
			"Entries of a row of the matrix"}},
		"sparse": {dataset.Spec{Set: "generated_sparse", Rows: 200, TestRows: 50, Features: 100, Nonzeros: 5},
			[]string{"52 more columns are not drawn", "x["}},
		"targets": {dataset.Spec{Set: "generated", Rows: 100, Features: 3, Regress: dataset.Regression{On: true}},
			[]string{"of 3 features and a target", "has an RMSE of", "R2 of a guess"}},
		"elsewhere": {dataset.Spec{Set: "external", Rows: 7}, []string{"whose values only the model"}},
		"one row": {dataset.Spec{Set: "generated", Rows: 1, Features: 2, Classes: 2},
			[]string{"1 training row and 0 test rows", "has no training row"}},
	} {
		page := made(t, c.spec, profile.Options{})
		for _, part := range c.says {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page does not say %q", name, part)
			}
		}
	}
}
