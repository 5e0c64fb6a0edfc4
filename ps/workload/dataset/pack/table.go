package pack

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/mapped"
)

// Kind says what the rows of a pack are.
type Kind struct {
	Cols    int
	Classes int            // labels are 0 to Classes-1
	Targets bool           // labels are numbers to predict
	Matrix  [2]int         // rows are a row and a column of a matrix of this size, and a value, without a label; 0, 0: they are not
	GroupBy string         // the column whose groups section train/group has; empty: none
	Values  [][256]float32 // of rows of bytes: for each channel, or for all, the value of each byte; nil: rows are float32, or entries
}

func (k *Kind) isRatings() bool { return k.Matrix != [2]int{} }

// Table is a table of a pack. Rows are bytes, float32, or entries.
type Table struct {
	file  *File
	count int
	cols  int
	sizes [2]int
	y     []int32 // classes, or the bits of targets; none of ratings

	groupBy string
	group   []int32 // of each row; none if no column groups the rows

	x      *Section  // bytes or float32
	floats []float32 // x, if it has them
	values [][256]float32
	plane  int // values of a channel, or all of a row

	start        []int64 // of the entries of each row, and of one more
	index, value *Section

	fault atomic.Pointer[error]
}

// Table opens the sections of a part, train or test, and verifies those of the labels.
func (f *File) Table(part string, k Kind) (t *Table, err error) {
	t = &Table{file: f, cols: k.Cols, sizes: k.Matrix, values: k.Values, plane: k.Cols / max(1, len(k.Values))}
	section := func(name, typ string, dims int) *Section {
		s, failed := f.Section(part+"/"+name, typ, dims)
		if err == nil {
			err = failed
		}
		return s
	}
	rows := int64(-1)
	if start, none := f.Section(part+"/start", "i8", 1); none == nil && !k.isRatings() {
		t.index, t.value = section("index", "i4", 1), section("value", "f4", 1)
		if err == nil {
			err = t.checkStart(start)
		}
		rows = start.Shape[0] - 1
	} else {
		typ := "f4"
		if k.Values != nil {
			typ = "u1"
		}
		if t.x = section("x", typ, 2); err == nil {
			if rows = t.x.Shape[0]; t.x.Shape[1] != int64(k.Cols) {
				err = fmt.Errorf("%s: rows of %s have %d values, and the set %d: pack the set again", f.Path, part, t.x.Shape[1], k.Cols)
			}
			if typ == "f4" {
				t.floats = Of[float32](t.x)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if rows < 0 || rows > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d rows, at most %d", f.Path, rows, math.MaxInt32)
	}
	t.count = int(rows)
	if k.GroupBy != "" && part == "train" {
		group := section("group", "i4", 1)
		if err == nil {
			t.groupBy, err = k.GroupBy, t.readGroups(group)
		}
		if err != nil {
			return nil, err
		}
	}
	if k.isRatings() {
		return t, nil
	}
	typ := "i4"
	if k.Targets {
		typ = "f4"
	}
	y := section("y", typ, 1)
	switch {
	case err != nil:
		return nil, err
	case y.Shape[0] != rows:
		return nil, fmt.Errorf("%s: %d rows of %s, and %d labels: pack the set again", f.Path, rows, part, y.Shape[0])
	}
	if err := y.All(); err != nil {
		return nil, err
	}
	return t, t.checkLabels(y, k.Classes)
}

// readGroups reads the groups of rows, into memory as labels.
func (t *Table) readGroups(s *Section) (err error) {
	if err := s.All(); err != nil {
		return err
	}
	defer mapped.Guarding(&err)()
	group := slices.Clone(Of[int32](s))
	if t.group = group; len(group) != t.count || slices.ContainsFunc(group, func(g int32) bool { return g < 0 || int(g) >= t.count }) {
		return fmt.Errorf("%s: its groups do not fit its %d rows: pack the set again", t.file.Path, t.count)
	}
	return nil
}

func (t *Table) checkLabels(y *Section, classes int) (err error) {
	defer mapped.Guarding(&err)()
	if y.Type == "f4" {
		for i, v := range Of[float32](y) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("%s: target %d is %v: pack the set again", t.file.Path, i, v)
			}
		}
		t.y = slices.Clone(Of[int32](y)) // the same bits
		return nil
	}
	// in memory, because labels are also read where nobody looks for faults of the file
	t.y = slices.Clone(Of[int32](y))
	for i, v := range t.y {
		if v < 0 || int(v) >= classes {
			return fmt.Errorf("%s: row %d has class %d of %d: pack the set again", t.file.Path, i, v, classes)
		}
	}
	return nil
}

// checkStart verifies where the entries of rows begin.
func (t *Table) checkStart(s *Section) (err error) {
	if err := s.All(); err != nil {
		return err
	}
	defer mapped.Guarding(&err)()
	t.start = Of[int64](s)
	n := t.index.Shape[0]
	if len(t.start) < 1 || t.start[0] != 0 || t.start[len(t.start)-1] != n || t.value.Shape[0] != n {
		return fmt.Errorf("%s: %d entries, which do not fit the beginnings of the rows: pack the set again", t.file.Path, n)
	}
	for i := 1; i < len(t.start); i++ {
		if t.start[i] < t.start[i-1] || t.start[i] > n || t.start[i]-t.start[i-1] > int64(t.cols) {
			return fmt.Errorf("%s: the entries of row %d begin at %d and end at %d: pack the set again", t.file.Path, i-1, t.start[i-1], t.start[i])
		}
	}
	return nil
}

func (t *Table) Rows() int { return t.count }
func (t *Table) Cols() int { return t.cols }

// Label is the class of a row, or the bits of its target.
func (t *Table) Label(row int) int32 { return t.y[row] }

// Labels are those of all rows.
func (t *Table) Labels() []int32 { return t.y }

// Mapped is how many bytes of the file the rows are.
func (t *Table) Mapped() int64 {
	if t.x != nil {
		return t.x.Bytes
	}
	return 2*4*int64(len(t.start)) + t.index.Bytes + t.value.Bytes
}

// ByteValues are the values of bytes; nil: rows are no bytes.
func (t *Table) ByteValues() [][256]float32 { return t.values }

// Raw are the bytes of a row.
func (t *Table) Raw(row int) (bytes []byte) {
	n := int64(t.cols)
	bytes = make([]byte, n)
	err := mapped.Guard(func() {
		if err := t.x.Check(int64(row)*n, int64(row+1)*n); err != nil {
			t.fail(err)
			return
		}
		copy(bytes, t.x.Raw()[int64(row)*n:])
	})
	if err != nil {
		t.fail(fmt.Errorf("%s: %w", t.file.Path, err))
	}
	return bytes
}

// Failure is why some row could not be read; nil: all could.
func (t *Table) Failure() error {
	if err := t.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// fail notes the first reason why rows cannot be read. What a batch then has is used by nobody.
func (t *Table) fail(err error) {
	err = fmt.Errorf("data: %w", err)
	t.fault.CompareAndSwap(nil, &err)
}

// Fill gathers rows: values into x (len(rows) x Cols, row-major), class numbers into y, or the bits of targets.
func (t *Table) Fill(x []float32, y []int32, rows []int32) {
	err := mapped.Guard(func() {
		for i, r := range rows {
			if y[i] = 0; t.y != nil {
				y[i] = t.y[r]
			}
			if err := t.row(x[i*t.cols:(i+1)*t.cols], int64(r)); err != nil {
				t.fail(err)
				return
			}
		}
	})
	if err != nil {
		t.fail(fmt.Errorf("%s: %w", t.file.Path, err))
	}
}

// row writes the values of a row.
func (t *Table) row(x []float32, r int64) error {
	n := int64(t.cols)
	switch {
	case t.start != nil:
		clear(x)
		return t.entries(r, func(column int32, value float32) { x[column] = value })
	case t.floats != nil:
		if err := t.x.Check(4*r*n, 4*(r+1)*n); err != nil {
			return err
		}
		copy(x, t.floats[r*n:(r+1)*n])
		for i, most := range t.sizes {
			if most > 0 && !(x[i] >= 0 && x[i] < float32(most)) {
				return fmt.Errorf("%s: row %d is of place %v in a matrix of %v: pack the set again", t.file.Path, r, x[:2], t.sizes)
			}
		}
		return nil
	}
	if err := t.x.Check(r*n, (r+1)*n); err != nil {
		return err
	}
	images.Values(x, t.x.Raw()[r*n:(r+1)*n], t.values, t.plane)
	return nil
}

// entries calls put for the entries of a row.
func (t *Table) entries(r int64, put func(column int32, value float32)) error {
	lo, hi := t.start[r], t.start[r+1]
	if err := t.index.Check(4*lo, 4*hi); err != nil {
		return err
	}
	if err := t.value.Check(4*lo, 4*hi); err != nil {
		return err
	}
	index, value := Of[int32](t.index)[lo:hi], Of[float32](t.value)[lo:hi]
	for k, column := range index {
		if column < 0 || int(column) >= t.cols {
			return fmt.Errorf("%s: row %d has an entry in column %d of %d: pack the set again", t.file.Path, r, column, t.cols)
		}
		put(column, value[k])
	}
	return nil
}

// Entries calls start for each row, and put for its entries: those of a sparse row, or the values that are not 0.
func (t *Table) Entries(rows []int32, start func(label int32), put func(column int32, value float32)) {
	at := 0
	err := mapped.Guard(func() {
		var x []float32
		for _, r := range rows {
			start(t.y[r])
			at++
			var err error
			if t.start != nil {
				err = t.entries(int64(r), put)
			} else {
				if x == nil {
					x = make([]float32, t.cols)
				}
				err = t.row(x, int64(r))
				for j, v := range x {
					if v != 0 {
						put(int32(j), v)
					}
				}
			}
			if err != nil {
				t.fail(err)
			}
		}
	})
	if err != nil {
		t.fail(fmt.Errorf("%s: %w", t.file.Path, err))
		for ; at < len(rows); at++ {
			start(0)
		}
	}
}

// Pages calls part for the parts of the file that have these rows.
func (t *Table) Pages(rows []int32, part func(b []byte)) {
	for _, r := range rows {
		switch n := int64(t.cols); {
		case t.start != nil:
			lo, hi := 4*t.start[r], 4*t.start[r+1]
			part(t.index.span(lo, hi))
			part(t.value.span(lo, hi))
		case t.floats != nil:
			part(t.x.span(4*int64(r)*n, 4*int64(r+1)*n))
		default:
			part(t.x.span(int64(r)*n, int64(r+1)*n))
		}
	}
}

// Bytes is the memory of the labels and the groups.
func (t *Table) Bytes() int64 { return 4 * int64(len(t.y)+len(t.group)) }

// Group is the number of the group of each row, and the column that groups them; none: no column does.
func (t *Table) Group() (group []int32, by string) { return t.group, t.groupBy }

// IsSparse says whether the rows are entries.
func (t *Table) IsSparse() bool { return t.start != nil }

// Verify reads the whole file, and compares it with its checksums.
func (t *Table) Verify() error { return t.file.Verify() }
