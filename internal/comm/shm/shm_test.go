package shm

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func allocatedBytes(t *testing.T, f *os.File) (blocks int64, links uint64) {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("no blocks are told on this system")
	}
	return stat.Blocks * 512, uint64(stat.Nlink)
}

// From the beginning a file has its pages and no name, and reads as zeros.
func TestCreateAllocatesAllPages(t *testing.T) {
	const n = 3<<20 + 17
	dir := t.TempDir()
	f, err := Create(dir, n, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if has, links := allocatedBytes(t, f); has < n || links != 0 {
		t.Errorf("%d bytes are allocated, want %d; %d names", has, n, links)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, make([]byte, n)) {
		t.Errorf("%d bytes, %v; want %d zeros", len(got), err, n)
	}
}

// A file without enough space, spare bytes included, allocates nothing, not even for a moment: others use the disk of
// this test, too.
func TestNothingIsAllocatedWithoutSpareSpace(t *testing.T) {
	const n = 1 << 20
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	free, err := freeBytes(f)
	if err != nil {
		t.Fatal(err)
	}
	if free == 1<<62 {
		t.Skip("the free space of this system is not known")
	}
	for _, want := range [][2]int64{{n, free + free/2}, {free + free/2, 0}} {
		if err := Reserve(f, want[0], want[1]); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes and %d spare ones, of %d: %v", want[0], want[1], free, err)
		}
		if has, _ := allocatedBytes(t, f); has > 0 {
			t.Errorf("%d bytes are still allocated", has)
		}
	}
	if f, err := Create(dir, n, free+free/2); !errors.Is(err, syscall.ENOSPC) || f != nil {
		t.Errorf("Create: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Reserved space does not count as length: the length shows how much was written.
func TestReservedSpaceIsNotLength(t *testing.T) {
	const n = 1 << 20
	f, err := os.Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := Reserve(f, n, 0); err != nil {
		t.Fatal(err)
	}
	has, _ := allocatedBytes(t, f)
	info, err := f.Stat()
	if err != nil || info.Size() != 0 || has < n && has > 0 {
		t.Errorf("length %d, %d bytes allocated, %v; want 0 and %d", info.Size(), has, err, n)
	}
}

// Without allocation in advance, writing allocates.
func TestFillWithoutAllocationInAdvance(t *testing.T) {
	for _, n := range []int64{0, 1, 1 << 20, 1<<21 + 5} {
		f, err := os.Create(filepath.Join(t.TempDir(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := fill(f, n); err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != n {
			t.Errorf("%d bytes, %v; want %d", info.Size(), err, n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		if err := fill(full, 1); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
		_ = full.Close()
	}
}
