// Package parquet reads the rows of files of Parquet whose columns are flat: numbers, truth values and texts. The library
// github.com/parquet-go/parquet-go decodes them; this package sees to it that a damaged or hostile file is an error, and takes no more
// memory than its pages may have.
//
//	f, err := parquet.Open(file, size)
//	err = f.Each(skip, func(b *parquet.Batch) error { ... })
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// File is an open file.
type File struct {
	Columns []Column
	Rows    int64

	in      io.ReaderAt
	file    *parquet.File
	scratch unpacking
}

// Column is a column of a file.
type Column struct {
	Name string
	// Refused says why the column cannot be read; empty: it can. A column that is left out is not read.
	Refused string

	how      reading
	optional bool    // values may be missing
	at       int     // among the leaves of the schema
	div      float64 // of decimals
}

// IsText says whether the values are texts.
func (c *Column) IsText() bool { return c.how == asText }

// reading is how the values of a column are read.
type reading uint8

const (
	asNumber reading = iota
	asUnsigned
	asHalf
	asText
)

// Bounds of a file: what is more is refused before memory is taken for it.
const (
	footerMost = 64 << 20
	// pageMost is the most bytes of an unpacked page, and valuesMost the most values: writers make pages of about 1 MiB.
	pageMost, valuesMost = 256 << 20, 16 << 20
	columnsMost          = 1 << 16
)

// Open reads the footer of a file.
func Open(in io.ReaderAt, size int64) (f *File, err error) {
	defer recovered(&err)
	if err := checkFooter(in, size); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	f = &File{in: in, file: file, Rows: file.NumRows()}
	if f.Rows < 0 || f.Rows > math.MaxInt32 {
		return nil, fmt.Errorf("%d rows, at most %d", f.Rows, math.MaxInt32)
	}
	sum, at := int64(0), 0
	for _, g := range file.RowGroups() {
		if g.NumRows() < 0 {
			return nil, fmt.Errorf("a group of %d rows", g.NumRows())
		}
		sum += g.NumRows()
	}
	if sum != f.Rows {
		return nil, fmt.Errorf("the footer says %d rows, and its groups have %d", f.Rows, sum)
	}
	schema := leavesOf(file.Metadata().Schema)
	for _, c := range file.Root().Columns() {
		if len(f.Columns) == columnsMost {
			return nil, fmt.Errorf("more than %d columns", columnsMost)
		}
		f.Columns = append(f.Columns, columnOf(c, schema[at], at))
		at += leaves(c)
	}
	return f, nil
}

// checkFooter fails if the file does not end as it must.
func checkFooter(in io.ReaderAt, size int64) error {
	const least = 12
	if size < least {
		return fmt.Errorf("it has %d bytes, fewer than any file of Parquet", size)
	}
	var head, tail [8]byte
	if _, err := in.ReadAt(head[:4], 0); err != nil {
		return err
	}
	if _, err := in.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	footer := int64(binary.LittleEndian.Uint32(tail[:]))
	switch magic := string(tail[4:]); {
	case magic == "PARE" || string(head[:4]) == "PARE":
		return errors.New("it is encrypted; write it without a key")
	case string(head[:4]) != "PAR1":
		return fmt.Errorf("it begins with %q, and Parquet with PAR1; text is data.set: csv", head[:4])
	case magic != "PAR1":
		return fmt.Errorf("it ends with %q, and Parquet with PAR1: it was cut short, or its writing has not ended", tail[4:])
	case footer > size-least || footer > footerMost:
		return fmt.Errorf("its footer says to have %d bytes, of a file of %d; at most %d", footer, size, footerMost)
	}
	b := make([]byte, footer)
	if _, err := in.ReadAt(b, size-8-footer); err != nil {
		return err
	}
	if err := (&walker{b: b}).structure(0); err != nil {
		return fmt.Errorf("its footer is damaged: %w", err)
	}
	return nil
}

// recovered makes an error of a panic of the library: it is the file that is wrong.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it is damaged: %v", p)
	}
}

func leaves(c *parquet.Column) (n int) {
	if c.Leaf() {
		return 1
	}
	for _, below := range c.Columns() {
		n += leaves(below)
	}
	return n
}

// leavesOf are the elements of a schema that have values, in order.
func leavesOf(schema []format.SchemaElement) (all []*format.SchemaElement) {
	for i := range schema {
		if schema[i].Type.Valid {
			all = append(all, &schema[i])
		}
	}
	return all
}

// columnOf says how a column is read, of which e is the element.
func columnOf(c *parquet.Column, e *format.SchemaElement, at int) Column {
	out := Column{Name: c.Name(), at: at, div: 1, optional: c.Optional()}
	if !c.Leaf() || c.Repeated() {
		out.Refused = "has lists or groups of values"
		return out
	}
	kind, converted := e.Type.V, deprecated.ConvertedType(-1)
	if e.ConvertedType.Valid {
		converted = e.ConvertedType.V
	}
	logical := e.LogicalType.Value
	decimal := func(scale int32) {
		if out.div = math.Pow10(int(scale)); kind != format.Int32 && kind != format.Int64 {
			out.Refused = "has decimals as bytes"
		}
	}
	switch t := logical.(type) {
	case *format.DateType, *format.TimeType, *format.TimestampType:
		out.Refused = "has times"
	case *format.DecimalType:
		decimal(t.Scale)
	case *format.IntType:
		if !t.IsSigned {
			out.how = asUnsigned
		}
	case nil:
		switch converted {
		case deprecated.Date, deprecated.TimeMillis, deprecated.TimeMicros, deprecated.TimestampMillis, deprecated.TimestampMicros,
			deprecated.Interval:
			out.Refused = "has times"
		case deprecated.Decimal:
			decimal(e.Scale.V)
		case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
			out.how = asUnsigned
		}
	}
	_, isHalf := logical.(*format.Float16Type)
	switch {
	case out.Refused != "":
	case kind == format.Boolean, kind == format.Int32, kind == format.Int64, kind == format.Float, kind == format.Double:
	case kind == format.FixedLenByteArray && isHalf && e.TypeLength.V == 2:
		out.how = asHalf
	case kind == format.ByteArray && isText(logical):
		out.how = asText
	case logical != nil:
		out.Refused = "has values of the kind " + strings.ToLower(logical.String())
	default:
		out.Refused = "has values of the kind " + strings.ToLower(kind.String())
	}
	return out
}

// isText says whether bytes of this kind are texts. Without a kind they are, in the files of old writers.
func isText(logical format.LogicalTypeValue) bool {
	switch logical.(type) {
	case nil, *format.StringType, *format.EnumType, *format.JsonType:
		return true
	}
	return false
}
