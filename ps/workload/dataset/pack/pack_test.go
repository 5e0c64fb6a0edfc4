package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// made writes a pack of sections of bytes.
func made(t interface{ Fatal(...any) }, path string, sections [][]byte) string {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sections {
		if err := w.Section(string(rune('a'+i)), "u1", int64(len(s))); err != nil {
			t.Fatal(err)
		}
		for len(s) > 0 { // in pieces of odd lengths
			n := min(len(s), 1+i*70001)
			if _, err := w.Write(s[:n]); err != nil {
				t.Fatal(err)
			}
			s = s[n:]
		}
	}
	sum, err := w.End(map[string]int{"answer": 42}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// What is written is read, at any length, and what the set is as well.
func TestSectionsComeBack(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		sections := make([][]byte, rapid.IntRange(0, 4).Draw(t, "sections"))
		for i := range sections {
			n := rapid.SampledFrom([]int{0, 1, 4095, 4096, BlockBytes - 1, BlockBytes, BlockBytes + 1, 3*BlockBytes + 17}).Draw(t, "bytes")
			if i == 0 {
				n %= 5000 // which is written byte by byte
			}
			sections[i] = make([]byte, n)
			for k := range sections[i] {
				sections[i][k] = byte(r.Uint32())
			}
		}
		path := filepath.Join(dir, "p.fps")
		sum := made(t, path, sections)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.SHA256 != sum || string(f.Set) != `{"answer":42}` || f.Verify() != nil {
			t.Fatalf("sum %s of %s, set %s, %v", f.SHA256, sum, f.Set, f.Verify())
		}
		for i, want := range sections {
			s, err := f.Section(string(rune('a'+i)), "u1", 1)
			if err != nil || !bytes.Equal(s.Raw(), want) || s.Offset%align != 0 {
				t.Fatalf("section %d of %d bytes: %v", i, len(want), err)
			}
		}
		if err := f.file.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A byte that differs anywhere in a section is found when its block is first read, and not before; the other blocks are good. One in the
// index, in the checksums or in the header is found at once.
func TestDamageIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.fps")
	content := make([]byte, 5*BlockBytes/2)
	for i := range content {
		content[i] = byte(i * i >> 3)
	}
	made(t, path, [][]byte{nil, content})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at, n := int(binary.LittleEndian.Uint64(good[8:])), len(good)
	open := func(b []byte) (*File, error) {
		t.Helper()
		damaged := filepath.Join(t.TempDir(), "d.fps")
		if err := os.WriteFile(damaged, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return Open(damaged)
	}
	f, err := open(good)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Section("b", "u1", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []int64{0, 1, BlockBytes - 1, BlockBytes, 2*BlockBytes + 5, s.Bytes - 1} {
		b := bytes.Clone(good)
		b[s.Offset+place] ^= 4
		f, err := open(b)
		if err != nil {
			t.Fatalf("byte %d: %v", place, err)
		}
		s, err := f.Section("b", "u1", 1)
		if err != nil {
			t.Fatal(err)
		}
		for block := range s.blocks() {
			err := s.Check(block*BlockBytes, min(s.Bytes, (block+1)*BlockBytes))
			if isBad := block == place/BlockBytes; (err != nil) != isBad || isBad && !strings.Contains(err.Error(), "of section b, at ") {
				t.Errorf("byte %d, block %d: %v", place, block, err)
			}
		}
		if f.Verify() == nil || s.Check(place, place+1) == nil {
			t.Errorf("byte %d: all blocks are said to be good", place)
		}
	}
	for _, place := range []int{0, 7, 8, 15, 16, 20, 24, 55, at - 1, at - 12, at, at + 9, n - 1} {
		b := bytes.Clone(good)
		b[place] ^= 1
		if _, err := open(b); err == nil {
			t.Errorf("byte %d of the header, the checksums or the index is not missed", place)
		}
	}
	for _, length := range []int{0, 7, 56, 4095, 4096, at, n - 1} {
		if _, err := open(good[:length]); err == nil {
			t.Errorf("%d bytes of %d are a pack", length, n)
		}
	}
	if _, err := open(append(bytes.Clone(good), 0)); err == nil || !strings.Contains(err.Error(), "its index should be at") {
		t.Errorf("a byte behind the index: %v", err)
	}
	for first, want := range map[string]string{"fpspack2": "a pack of format \"2\"", "\x93NUMPY\x01\x00": "it is no pack"} {
		if _, err := open(append([]byte(first), good[8:]...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", first, err)
		}
	}
}

// An index that fits its checksum may still lie: whoever wrote it, nothing panics, and no section lies outside of the file.
func TestIndexesThatLie(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.fps")
	made(t, path, [][]byte{make([]byte, 5000)})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := binary.LittleEndian.Uint64(good[8:])
	for name, change := range map[string]func(x *index){
		"offset":     func(x *index) { x.Sections[0].Offset = 1 << 40 },
		"negative":   func(x *index) { x.Sections[0].Offset = -4096 },
		"in header":  func(x *index) { x.Sections[0].Offset = 0 },
		"not even":   func(x *index) { x.Sections[0].Offset = 4100 },
		"bytes":      func(x *index) { x.Sections[0].Bytes = 5001 },
		"shape":      func(x *index) { x.Sections[0].Shape = []int64{5001} },
		"large":      func(x *index) { x.Sections[0].Shape = []int64{1 << 40, 1 << 40} },
		"overflow":   func(x *index) { x.Sections[0].Shape, x.Sections[0].Bytes = []int64{1 << 62, 4}, 0 },
		"no shape":   func(x *index) { x.Sections[0].Shape = nil },
		"below 0":    func(x *index) { x.Sections[0].Shape, x.Sections[0].Bytes = []int64{-5000, -1}, 5000 },
		"type":       func(x *index) { x.Sections[0].Type = "f8" },
		"twice":      func(x *index) { x.Sections = append(x.Sections, x.Sections[0]) },
		"format":     func(x *index) { x.Format = 2 },
		"blocks":     func(x *index) { x.BlockBytes = 1 },
		"sums":       func(x *index) { x.Sums.Bytes = 8 },
		"sums place": func(x *index) { x.Sums.Offset = -1 },
		"sums sum":   func(x *index) { x.Sums.SHA256 = "00" },
	} {
		var x index
		if err := json.Unmarshal(good[at:], &x); err != nil {
			t.Fatal(err)
		}
		change(&x)
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		b := append(bytes.Clone(good[:at]), text...)
		binary.LittleEndian.PutUint64(b[16:], uint64(len(text)))
		sum := sha256.Sum256(text)
		copy(b[24:], sum[:])
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Numbers are written little-endian, whatever the processor, and sections of other types or dimensions are not those that are asked for.
func TestNumbersOfSections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.fps")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Section("x", "f4", 2, 2); err != nil {
		t.Fatal(err)
	}
	if err := Numbers(w, []float32{1, -2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	if err := w.Section("i", "i8", 2); err != nil {
		t.Fatal(err)
	}
	if err := Numbers(w, []int64{7, 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.End(nil, ""); err != nil {
		t.Fatal(err)
	}
	short, err := NewWriter(f)
	if err == nil {
		err = short.Section("i", "i8", 2)
	}
	if err == nil {
		err = Numbers(short, []int64{7})
	}
	if _, bad := short.End(nil, ""); err != nil || bad == nil || !strings.Contains(bad.Error(), "section i got 8 bytes of 16") {
		t.Errorf("a short section: %v, %v", err, bad)
	}
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.Section("x", "f4", 2)
	if err != nil || !slices.Equal(Of[float32](x), []float32{1, -2, 3, 4}) || !bytes.Equal(x.Raw()[:4], []byte{0, 0, 0x80, 0x3f}) {
		t.Errorf("%v of %v", err, x)
	}
	if i, err := p.Section("i", "i8", 1); err != nil || !slices.Equal(Of[int64](i), []int64{7, 1 << 40}) {
		t.Errorf("%v", err)
	}
	for _, wrong := range []struct {
		name, typ string
		dims      int
	}{{"x", "f4", 1}, {"x", "i4", 2}, {"y", "f4", 1}} {
		if _, err := p.Section(wrong.name, wrong.typ, wrong.dims); err == nil {
			t.Errorf("%+v is there", wrong)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder is a pack")
	}
}
