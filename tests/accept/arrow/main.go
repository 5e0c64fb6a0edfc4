// Command arrow writes files of Parquet with Apache Arrow's own writer for Go, and the same rows as CSV: of every codec, version of pages
// and type that the readers take, and of types that they refuse. It is a module of its own, so that nobody else needs Arrow.
//
//	arrow FOLDER ROWS
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: arrow FOLDER ROWS")
		os.Exit(2)
	}
	rows, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = all(os.Args[1], rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "arrow:", err)
		os.Exit(1)
	}
}

// fields are the columns that are read.
var fields = []arrow.Field{
	{Name: "i8", Type: arrow.PrimitiveTypes.Int8}, {Name: "i16", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
	{Name: "i32", Type: arrow.PrimitiveTypes.Int32}, {Name: "i64", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "u8", Type: arrow.PrimitiveTypes.Uint8}, {Name: "u16", Type: arrow.PrimitiveTypes.Uint16},
	{Name: "u32", Type: arrow.PrimitiveTypes.Uint32}, {Name: "u64", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "half", Type: arrow.FixedWidthTypes.Float16}, {Name: "single", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "double", Type: arrow.PrimitiveTypes.Float64}, {Name: "truth", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "price", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}},
	{Name: "city", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "kind", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}},
	{Name: "buys", Type: arrow.BinaryTypes.String},
}

// table makes a record, and its rows as CSV.
func table(rows int) (arrow.Record, string) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for i, f := range fields {
		text.WriteString(map[bool]string{true: ",", false: ""}[i > 0] + f.Name)
	}
	text.WriteByte('\n')
	for range rows {
		for i, f := range fields {
			if i > 0 {
				text.WriteByte(',')
			}
			if f.Nullable && r.IntN(10) == 0 {
				b.Field(i).AppendNull()
				continue
			}
			text.WriteString(value(b.Field(i), f.Name, r))
		}
		text.WriteByte('\n')
	}
	return b.NewRecord(), text.String()
}

// value appends a value, and returns it as text.
func value(b array.Builder, name string, r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	switch b := b.(type) {
	case *array.Int8Builder:
		v := int8(r.IntN(256) - 128)
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Int16Builder:
		v := int16(r.IntN(1<<16) - 1<<15)
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Int32Builder:
		v := int32(r.Uint32())
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Int64Builder:
		v := int64(r.Uint64() >> r.IntN(64))
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Uint8Builder:
		v := uint8(r.IntN(256))
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Uint16Builder:
		v := uint16(r.IntN(1 << 16))
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Uint32Builder:
		v := r.Uint32()
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Uint64Builder:
		v := r.Uint64() >> r.IntN(64)
		b.Append(v)
		return fmt.Sprint(v)
	case *array.Float16Builder:
		v := float16.New(float32(r.NormFloat64()))
		b.Append(v)
		return strconv.FormatFloat(float64(v.Float32()), 'g', -1, 32)
	case *array.Float32Builder:
		v := float32(r.NormFloat64())
		b.Append(v)
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case *array.Float64Builder:
		v := r.NormFloat64() * 1e3
		b.Append(v)
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *array.BooleanBuilder:
		v := r.IntN(2)
		b.Append(v == 1)
		return fmt.Sprint(v)
	case *array.Decimal128Builder:
		v := int64(r.IntN(200000) - 100000)
		b.Append(decimal128.FromI64(v))
		return strconv.FormatFloat(float64(v)/100, 'f', 2, 64)
	case *array.BinaryDictionaryBuilder:
		v := pick("a", "b", "ü, quoted")
		must(b.AppendString(v))
		return `"` + v + `"`
	case *array.StringBuilder:
		v := pick("Rome", "Oslo", "São Paulo")
		if name == "buys" {
			v = pick("yes", "no")
		}
		b.Append(v)
		return v
	}
	panic(fmt.Sprintf("no value for %T", b))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func all(folder string, rows int) error {
	record, text := table(rows)
	if err := os.WriteFile(filepath.Join(folder, "table.csv"), []byte(text), 0o644); err != nil {
		return err
	}
	codecs := map[string]compress.Compression{"plain": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy,
		"gzip": compress.Codecs.Gzip, "zstd": compress.Codecs.Zstd, "brotli": compress.Codecs.Brotli, "lz4": compress.Codecs.Lz4Raw}
	for name, codec := range codecs {
		for page, version := range map[string]parquet.DataPageVersion{"1": parquet.DataPageV1, "2": parquet.DataPageV2} {
			for coded, dictionary := range map[string]bool{"dict": true, "bare": false} {
				p := parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithDataPageVersion(version),
					parquet.WithDictionaryDefault(dictionary), parquet.WithMaxRowGroupLength(int64(rows/2+1)), parquet.WithDataPageSize(1<<10),
					parquet.WithStoreDecimalAsInteger(true))
				if err := write(filepath.Join(folder, name+"-"+page+"-"+coded+".parquet"), record, p); err != nil {
					return err
				}
			}
		}
	}
	return refused(folder)
}

func write(path string, record arrow.Record, p *parquet.WriterProperties) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := pqarrow.NewFileWriter(record.Schema(), f, p, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	if err := w.Write(record); err != nil {
		return err
	}
	return w.Close()
}

// refused writes files with a column each that is not read.
func refused(folder string) error {
	for name, t := range map[string]arrow.DataType{
		"date": arrow.FixedWidthTypes.Date32, "time": arrow.FixedWidthTypes.Timestamp_us, "list": arrow.ListOf(arrow.PrimitiveTypes.Int32),
		"group": arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}), "wide": &arrow.Decimal128Type{Precision: 30, Scale: 2},
		"fixed": &arrow.FixedSizeBinaryType{ByteWidth: 5},
	} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64},
			{Name: "odd", Type: t, Nullable: true}, {Name: "y", Type: arrow.PrimitiveTypes.Int32}}, nil))
		for i := range 6 {
			b.Field(0).(*array.Float64Builder).Append(float64(i))
			b.Field(1).AppendNull()
			b.Field(2).(*array.Int32Builder).Append(int32(i % 2))
		}
		if err := write(filepath.Join(folder, "refused-"+name+".parquet"), b.NewRecord(), parquet.NewWriterProperties()); err != nil {
			return err
		}
	}
	return nil
}
