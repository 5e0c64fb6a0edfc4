package datapage

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/profile"
)

// Sentences say what the set is, and what about it may be a mistake.
func Sentences(s *Source) (all []string) {
	r, p := &s.Report, s.Profile
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	rows := metrics.Count(r.Train.Rows, "training row") + " and " + metrics.Count(r.Test.Rows, "test row")
	switch {
	case r.Matrix != (dataset.Matrix{}):
		say("%s of a matrix of %d x %d.", rows, r.Matrix.Rows, r.Matrix.Columns)
	case r.Classes > 0:
		say("%s of %s in %d classes.", rows, metrics.Count(r.Cols, "feature"), r.Classes)
	case r.Targets != (dataset.Targets{}):
		say("%s of %s and a target.", rows, metrics.Count(r.Cols, "feature"))
	default:
		say("%s, whose values only the model's own process knows.", rows)
		return all
	}
	baseline(say, r)
	columnsInWords(say, r, p)
	if p.Repeated > 0 {
		what := "the values"
		if r.Matrix != (dataset.Matrix{}) {
			what = "the place in the matrix"
		}
		say("Of %d test rows looked at, %d have %s of a training row looked at: a test on rows that were trained on says little.", p.Test.Rows,
			p.Repeated, what)
	}
	for at, l := range []profile.Looked{p.Train, p.Test} {
		if l.Rows < l.All {
			say("Of %s, %s are in what follows, one of each equal part.", metrics.Count(l.All, []string{"training row", "test row"}[at]),
				metrics.Count(l.Rows, "row"))
		}
	}
	return all
}

// baseline says what a model reaches that knows nothing.
func baseline(say func(string, ...any), r *dataset.Report) {
	part, name := &r.Test, "test"
	if part.Rows == 0 {
		part, name = &r.Train, "training"
	}
	if r.Classes == 0 {
		off := part.Values.Mean - r.Train.Values.Mean
		say("Always guessing the mean of the training rows has an RMSE of %s on the %s rows.",
			number(math.Hypot(part.Values.Deviation, off)), name)
		return
	}
	common, rare := 0, 0
	for k, n := range r.Train.Counts {
		if n > r.Train.Counts[common] {
			common = k
		}
		if n < r.Train.Counts[rare] {
			rare = k
		}
	}
	say("Always guessing the commonest class, %s, has the accuracy %s on the %s rows.", className(r, common),
		fixed(float64(part.Counts[common])/float64(max(1, part.Rows))), name)
	if a, b := r.Train.Counts[common], r.Train.Counts[rare]; b == 0 {
		say("Class %s has no training row.", className(r, rare))
	} else if a > unequal*b {
		say("Class %s has %d times the training rows of class %s.", className(r, common), a/b, className(r, rare))
	}
}

const (
	unequal  = 10   // so many times the rows of another class are said
	copyOf   = 0.99 // a guess from one column is rarely so good
	fewNames = 8
)

// columnsInWords says which columns may be mistakes.
func columnsInWords(say func(string, ...any), r *dataset.Report, p *profile.Profile) {
	var best *profile.Column
	var constant, rising []string
	for i := range p.Columns {
		c := &p.Columns[i]
		if !math.IsNaN(c.Alone) && (best == nil || c.Alone > best.Alone) {
			best = c
		}
		if c.Constant && !variesElsewhere(r, c.Name) {
			constant = append(constant, foreign.Text(c.Name))
		}
		if c.Rises {
			rising = append(rising, foreign.Text(c.Name))
		}
	}
	measure := "accuracy"
	if r.Classes == 0 {
		measure = "R2"
	}
	switch {
	case best == nil:
	case best.Alone >= copyOf && r.Cols > 1:
		say("A guess from column %s alone has %s %s: is it made from what is to be predicted? Then leave it out.",
			foreign.Text(best.Name), measure, fixed(best.Alone))
	default:
		say("The best guess from one column alone is that from %s: %s %s.", foreign.Text(best.Name), measure, fixed(best.Alone))
	}
	for _, name := range rising {
		say("Column %s rises from row to row: if it numbers the rows, leave it out, as by data.drop: [%s].", name, name)
	}
	if n := len(constant); n > 0 {
		if n > fewNames {
			constant = append(constant[:fewNames], fmt.Sprintf("%d more", n-fewNames))
		}
		where := ""
		if p.Train.Rows < p.Train.All {
			where = " in the rows looked at"
		}
		say("Constant%s, so they tell nothing: %s.", where, strings.Join(constant, ", "))
	}
}

// variesElsewhere says whether a column has other values in rows that were not looked at.
func variesElsewhere(r *dataset.Report, name string) bool {
	for _, c := range r.Columns {
		if c.Name == name && (c.Kind == string(csv.Number) || c.Kind == string(csv.Standardize)) {
			return c.Min != c.Max
		}
	}
	return false
}

// tables are those of the page.
func tables(s *Source) (all []*table) {
	r := &s.Report
	if len(r.Columns) > 0 {
		all = append(all, columnsTable(r))
	}
	if len(r.Sample) > 0 {
		all = append(all, sampleTable(r))
	}
	t := &table{ID: "files", Caption: "Files", Columns: []column{{Head: "file", Text: true}, {Head: "bytes"}, {Head: "sha256", Text: true}}}
	for _, f := range r.Files {
		t.Rows = append(t.Rows, cells(foreign.Text(f.Path), strconv.FormatInt(f.Bytes, 10), cmp.Or(f.Whole, f.SHA256)))
	}
	if t.Rows == nil {
		t.Caption = "No file was read: the rows are generated"
	}
	return append(all, t)
}

func cells(texts ...string) (row []cell) {
	for _, text := range texts {
		row = append(row, cell{Text: text})
	}
	return row
}

const columnsMost = 200

func columnsTable(r *dataset.Report) *table {
	t := &table{ID: "columns", Caption: "Columns of the files; least to deviation are of the training rows"}
	t.Columns = []column{{Head: "column", Text: true}, {Head: "kind", Text: true},
		{Head: "missing"}, {Head: "least"}, {Head: "largest"}, {Head: "mean"}, {Head: "deviation"}, {Head: "texts"}}
	for i, c := range r.Columns {
		if i == columnsMost {
			t.Caption += fmt.Sprintf(": the first %d of %d", columnsMost, len(r.Columns))
			break
		}
		row := []string{foreign.Text(cmp.Or(c.Name, strconv.Itoa(i+1))), c.Kind, strconv.Itoa(c.Missing), "", "", "", "", ""}
		switch csv.Kind(c.Kind) {
		case csv.Number, csv.Standardize:
			row[3], row[4], row[5], row[6] = number(c.Min), number(c.Max), number(c.Mean), number(c.Deviation)
		case csv.OneHot:
			row[7] = strconv.Itoa(len(c.Texts))
		}
		t.Rows = append(t.Rows, cells(row...))
	}
	return t
}

// sampleTable shows the first training rows as the model gets them.
func sampleTable(r *dataset.Report) *table {
	t := &table{ID: "sample", Caption: "The first training rows, as the model gets them"}
	names := csv.Names(r.Columns)
	if r.Matrix != (dataset.Matrix{}) {
		names = []string{"row", "column", "value"}
	}
	for j := range r.Sample[0].X {
		name := "x[" + strconv.Itoa(j) + "]"
		if len(names) == len(r.Sample[0].X) {
			name = foreign.Text(names[j])
		}
		t.Columns = append(t.Columns, column{Head: name})
	}
	isRating := r.Matrix != (dataset.Matrix{})
	if !isRating {
		t.Columns = append(t.Columns, column{Head: "to predict", Text: true})
	}
	for _, sample := range r.Sample {
		var row []string
		for _, v := range sample.X {
			row = append(row, strconv.FormatFloat(float64(v), 'g', 5, 32))
		}
		switch {
		case isRating:
		case r.Targets != (dataset.Targets{}):
			row = append(row, strconv.FormatFloat(float64(dataset.TargetOf(sample.Y)), 'g', 6, 32))
		default:
			row = append(row, className(r, int(sample.Y)))
		}
		t.Rows = append(t.Rows, cells(row...))
	}
	return t
}
