package csv

import (
	"fluentps/ps/workload/dataset/files"
)

// Table is a table of labelled rows. A column of texts is one number in memory, and several columns for a model.
type Table struct {
	x     []float32 // rows x kept columns; a text is its number, -1 if it is none of the training rows
	y     []int32   // classes, or the bits of targets
	group []int32   // of each row, the number of its group; none if no column groups the rows
	wide  []float64 // rows x columns that are standardized, while they are read
	kept  int
	cols  int // of the model

	wideCols int    // columns of wide, once they have been read
	places   []slot // empty: the kept columns are those of the model
}

// slot is where a kept column is among those of the model.
type slot struct {
	from   int
	isText bool // its number says which of several columns is 1
}

func (t *Table) Rows() int { return len(t.y) }
func (t *Table) Cols() int { return t.cols }

// Kept is how many numbers a row is in memory.
func (t *Table) Kept() int { return t.kept }

// Label is the class of a row.
func (t *Table) Label(row int) int32 { return t.y[row] }

// Labels are the classes of all rows, or the bits of their targets.
func (t *Table) Labels() []int32 { return t.y }

// Bytes is the memory of the table.
func (t *Table) Bytes() int64 { return 4 * int64(cap(t.x)+cap(t.y)+cap(t.group)) }

// Group is the number of the group of each row, from 0; nil: no column groups the rows.
func (t *Table) Group() []int32 { return t.group }

// Fill gathers rows: values into x (len(rows) x Cols, row-major), class numbers into y, or the bits of targets.
func (t *Table) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.y[r]
		to, from := x[i*t.cols:(i+1)*t.cols], t.x[int(r)*t.kept:(int(r)+1)*t.kept]
		if len(t.places) == 0 {
			copy(to, from)
			continue
		}
		clear(to)
		for k, v := range from {
			switch p := t.places[k]; {
			case !p.isText:
				to[p.from] = v
			case v >= 0:
				to[p.from+int(v)] = 1
			}
		}
	}
}

// Entries calls put for the values of a row that are not 0, in the order of their columns.
func (t *Table) Entries(row int, put func(column int32, value float32)) {
	for k, v := range t.x[row*t.kept : (row+1)*t.kept] {
		p := slot{from: k}
		if len(t.places) > 0 {
			p = t.places[k]
		}
		switch {
		case p.isText && v >= 0:
			put(int32(p.from+int(v)), 1)
		case !p.isText && v != 0:
			put(int32(p.from), v)
		}
	}
}

// split moves a share of the rows into another table.
func (t *Table) split(path string, share float64, seed uint64, test *Table, in *files.Reading) error {
	rows := len(t.y)
	kept, wide := len(t.x)/rows, len(t.wide)/rows
	if err := in.Take(nil, 8*int64(rows)+int64(share*float64(rows)+1)*int64(4*kept+8*wide+8)); err != nil {
		return err
	}
	picked, err := files.TestRows(path, rows, share, seed)
	if err != nil {
		return err
	}
	t.x, test.x = files.Part(t.x, kept, picked)
	t.y, test.y = files.Part(t.y, 1, picked)
	if len(t.group) > 0 {
		t.group, test.group = files.Part(t.group, 1, picked)
	}
	if wide > 0 {
		t.wide, test.wide = files.Part(t.wide, wide, picked)
	}
	in.Give(8 * int64(rows))
	return nil
}
