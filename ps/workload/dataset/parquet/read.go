package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"fluentps/ps/workload/dataset/numpy"
)

// Batch is some rows, one after the other in the file.
type Batch struct {
	Row    int64 // the number of the first one, from 0
	N      int
	Values [][]Value // by column of the file, N values each; nil: it is left out
}

// Value is a value of a row. It is valid until the next batch.
type Value struct {
	Number float64
	Bytes  []byte // of a text
	kind   valueKind
	whole  int64 // if the value is a whole number of the file
}

type valueKind uint8

const (
	isNull valueKind = iota
	isNumber
	isWhole
	isBytes
	isSingle   // a number of 32 bits or fewer
	isUnsigned // whole has its bits, and it is above all signed ones
)

// Missing says whether the file has no value there; a number that is NaN is one.
func (v *Value) Missing() bool { return v.kind == isNull }

// IsText says whether the value is a text.
func (v *Value) IsText() bool { return v.kind == isBytes }

// Short is the number as a text would have it: the shortest decimal that is this float32, if the file has one.
func (v *Value) Short() float64 {
	if v.kind != isSingle {
		return v.Number
	}
	n, _ := strconv.ParseFloat(strconv.FormatFloat(v.Number, 'g', -1, 32), 64) // which it has written itself
	return n
}

// String is the value as text; of a missing one it is empty.
func (v *Value) String() string {
	switch v.kind {
	case isBytes:
		return string(v.Bytes)
	case isWhole:
		return strconv.FormatInt(v.whole, 10)
	case isUnsigned:
		return strconv.FormatUint(uint64(v.whole), 10)
	case isSingle:
		return strconv.FormatFloat(v.Number, 'g', -1, 32)
	case isNumber:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	}
	return ""
}

// BatchRows is the most rows of a batch.
const BatchRows = 1024

// Each calls use for all rows, in order. Columns that skip names are not read; all others must be readable. take is asked for the bytes
// that reading takes, and for less than none where they are given back.
func (f *File) Each(skip []bool, take func(bytes int64) error, use func(b *Batch) error) (err error) {
	var failed error // of use
	err = f.each(skip, take, func(b *Batch) error {
		failed = use(b)
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

func (f *File) each(skip []bool, take func(bytes int64) error, use func(b *Batch) error) (err error) {
	defer recovered(&err)
	kept, rows := 0, min(BatchRows, f.Rows)
	for _, s := range skip {
		if !s {
			kept++
		}
	}
	values := int64(kept) * rows * int64(unsafe.Sizeof(Value{})+unsafe.Sizeof(parquet.Value{}))
	if err := take(values); err != nil {
		return err
	}
	defer func() { _ = take(-values) }()
	b := &Batch{Values: make([][]Value, len(f.Columns))}
	for k, group := range f.file.RowGroups() {
		if err := f.groupOf(b, k, group, skip, take, use); err != nil {
			return err
		}
	}
	return nil
}

// groupOf checks a group of rows, and reads it.
func (f *File) groupOf(b *Batch, k int, group parquet.RowGroup, skip []bool, take func(bytes int64) error, use func(b *Batch) error) error {
	chunks, pages := make([]*chunk, len(f.Columns)), int64(0)
	for i := range f.Columns {
		c := &f.Columns[i]
		if skip[i] {
			continue
		}
		m, err := f.checkPages(k, c, group.NumRows())
		if err != nil {
			return fmt.Errorf("column %q of group %d of rows: %w", c.Name, k+1, err)
		}
		pages += 2*m.page + m.dictionary // a batch may need the end of one page and the beginning of the next
		chunks[i] = &chunk{Column: c, raw: make([]parquet.Value, min(BatchRows, f.Rows))}
	}
	if err := take(pages); err != nil {
		return err
	}
	defer func() { _ = take(-pages) }()
	for i, c := range chunks {
		if c != nil {
			c.pages = group.ColumnChunks()[f.Columns[i].at].Pages()
			defer c.close()
		}
	}
	return f.group(b, group.NumRows(), chunks, use)
}

// group reads a group of rows.
func (f *File) group(b *Batch, rows int64, chunks []*chunk, use func(b *Batch) error) error {
	for done := int64(0); done < rows; done += int64(b.N) {
		b.N = int(min(BatchRows, rows-done))
		for i, c := range chunks {
			if c == nil {
				continue
			}
			if cap(b.Values[i]) == 0 {
				b.Values[i] = make([]Value, min(BatchRows, f.Rows))
			}
			b.Values[i] = b.Values[i][:b.N]
			if err := c.read(b.Values[i]); err != nil {
				return fmt.Errorf("column %q, at row %d: %w", c.Name, b.Row+1, err)
			}
		}
		if err := use(b); err != nil {
			return err
		}
		b.Row += int64(b.N)
	}
	return nil
}

// chunk is a column of a group of rows.
type chunk struct {
	*Column
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader // of page
	old    []parquet.Page      // whose texts the batch has
	raw    []parquet.Value
}

func (c *chunk) close() {
	c.free()
	if c.page != nil {
		parquet.Release(c.page)
	}
	_ = c.pages.Close() // it was only read
}

// free gives back the pages of the batch before.
func (c *chunk) free() {
	for _, p := range c.old {
		parquet.Release(p)
	}
	c.old = c.old[:0]
}

// read fills to with the next values.
func (c *chunk) read(to []Value) error {
	c.free()
	for len(to) > 0 {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err == io.EOF {
				return errors.New("it has fewer values than rows")
			}
			if err != nil {
				return err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.raw[:len(to)])
		for i := range n {
			c.take(&c.raw[i], &to[i])
		}
		to = to[n:]
		switch {
		case err == io.EOF:
			c.old, c.page, c.values = append(c.old, c.page), nil, nil
		case err != nil:
			return err
		case n == 0:
			return errors.New("a page ends without its values")
		}
	}
	return nil
}

// take makes a Value of one of the library.
func (c *chunk) take(from *parquet.Value, to *Value) {
	if from.IsNull() {
		to.kind = isNull
		return
	}
	to.kind = isNumber
	switch from.Kind() {
	case parquet.Boolean:
		if to.kind, to.whole = isWhole, 0; from.Boolean() {
			to.whole = 1
		}
	case parquet.Int32:
		to.kind, to.whole = isWhole, int64(from.Int32())
		if c.how == asUnsigned {
			to.whole = int64(from.Uint32())
		}
	case parquet.Int64:
		if to.kind, to.whole = isWhole, from.Int64(); c.how == asUnsigned && to.whole < 0 {
			to.kind, to.Number = isUnsigned, float64(from.Uint64())
		}
	case parquet.Float:
		to.kind, to.Number = isSingle, float64(from.Float())
	case parquet.Double:
		to.Number = from.Double()
	case parquet.ByteArray:
		to.kind, to.Bytes = isBytes, from.ByteArray()
	default: // asHalf, the lower byte first
		to.kind, to.Number = isSingle, float64(numpy.Half(binary.LittleEndian.Uint16(from.ByteArray())))
	}
	if to.kind == isWhole {
		if to.Number = float64(to.whole); c.div != 1 {
			to.kind, to.Number = isNumber, to.Number/c.div
		}
	}
	if (to.kind == isNumber || to.kind == isSingle) && math.IsNaN(to.Number) {
		to.kind = isNull
	}
}
