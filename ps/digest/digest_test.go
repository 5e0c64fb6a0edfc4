package digest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"encoding/binary"

	"pgregory.net/rapid"
)

type file struct {
	bytes.Buffer
	closed bool
}

func (f *file) Close() error { f.closed = true; return nil }

// What Note writes is what Parse reads: of every so many versions the CRC-32C of the little-endian values, the last line of a key. A torn last line is left
// out.
func TestDigestsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.Int64Range(1, 4).Draw(t, "every")
		f := &file{}
		l := New(f, every)
		want := map[Key]uint32{}
		for range rapid.IntRange(0, 20).Draw(t, "notes") {
			key := Key{rapid.Int64Range(0, 9).Draw(t, "version"), rapid.Int32Range(0, 3).Draw(t, "shard")}
			values := rapid.SliceOf(rapid.Float32()).Draw(t, "values")
			l.Note(key.Version, key.Shard, values)
			if key.Version%every == 0 {
				var b []byte
				for _, v := range values {
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
				}
				want[key] = crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
			}
		}
		if err := l.Close(); err != nil || !f.closed {
			t.Fatal(err, f.closed)
		}
		f.WriteString("123")
		got := map[Key]uint32{}
		if err := Parse(got, f.Bytes()); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

type full struct{ file }

func (*full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAFullDiskIsToldAtTheEnd(t *testing.T) {
	l := New(&full{}, 1)
	for k := range int64(1 << 14) {
		l.Note(k, 0, nil)
	}
	if err := l.Close(); err == nil || err.Error() != "disk full" {
		t.Errorf("error %v", err)
	}
	var none *Log
	none.Note(1, 1, nil)
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"1,2\n":          "line 1 has 2 fields, want version,shard,crc32c",
		"1,2,f\nx,2,f\n": `line 2: version: strconv.ParseInt: parsing "x": invalid syntax`,
		"1,x,f\n":        `line 1: shard: strconv.ParseInt: parsing "x": invalid syntax`,
		"1,2,g\n":        `line 1: crc32c: strconv.ParseUint: parsing "g": invalid syntax`,
	} {
		if err := Parse(map[Key]uint32{}, []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
