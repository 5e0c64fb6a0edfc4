package dataset

import (
	"fmt"
	"unsafe"

	"fluentps/ps/workload/dataset/mapped"
)

// Batch is N samples of Cols values each, in the form that the model takes. Y holds N class numbers, or Targets as many numbers to predict,
// and Rows the numbers of the rows: a model that has the data elsewhere needs no more.
type Batch struct {
	X       []float32 // N x Cols, row-major
	Entries Entries   // instead of X, if the model takes sparse rows
	Y       []int32
	Targets []float32 // nil: rows have classes. Y then has their bits
	Rows    []int32   // the number of each sample in its table; none in a batch that Take has not filled
	N, Cols int

	form  form
	every int       // of so many values of X the last is one of the data; those before it are the row and the column of a rating
	taken int       // how many times Take has filled it
	row   []float32 // Cols values, scratch for making a dense row sparse
}

// form is the layout of the samples in a batch.
type form uint8

const (
	denseRows  form = iota // X
	sparseRows             // Entries
)

// Entries are rows in compressed form. The entries of row i are Start[i] to Start[i+1]-1, each with a column and a value.
type Entries struct {
	Start []int32 // one more element than rows
	Index []int32 // columns, 0 to Cols-1, ascending in a row
	Value []float32
}

// NewBatch makes a batch for up to most samples such as from, as entries if sparse, else as dense rows.
func NewBatch(sparse bool, from Samples, most int) Batch {
	b := Batch{Cols: from.Cols, Y: make([]int32, most), Rows: make([]int32, 0, most), every: from.Matrix.every()}
	if from.Regress {
		b.Targets = make([]float32, most)
	}
	if sparse {
		b.form = sparseRows
	}
	if b.form == denseRows {
		b.X = make([]float32, most*from.Cols)
	}
	return b
}

// Take gathers rows of t. It panics if there are more than b was made for, or if they have another number of columns. It fails if
// a file cannot be read any more whose rows are not in memory.
func (b *Batch) Take(t Table, rows []int32) error {
	n := len(rows)
	if n > cap(b.Y) || t.Cols() != b.Cols {
		panic(fmt.Sprintf("dataset: a batch for %d rows of %d takes %d of %d", cap(b.Y), b.Cols, n, t.Cols()))
	}
	b.N, b.Y, b.taken = n, b.Y[:n], b.taken+1
	b.Rows = append(b.Rows[:0], rows...) // a copy: the caller draws the next rows into the same memory
	if b.form == sparseRows {
		b.takeSparse(t, rows)
	} else {
		b.X = b.X[:n*b.Cols]
		t.Fill(b.X, b.Y, rows)
	}
	if b.Targets != nil {
		b.Targets = b.Targets[:n]
		for i, y := range b.Y {
			b.Targets[i] = TargetOf(y)
		}
	}
	return failure(t)
}

// failing is a table whose rows are not in memory. failure is why some could not be read; nil: all could.
type failing interface{ failure() error }

func failure(t Table) error {
	if f, ok := whole(t).(failing); ok {
		return f.failure()
	}
	return nil
}

// paged is a table whose rows are parts of mapped files: pages calls part for those of rows.
type paged interface {
	pages(rows []int32, part func(b []byte))
}

// Ahead asks the system for the rows of the next batch while the current one is computed with, if reading rows waits for a disk. The zero
// value is ready. It belongs to one goroutine.
type Ahead struct {
	mapped.Ahead
	rows []int32
}

// NewAhead is for rows that are shuffled together in windows of so many; 0: in none.
func NewAhead(window int) *Ahead {
	a := &Ahead{}
	a.Near = window > 0
	return a
}

// Next is called when a batch has been taken. draw returns the rows of the next one, in the memory of its argument if that suffices.
func (a *Ahead) Next(t Table, draw func(rows []int32) []int32) {
	p, ok := whole(t).(paged)
	if !ok || !a.Wants() {
		return
	}
	a.rows = draw(a.rows)
	a.Ask(func(part func(b []byte)) { p.pages(a.rows, part) })
}

// Same says whether b holds the samples of o, in the same memory.
func (b *Batch) Same(o Batch) bool {
	return b.N == o.N && b.Cols == o.Cols && b.taken == o.taken && unsafe.SliceData(b.X) == unsafe.SliceData(o.X) &&
		unsafe.SliceData(b.Y) == unsafe.SliceData(o.Y)
}

// Numbers are all values of the samples, in the form that the model takes.
func (b *Batch) Numbers() []float32 {
	if b.form == sparseRows {
		return b.Entries.Value
	}
	return b.X
}

// Largest is the largest finite magnitude of the data in the samples.
func (b *Batch) Largest() float64 { return largest(b.Numbers(), b.every) }

// Place names one of Numbers.
func (b *Batch) Place(at int) string {
	if b.form == sparseRows {
		return fmt.Sprintf("entry %d", at)
	}
	return fmt.Sprintf("column %d of sample %d", at%b.Cols, at/b.Cols)
}

// Part returns samples lo to hi-1. They share the memory of b.
func (b *Batch) Part(lo, hi int) Batch {
	p := Batch{Y: b.Y[lo:hi], N: hi - lo, Cols: b.Cols, form: b.form, every: b.every}
	if b.Rows != nil {
		p.Rows = b.Rows[lo:hi]
	}
	if b.Targets != nil {
		p.Targets = b.Targets[lo:hi]
	}
	if b.form == sparseRows {
		p.Entries = Entries{b.Entries.Start[lo : hi+1], b.Entries.Index, b.Entries.Value}
	} else {
		p.X = b.X[lo*b.Cols : hi*b.Cols]
	}
	return p
}

// sparseTable appends rows to e, and writes their class numbers to y.
type sparseTable interface {
	fillSparse(e *Entries, y []int32, rows []int32)
}

// takeSparse takes the entries from a table that stores entries. From other tables it takes all values but the zeros.
func (b *Batch) takeSparse(t Table, rows []int32) {
	e := &b.Entries
	e.Start, e.Index, e.Value = append(e.Start[:0], 0), e.Index[:0], e.Value[:0]
	if s, ok := whole(t).(sparseTable); ok {
		s.fillSparse(e, b.Y, rows)
		return
	}
	if b.row == nil {
		b.row = make([]float32, b.Cols)
	}
	for i, r := range rows {
		t.Fill(b.row, b.Y[i:i+1], []int32{r})
		for j, v := range b.row {
			if v != 0 {
				e.Index, e.Value = append(e.Index, int32(j)), append(e.Value, v)
			}
		}
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}

func (t *sparse) fillSparse(e *Entries, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.y[r]
		lo, hi := t.start[r], t.start[r+1]
		e.Index = append(e.Index, t.index[lo:hi]...)
		e.Value = append(e.Value, t.value[lo:hi]...)
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}
