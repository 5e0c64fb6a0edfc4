package parquet

import (
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

// checkPages walks over the pages of a column of a group before they are decoded: the library takes memory for what a page says to be, and
// for what comes out of it.
func (f *File) checkPages(group, column int, rows int64) error {
	groups := f.file.Metadata().RowGroups
	if column >= len(groups[group].Columns) {
		return errors.New("the group lacks the column")
	}
	m := &groups[group].Columns[column].MetaData
	if m.Codec == format.Lz4Raw {
		return errors.New("it is packed with LZ4; write the file with compression snappy or zstd")
	}
	start := m.DataPageOffset
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset < start {
		start = m.DictionaryPageOffset
	}
	if start < 4 || start > f.file.Size() || m.TotalCompressedSize < 0 || m.TotalCompressedSize > f.file.Size()-start || m.NumValues != rows {
		return fmt.Errorf("it says to have %d values in %d bytes at %d, of %d rows and a file of %d bytes", m.NumValues, m.TotalCompressedSize,
			start, rows, f.file.Size())
	}
	left := m.TotalCompressedSize
	for at := start; left > 0; {
		h, err := headerAt(io.NewSectionReader(f.in, at, left))
		if err != nil {
			return fmt.Errorf("the header of a page: %w", err)
		}
		if h.packed < 0 || h.size+h.packed > left {
			return fmt.Errorf("a page says to have %d bytes, of %d that are left", h.packed, left-h.size)
		}
		if err := h.check(io.NewSectionReader(f.in, at+h.size, h.packed), m.Codec, rows); err != nil {
			return err
		}
		at, left = at+h.size+h.packed, left-h.size-h.packed
	}
	return nil
}

// header is what the header of a page says.
type header struct {
	size             int64 // of the header itself, in bytes
	unpacked, packed int64 // bytes of the page
	values           int64
	levels           int64 // bytes of a page of version 2 that are not packed
	isBare           bool  // nothing of it is packed
	isDictionary     bool
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

// take takes a field of PageHeader (parquet.thrift of the format, [C]).
func (h *header) take(path []int16, v int64) {
	of := func(fields ...int16) bool { return slices.Equal(path, fields) }
	switch {
	case of(1):
		h.isDictionary = v == int64(format.DictionaryPage)
	case of(2):
		h.unpacked = v
	case of(3):
		h.packed = v
	case of(5, 1), of(7, 1), of(8, 1):
		h.values = v
	case of(8, 5), of(8, 6):
		if h.levels += v; v < 0 {
			h.levels = math.MinInt32
		}
	case of(8, 7):
		h.isBare = v == 0
	}
}

// check fails for a page that is larger than it says, or too large.
func (h *header) check(body io.Reader, codec format.CompressionCodec, rows int64) error {
	switch {
	case h.unpacked < 0 || h.unpacked > pageMost:
		return fmt.Errorf("a page says to have %d bytes unpacked, at most %d", h.unpacked, pageMost)
	case h.values < 0 || h.values > valuesMost || !h.isDictionary && h.values > rows:
		return fmt.Errorf("a page says to have %d values, of a group of %d rows; at most %d", h.values, rows, valuesMost)
	case h.levels < 0 || h.levels > min(h.unpacked, h.packed):
		return fmt.Errorf("a page says that %d of its %d bytes are levels", h.levels, h.unpacked)
	case h.isBare || h.packed == h.levels:
		return nil
	}
	if _, err := io.CopyN(io.Discard, body, h.levels); err != nil {
		return err
	}
	return unpacksTo(codec, body, h.unpacked-h.levels)
}

// unpacksTo fails if a page unpacks to more than so many bytes.
func unpacksTo(codec format.CompressionCodec, body io.Reader, most int64) (err error) {
	unpacked := io.Reader(nil)
	switch codec {
	case format.Snappy:
		head := make([]byte, 10)
		n, _ := io.ReadFull(body, head) // a short page is wrong in any case
		if size, err := s2.DecodedLen(head[:n]); err != nil || int64(size) > most {
			return fmt.Errorf("a page packed with snappy has %d bytes unpacked, and says %d", size, most)
		}
		return nil
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
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("a page: %w", err)
	}
	n, err := io.CopyN(io.Discard, unpacked, most+1)
	switch {
	case n > most:
		return fmt.Errorf("a page unpacks to more than the %d bytes that it says", most)
	case err != io.EOF:
		return fmt.Errorf("a page: %w", err)
	}
	return nil
}
