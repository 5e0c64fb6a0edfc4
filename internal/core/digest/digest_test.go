package digest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"encoding/binary"

	"pgregory.net/rapid"
)

type file struct {
	bytes.Buffer
	closed bool
}

func (f *file) Close() error { f.closed = true; return nil }

// What Note writes is what Parse reads: of every so many versions the CRC-32C of the little-endian values, the last
// line of a key. A torn last line is left out.
func TestDigestsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.Int64Range(1, 4).Draw(t, "every")
		f := &file{}
		l := New(f, every, func() {})
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
		if err := Parse(got, f, LinesMax); err != nil {
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
	l := New(&full{}, 1, func() {})
	l.Note(1, 0, nil)
	if err := l.Close(); err == nil || err.Error() != "disk full" {
		t.Errorf("error %v", err)
	}
	var none *Log
	none.Note(1, 1, nil)
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

// hung is a file system that does not answer until it is let go.
type hung struct {
	file
	begun, letGo chan struct{}
}

func (h *hung) Write(b []byte) (int, error) {
	h.begun <- struct{}{}
	<-h.letGo
	return h.file.Write(b)
}

// A file system that does not answer holds up neither the training nor its end. What does not fit into memory meanwhile is counted.
func TestAHungFileSystemStopsNothing(t *testing.T) {
	h := &hung{begun: make(chan struct{}), letGo: make(chan struct{})}
	l := New(h, 1, func() {})
	l.room = 1 << 12
	l.Note(0, 0, nil)
	<-h.begun
	const many = 1 << 10
	for k := range int64(many) {
		l.Note(k, 0, nil)
	}
	if n := int64(len(l.pending)); n > int64(l.room) || n < int64(l.room)/2 || l.lost == 0 {
		t.Fatalf("%d bytes wait, %d lines are lost", n, l.lost)
	}
	lost := l.lost
	err := l.closeWithin(1)
	if err == nil || !strings.Contains(err.Error(), "has not written the last lines within 1ns") ||
		!strings.Contains(err.Error(), fmt.Sprintf("too slow for %d lines", lost)) {
		t.Fatal(err)
	}
	close(h.letGo)
	<-h.begun // the rest
	if err := <-l.ended; err != nil || !h.closed {
		t.Fatal(err, h.closed)
	}
	got := map[Key]uint32{}
	if err := Parse(got, h, LinesMax); err != nil || int64(len(got)) != many-lost {
		t.Errorf("%d versions, want %d: %v", len(got), many-lost, err)
	}
}

// Lines are in the file while the run trains: a kill takes those of the last second.
func TestLinesAreWrittenWhileTheRunTrains(t *testing.T) {
	h := &hung{begun: make(chan struct{}), letGo: make(chan struct{})}
	close(h.letGo)
	l := New(h, 1, func() {})
	l.Note(7, 3, nil)
	<-h.begun
	l.mu.Lock()
	waiting := len(l.pending)
	l.mu.Unlock()
	if err := l.Close(); err != nil || waiting > 0 || h.String() != "7,3,0\n" {
		t.Errorf("%q, %d bytes waited: %v", h.String(), waiting, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"1,2\n":                           "line 1 has 2 fields, want version,shard,crc32c",
		"1,2,f\nx,2,f\n":                  `line 2: version: strconv.ParseInt: parsing "x": invalid syntax`,
		"1,x,f\n":                         `line 1: shard: strconv.ParseInt: parsing "x": invalid syntax`,
		"1,2,g\n":                         `line 1: crc32c: strconv.ParseUint: parsing "g": invalid syntax`,
		strings.Repeat("1", 65) + "\n":    "line 1 is longer than 64 characters",
		strings.Repeat("1", 1<<17) + "\n": "line 1 is longer than 64 characters",
		"1,1,1\n1,1,2\n2,1,1\n3,1,1\n":    "line 4: there are more than 2 checksums; keep fewer with a larger metrics.digests",
	} {
		if err := Parse(map[Key]uint32{}, strings.NewReader(text), 2); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
