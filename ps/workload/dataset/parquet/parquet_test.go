package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"
)

// memoryMax is what reading may take in these tests.
const memoryMax = 16 << 20

var errMemory = errors.New("no memory")

// all are the values of a file, as texts.
func all(file []byte, skip ...string) (names []string, rows [][]string, err error) {
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, nil, err
	}
	left := make([]bool, len(f.Columns))
	for i, c := range f.Columns {
		names = append(names, c.Name)
		for _, name := range skip {
			left[i] = left[i] || name == c.Name
		}
		if c.Refused != "" && !left[i] {
			return nil, nil, fmt.Errorf("%s %s", c.Name, c.Refused)
		}
	}
	taken, most := int64(0), int64(0)
	err = f.Each(left, func(bytes int64) error {
		if taken += bytes; taken > memoryMax {
			return errMemory
		}
		most = max(most, taken)
		return nil
	}, func(b *Batch) error {
		for i := range b.N {
			row := make([]string, len(f.Columns))
			for k, values := range b.Values {
				if values != nil {
					row[k] = values[i].String()
				}
			}
			rows = append(rows, row)
		}
		return nil
	})
	if taken != 0 && !errors.Is(err, errMemory) || most == 0 && err == nil && f.Rows > 0 {
		err = errors.Join(err, fmt.Errorf("%d bytes are not given back, of at most %d", taken, most))
	}
	if err == nil && int64(len(rows)) != f.Rows {
		err = fmt.Errorf("%d rows, want %d", len(rows), f.Rows)
	}
	return names, rows, err
}

// Files that Apache Arrow's writer made (tests/accept/arrow) have the values of the table that it wrote as text.
func TestFilesOfArrow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "table.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/*.parquet")
	if len(files) != 3 {
		t.Fatalf("%d files of Parquet, want 3", len(files))
	}
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names, rows, err := all(file)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if strings.Join(names, ",") != strings.Join(want[0], ",") || len(rows) != len(want)-1 {
			t.Fatalf("%s: %d rows of %v", path, len(rows), names)
		}
		for r, row := range rows {
			for c, got := range row {
				a, errA := strconv.ParseFloat(got, 64)
				b, errB := strconv.ParseFloat(want[r+1][c], 64)
				if got != want[r+1][c] && (errA != nil || errB != nil || a != b) {
					t.Errorf("%s: row %d, column %s is %q, want %q", path, r+1, names[c], got, want[r+1][c])
				}
			}
		}
	}
}

type times struct {
	A float64  `parquet:"a"`
	T int64    `parquet:"t,timestamp"`
	L []int32  `parquet:"l"`
	U [16]byte `parquet:"u,uuid"`
	N *float64 `parquet:"n,optional"`
	Y string   `parquet:"y"`
	P *struct{ Q int32 }
}

func written[T any](t testing.TB, rows []T, o ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, o...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Columns of other kinds are refused by name, and left out by name. NaN is a missing value.
func TestOtherColumns(t *testing.T) {
	nan := math.NaN()
	file := written(t, []times{{A: 1, L: []int32{1, 2}, Y: "x"}, {A: -2.5, N: &nan, Y: "y"}})
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{}
	for _, c := range f.Columns {
		refused[c.Name] = c.Refused
	}
	for name, want := range map[string]string{"a": "", "t": "has times", "l": "has lists or groups of values",
		"u": "has values of the kind uuid",
		"n": "", "y": "", "P": "has lists or groups of values"} {
		if refused[name] != want {
			t.Errorf("column %s: %q, want %q", name, refused[name], want)
		}
	}
	_, rows, err := all(file, "t", "l", "u", "P")
	if err != nil || fmt.Sprint(rows) != "[[1     x ] [-2.5     y ]]" {
		t.Errorf("%q, %v", rows, err)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	file := written(t, []struct{ A, B int32 }{{1, 2}, {3, 4}})
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(file)) }
	for want, b := range map[string][]byte{
		"fewer than any file":     []byte("PAR1PAR1"),
		"it begins with \"xAR1\"": change(func(b []byte) []byte { b[0] = 'x'; return b }),
		"it was cut short":        file[:len(file)-3],
		"it is encrypted":         change(func(b []byte) []byte { copy(b[len(b)-4:], "PARE"); return b }),
		"its footer says to have 4294967295 bytes": change(func(b []byte) []byte {
			copy(b[len(b)-8:], "\xff\xff\xff\xff")
			return b
		}),
	} {
		if _, _, err := all(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, _, err := all(written(t, []struct{ A int32 }{{1}}, parquet.Compression(&parquet.Lz4Raw)))
	if err == nil || !strings.Contains(err.Error(), "packed with LZ4; write the file with compression snappy or zstd") {
		t.Errorf("LZ4: %v", err)
	}
}

// A page that unpacks to more than it says is refused, however it is packed, before the library unpacks it.
func TestBombs(t *testing.T) {
	const size = 1 << 20
	zeros := make([]byte, size)
	var zipped, brotlied, zstded bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(zeros)
	_ = z.Close()
	b := brotli.NewWriter(&brotlied)
	_, _ = b.Write(zeros)
	_ = b.Close()
	e, err := zstd.NewWriter(&zstded)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = e.Write(zeros)
	_ = e.Close()
	for codec, packed := range map[format.CompressionCodec][]byte{format.Gzip: zipped.Bytes(), format.Brotli: brotlied.Bytes(),
		format.Zstd: zstded.Bytes(), format.Snappy: s2.EncodeSnappy(nil, zeros)} {
		var b unpacking
		if err := unpack(&b, codec, bytes.NewReader(packed), size); err != nil || b.Len() != size {
			t.Errorf("%v: a page of its size is refused, or is of %d bytes: %v", codec, b.Len(), err)
		}
		if err := unpack(&b, codec, bytes.NewReader(packed), size-1); err == nil {
			t.Errorf("%v: a page that unpacks to a byte more is taken", codec)
		}
	}
	types := [][]int16{{1}}
	for want, h := range map[string]header{"bytes unpacked, at most": {unpacked: pageMost + 1}, "-1 bytes": {unpacked: -1},
		"values, of a group of 7": {values: 8}, "-2 values": {values: -2}, "-5 of its 9 bytes are levels": {unpacked: 9, packed: 9, levels: -5},
		"8 of its 7 bytes": {unpacked: 7, packed: 9, levels: 8}, "the type 1, which": {kind: 1}, "a field twice": {twice: true}} {
		h.fields = types
		if err := h.check(bytes.NewReader(nil), &unpacking{}, format.Uncompressed, 7, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Counts in a page that are more than its values are refused, in each encoding that has counts, and those of real pages are not.
func TestCountsInPages(t *testing.T) {
	varint := func(all ...uint64) (b []byte) {
		for _, v := range all {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	dictionary := func(b []byte) []byte { return append([]byte{3}, b...) }
	for name, c := range map[string]struct {
		e    format.Encoding
		b    []byte
		good bool
	}{
		"a run":                     {format.RLEDictionary, dictionary(append(varint(10<<1), 1)), true},
		"a long run":                {format.RLEDictionary, dictionary(append(varint(1<<31), 1)), false},
		"many runs":                 {format.RLEDictionary, dictionary(bytes.Repeat(append(varint(9<<1), 1), 3)), false},
		"a group":                   {format.RLEDictionary, dictionary(append(varint(2<<1|1), 1, 2, 3, 4, 5, 6)), true},
		"many groups":               {format.RLEDictionary, dictionary(varint(1<<30 | 1)), false},
		"wide indices":              {format.RLEDictionary, []byte{33}, false},
		"differences":               {format.DeltaBinaryPacked, append(varint(128, 4, 10, 0, 0), 0, 0, 0, 0), true},
		"many differences":          {format.DeltaBinaryPacked, varint(128, 4, 1<<31, 0), false},
		"large blocks":              {format.DeltaBinaryPacked, varint(1<<30, 4, 10, 0), false},
		"many parts":                {format.DeltaBinaryPacked, varint(128, 1<<20, 10, 0), false},
		"lengths":                   {format.DeltaLengthByteArray, varint(128, 4, 1<<31, 0), false},
		"prefixes":                  {format.DeltaByteArray, append(varint(128, 4, 1, 0), varint(128, 4, 1<<31, 0)...), false},
		"truth values":              {format.RLE, append([]byte{2, 0, 0, 0}, varint(1<<31)...), false},
		"an encoding of the future": {format.Encoding(77), nil, false},
		"plain":                     {format.Plain, make([]byte, 80), true},
	} {
		if err := (payload{c.b, 10}).encoded(c.e); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A column whose dictionary lies behind its first page is refused: the library would read other pages than were checked.
func TestADictionaryBehindThePages(t *testing.T) {
	file := written(t, []struct {
		A string `parquet:"a,dict"`
	}{{"x"}, {"y"}})
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	m := &f.file.Metadata().RowGroups[0].Columns[0].MetaData
	m.DictionaryPageOffset, m.DataPageOffset = m.DataPageOffset, m.DictionaryPageOffset
	if _, err := f.checkPages(0, &f.Columns[0], 2); err == nil || !strings.Contains(err.Error(), "its dictionary is at") {
		t.Errorf("%v", err)
	}
}

// A file whose pages take more memory than there is is refused before they are read.
func TestPagesAreCounted(t *testing.T) {
	rows := make([]struct{ A, B, C, D string }, 3)
	for i := range rows {
		long := strings.Repeat("x", 3<<20)
		rows[i] = struct{ A, B, C, D string }{long, long, long, long}
	}
	if _, _, err := all(written(t, rows, parquet.Compression(&parquet.Zstd))); !errors.Is(err, errMemory) {
		t.Errorf("%v", err)
	}
}

// Headers are read as the library reads them, and a structure that says to be longer than its bytes is refused.
func TestHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := format.PageHeader{Type: format.PageType(rapid.SampledFrom([]int32{0, 2, 3}).Draw(t, "type")),
			UncompressedPageSize: rapid.Int32().Draw(t, "unpacked"), CompressedPageSize: rapid.Int32().Draw(t, "packed"),
			CRC: rapid.Int32().Draw(t, "crc")}
		values, levels := rapid.Int32Min(0).Draw(t, "values"), rapid.Int32Range(0, 100).Draw(t, "levels")
		encoding := format.Encoding(rapid.Int32Range(0, 9).Draw(t, "encoding"))
		want := header{unpacked: int64(p.UncompressedPageSize), packed: int64(p.CompressedPageSize), values: int64(values),
			isDictionary: p.Type == format.DictionaryPage, isV2: p.Type == format.DataPageV2, kind: int64(p.Type), encoding: int64(encoding)}
		switch p.Type {
		case format.DataPage:
			v1 := &p.DataPageHeader.V
			p.DataPageHeader.Valid, v1.NumValues, v1.Encoding = true, values, encoding
			v1.Statistics.MaxValue = make([]byte, rapid.IntRange(0, 3000).Draw(t, "statistics"))
			p.DataPageHeaderV2.Valid, p.DataPageHeaderV2.V.NumValues = rapid.Bool().Draw(t, "another header"), 1 // which nobody looks at
			p.DataPageHeaderV2.V.IsCompressed = thrift.New(false)
		case format.DictionaryPage:
			p.DictionaryPageHeader.Valid, p.DictionaryPageHeader.V.NumValues, p.DictionaryPageHeader.V.Encoding = true, values, encoding
		default:
			v2 := &p.DataPageHeaderV2.V
			p.DataPageHeaderV2.Valid, v2.NumValues, v2.RepetitionLevelsByteLength, v2.DefinitionLevelsByteLength = true, values, 1, levels
			want.isBare, want.levels = rapid.Bool().Draw(t, "bare"), int64(levels)+1
			v2.IsCompressed, v2.Encoding = thrift.New(!want.isBare), encoding
		}
		b, err := thrift.Marshal(new(thrift.CompactProtocol), &p)
		if err != nil {
			t.Fatal(err)
		}
		want.size = int64(len(b))
		got, err := headerAt(bytes.NewReader(append(b, 1, 2, 3)))
		if got.fields = nil; err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		if _, err := headerAt(bytes.NewReader(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")])); err == nil {
			t.Fatal("a header that was cut short is taken")
		}
	})
	for name, b := range map[string]string{"a list of 2^40": "\x19\xfc\x80\x80\x80\x80\x80\x20",
		"a text of 2^40": "\x18\x80\x80\x80\x80\x80\x20", "a map of 2^40": "\x1b\x80\x80\x80\x80\x80\x20\x11",
		"structures": strings.Repeat("\x1c", 1000), "lists": strings.Repeat("\x19\x19", 1000), "a kind": "\x1f",
		"empty structures": "\x19\xfc\x80\x80\x40" + strings.Repeat("\x00", 1<<20) + "\x00"} {
		if err := (&walker{b: []byte(b)}).structure(0); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Changed files are errors or files, and never more than that: no panic, and no rows that the footer does not have.
func TestChangedFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	refused := 0
	const n = 1500
	files, _ := filepath.Glob("testdata/*.parquet")
	for i := range n {
		file, err := os.ReadFile(files[i%len(files)])
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(3) {
			switch at := r.IntN(len(file)); r.IntN(3) {
			case 0:
				file[at] ^= 1 << r.IntN(8)
			case 1:
				file[at] = byte(r.UintN(256))
			default:
				to := min(len(file), at+1+r.IntN(40))
				file = append(file[:at:at], file[to:]...)
			}
		}
		if _, _, err := all(file); err != nil {
			refused++
		}
	}
	if refused < n/4 {
		t.Errorf("only %d of %d changed files were refused", refused, n)
	}
}
