package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// pageMemory is what a column of a group takes while it is read: its largest page and its dictionary, unpacked.
type pageMemory struct{ page, dictionary int64 }

// checkPages walks over the pages of a column of a group before they are decoded: the library takes memory for what a page says to be, and
// for what comes out of it.
func (f *File) checkPages(group int, c *Column, rows int64) (m pageMemory, err error) {
	groups := f.file.Metadata().RowGroups
	if c.at >= len(groups[group].Columns) {
		return m, errors.New("the group lacks the column")
	}
	d := &groups[group].Columns[c.at].MetaData
	switch d.Codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
	case format.Lz4Raw, format.Lz4:
		return m, errors.New("it is packed with LZ4; write the file with compression snappy or zstd")
	default:
		return m, fmt.Errorf("it is packed with %v; write the file with compression snappy or zstd", d.Codec)
	}
	start := d.DataPageOffset
	if d.DictionaryPageOffset != 0 { // the library begins there
		if start = d.DictionaryPageOffset; start >= d.DataPageOffset {
			return m, fmt.Errorf("its dictionary is at %d, behind its first page at %d", start, d.DataPageOffset)
		}
	}
	if start < 4 || start > f.file.Size() || d.TotalCompressedSize < 0 || d.TotalCompressedSize > f.file.Size()-start || d.NumValues != rows {
		return m, fmt.Errorf("it says to have %d values in %d bytes at %d, of %d rows and a file of %d bytes", d.NumValues, d.TotalCompressedSize,
			start, rows, f.file.Size())
	}
	left := d.TotalCompressedSize
	for at := start; left > 0; {
		h, err := headerAt(io.NewSectionReader(f.in, at, left))
		if err != nil {
			return m, fmt.Errorf("the header of a page: %w", err)
		}
		if h.packed < 0 || h.size+h.packed > left {
			return m, fmt.Errorf("a page says to have %d bytes, of %d that are left", h.packed, left-h.size)
		}
		if err := h.check(io.NewSectionReader(f.in, at+h.size, h.packed), &f.scratch, d.Codec, rows, c.optional); err != nil {
			return m, err
		}
		if h.isDictionary {
			m.dictionary = max(m.dictionary, 2*h.unpacked) // its bytes, and where each value begins
		} else {
			m.page = max(m.page, h.unpacked+levelBytes*h.values)
		}
		at, left = at+h.size+h.packed, left-h.size-h.packed
	}
	return m, nil
}

// levelBytes is what a value takes beside its bytes: its level, its index in a dictionary or its place.
const levelBytes = 9

// header is what the header of a page says.
type header struct {
	size             int64 // of the header itself, in bytes
	unpacked, packed int64 // bytes of the page
	values           int64
	encoding         int64
	levels           int64 // bytes of a page of version 2 that are not packed
	isBare           bool  // nothing of it is packed
	isDictionary     bool
	isV2             bool
	kind             int64 // format.PageType
	fields           [][]int16
	twice            bool // a field is there twice
}

// headerAt reads the header of a page, which is short but for the statistics in it.
func headerAt(in io.ReaderAt) (h header, err error) {
	for most := 1 << 9; most <= headerMost; most <<= 3 {
		b := make([]byte, most)
		n, failed := in.ReadAt(b, 0)
		if failed != nil && failed != io.EOF {
			return h, failed
		}
		h = header{}
		w := walker{b: b[:n], seen: h.take}
		if err = w.structure(0); !errors.Is(err, errShort) || failed == io.EOF {
			h.size = int64(w.at)
			return h, err
		}
	}
	return h, err
}

const headerMost = 1 << 24

// take takes a field of PageHeader (parquet.thrift of the format, [C]). The structures that the library looks at for a type of page are
// looked at, and no others.
func (h *header) take(path []int16, v int64) {
	of := func(fields ...int16) bool { return slices.Equal(path, fields) }
	if len(path) <= 2 {
		h.twice = h.twice || slices.ContainsFunc(h.fields, func(seen []int16) bool { return slices.Equal(seen, path) })
		h.fields = append(h.fields, slices.Clone(path))
	}
	switch {
	case of(1):
		h.kind = v
		h.isDictionary, h.isV2 = v == int64(format.DictionaryPage), v == int64(format.DataPageV2)
	case of(2):
		h.unpacked = v
	case of(3):
		h.packed = v
	case h.is(format.DataPage, 5, path, 1), h.is(format.DictionaryPage, 7, path, 1), h.is(format.DataPageV2, 8, path, 1):
		h.values = v
	case h.is(format.DataPage, 5, path, 2), h.is(format.DictionaryPage, 7, path, 2), h.is(format.DataPageV2, 8, path, 4):
		h.encoding = v
	case h.is(format.DataPageV2, 8, path, 5), h.is(format.DataPageV2, 8, path, 6):
		if h.levels += v; v < 0 {
			h.levels = math.MinInt32
		}
	case h.is(format.DataPageV2, 8, path, 7):
		h.isBare = v == 0
	}
}

// is says whether path is a field of the structure of a type of page, and the page of that type.
func (h *header) is(kind format.PageType, structure int16, path []int16, field int16) bool {
	return h.kind == int64(kind) && len(path) == 2 && path[0] == structure && path[1] == field
}

// check fails for a page that is larger than it says, or too large.
func (h *header) check(body io.Reader, b *unpacking, codec format.CompressionCodec, rows int64, optional bool) error {
	switch {
	case h.kind != int64(format.DataPage) && h.kind != int64(format.DataPageV2) && !h.isDictionary:
		return fmt.Errorf("a page of the type %d, which is not read", h.kind)
	case h.twice || len(h.fields) == 0 || h.fields[0][0] != 1:
		return errors.New("a header of a page has a field twice, or its type is not the first")
	case h.unpacked < 0 || h.unpacked > pageMost:
		return fmt.Errorf("a page says to have %d bytes unpacked, at most %d", h.unpacked, pageMost)
	case h.values < 0 || h.values > valuesMost || !h.isDictionary && h.values > rows:
		return fmt.Errorf("a page says to have %d values, of a group of %d rows; at most %d", h.values, rows, valuesMost)
	case h.levels < 0 || h.levels > min(h.unpacked, h.packed):
		return fmt.Errorf("a page says that %d of its %d bytes are levels", h.levels, h.unpacked)
	}
	b.Reset()
	if _, err := io.CopyN(&b.Buffer, body, h.levels); err != nil {
		return err
	}
	if h.isBare {
		codec = format.Uncompressed
	}
	if h.packed > h.levels {
		if err := unpack(b, codec, body, h.unpacked-h.levels); err != nil {
			return err
		}
	}
	return payload{b.Bytes(), uint64(h.values)}.check(h, optional)
}

// unpacking is memory for unpacked pages, one after the other.
type unpacking struct {
	bytes.Buffer
	packed, plain []byte // of snappy
}

// unpack appends a page to b. It fails if that is more than so many bytes.
func unpack(b *unpacking, codec format.CompressionCodec, body io.Reader, most int64) (err error) {
	unpacked := body
	switch codec {
	case format.Snappy:
		into := bytes.NewBuffer(b.packed[:0])
		if _, err := into.ReadFrom(body); err != nil {
			return err
		}
		packed := into.Bytes()
		b.packed = packed
		if size, err := s2.DecodedLen(packed); err != nil || int64(size) > most {
			return fmt.Errorf("a page packed with snappy has %d bytes unpacked, and says %d", size, most)
		}
		if b.plain, err = s2.Decode(b.plain[:cap(b.plain)], packed); err != nil {
			return fmt.Errorf("a page: %w", err)
		}
		unpacked = bytes.NewReader(b.plain)
	case format.Gzip:
		unpacked, err = gzip.NewReader(body)
	case format.Zstd:
		var d *zstd.Decoder
		if d, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(pageMost)); err == nil {
			defer d.Close()
			unpacked = d
		}
	case format.Brotli:
		unpacked = brotli.NewReader(body)
	}
	if err != nil {
		return fmt.Errorf("a page: %w", err)
	}
	n, err := io.CopyN(&b.Buffer, unpacked, most+1)
	switch {
	case n > most:
		return fmt.Errorf("a page unpacks to more than the %d bytes that it says", most)
	case err != io.EOF:
		return fmt.Errorf("a page: %w", err)
	}
	return nil
}
