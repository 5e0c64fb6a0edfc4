package dataset

import (
	"fmt"

	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/files"
)

// rowsTable is a dense table of float32.
type rowsTable struct {
	x    []float32 // rows x cols
	y    []int32
	cols int
}

func (t *rowsTable) Rows() int { return len(t.y) }
func (t *rowsTable) Cols() int { return t.cols }

func (t *rowsTable) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.y[r]
		copy(x[i*t.cols:(i+1)*t.cols], t.x[int(r)*t.cols:])
	}
}

func (t *rowsTable) label(row int) int32 { return t.y[row] }

// textRows is a table of csv.
type textRows struct{ *csv.Table }

func (t textRows) label(row int) int32 { return t.Label(row) }

func (t textRows) fillSparse(e *Entries, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.Label(int(r))
		t.Entries(int(r), func(column int32, value float32) { e.Index, e.Value = append(e.Index, column), append(e.Value, value) })
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}

const csvSet = "csv"

// noteTwice notes files with the same bytes. The first ones are training files.
func noteTwice(in *files.Reading, training int) {
	first := map[string]int{}
	for i, f := range in.Files {
		was, known := first[f.SHA256]
		if !known {
			first[f.SHA256] = i
			continue
		}
		what := "the rows are read twice"
		if was < training && i >= training {
			what = "the test rows are training rows, too"
		}
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s has the same bytes as %s: %s", f.Path, in.Files[was].Path, what))
	}
}

func loadCSV(s Spec, in *files.Reading) (*Set, error) {
	o := s.CSV
	o.Label, o.Scale, o.Classes, o.Features, o.Split, o.Seed = s.Label, s.Scale, s.Classes, s.Features, s.Split.Test, s.Split.Seed
	o.Regress = s.Regress.On
	if o.Scale == 1 {
		o.Scale = 0
	}
	paths, err := csv.Paths(s.Path)
	if err != nil {
		return nil, err
	}
	var tests []string
	if s.Test != "" {
		if tests, err = csv.Paths(s.Test); err != nil {
			return nil, err
		}
	}
	train, test, found, err := csv.Read(paths, tests, o, in)
	if err != nil {
		return nil, err
	}
	noteTwice(in, len(paths))
	return &Set{parts: len(paths), form: found.Form, Train: textRows{train}, Test: textRows{test}, Classes: found.Classes,
		ClassNames: found.Names, Columns: found.Columns}, nil
}
