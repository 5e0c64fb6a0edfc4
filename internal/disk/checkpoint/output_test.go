package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/disk/durable"
)

// On every way to the disk, the file has the bytes that were written, in order: with pieces of any length, and with chunks that the disk
// accepts or refuses.
func TestAnOutputHasWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	for name, open := range map[string]func(*os.File) output{
		"cached":             func(f *os.File) output { return &cached{f: f} },
		"chunks, page cache": func(f *os.File) output { return newDirect(f, 2*chunkAlign) },
		"chunks, past it":    func(f *os.File) output { setDirect(f); return newDirect(f, 2*chunkAlign) },
		"chunks too short":   func(f *os.File) output { setDirect(f); return newDirect(f, 1000) },
		// the disk accepts the first block of a chunk but not the rest, which is not a full block
		"chunks too long": func(f *os.File) output { setDirect(f); return newDirect(f, chunkAlign+1000) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := make([]byte,
					rapid.OneOf(rapid.IntRange(0, 5*chunkAlign),
						rapid.Map(rapid.IntRange(0, 3), func(n int) int { return 2 * n * chunkAlign })).Draw(t, "bytes"))
				for i := range want {
					want[i] = byte(i ^ i>>8)
				}
				path := filepath.Join(dir, "a.bin")
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				o := open(f)
				for rest := want; len(rest) > 0; {
					n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
					piece := bytes.Clone(rest[:n])
					o.write(piece)
					clear(piece) // the caller may reuse it
					rest = rest[n:]
				}
				if err := o.end(); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes are in the file, %v; want the %d that were written", len(got), err, len(want))
				}
			})
		})
	}
}

// Only a long file bypasses the page cache, and only on file systems where that is faster.
func TestLongFilesGoPastThePageCache(t *testing.T) {
	dir := t.TempDir()
	create := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	past := setDirect(create("asked"))
	t.Log("the file system of", dir, "writes past the page cache:", past)
	for _, bytes := range []int64{directMin - 1, directMin} {
		o := newOutput(create(fmt.Sprint(bytes)), bytes)
		if _, is := o.(*direct); is != (past && bytes >= directMin) {
			t.Errorf("%d bytes, on a file system that writes past the page cache: %t: got %T", bytes, past, o)
		}
		if err := o.end(); err != nil {
			t.Error(err)
		}
	}
}

// end returns the error of any failed write, and nothing blocks for ever.
func TestAnOutputEndsWithItsError(t *testing.T) {
	for name, open := range map[string]func(*os.File) output{
		"cached": func(f *os.File) output { return &cached{f: f} },
		"chunks": func(f *os.File) output { return newDirect(f, chunkAlign) },
	} {
		for _, n := range []int{1, chunkAlign, 10 * chunkAlign} {
			f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip("no /dev/full on this system")
			}
			o := open(f)
			for range 3 {
				o.write(make([]byte, n))
			}
			if err := o.end(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s, 3 times %d bytes: %v, want ENOSPC", name, n, err)
			}
			if err := f.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s: the file was left open", name)
			}
		}
	}
}

// A file that is long enough to bypass the page cache reads back as it was written.
func TestALongFileIsReadAsItWasWritten(t *testing.T) {
	v := make([]float32, directMin/4+chunkBytes/16+7)
	for i := range v {
		v[i] = float32(i)
	}
	dir := t.TempDir()
	e, err := WriteFile(durable.Below(dir), "a.bin", "state", v[:100], v, v[1:])
	if err != nil {
		t.Fatal(err)
	}
	var state string
	got, err := ReadFile(dir, e, &state)
	if err != nil || state != "state" || len(got) != 3 {
		t.Fatalf("%d vectors, state %q: %v", len(got), state, err)
	}
	for i, want := range [][]float32{v[:100], v, v[1:]} {
		if !slices.Equal(got[i], want) {
			t.Errorf("vector %d came back changed", i)
		}
	}
}
