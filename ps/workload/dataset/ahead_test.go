package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fluentps/ps/workload/dataset/pack"
)

// coldPack is a pack that is not in memory: 64 MiB, of rows of 8 KiB.
func coldPack(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cold.fps")
	set, err := Load(Spec{Set: "generated", Rows: 1 << 13, Classes: 4, Features: 2048, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Pack(f, "test", func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	evict(t, path)
	return path
}

// evict takes the pages of a file out of memory that nobody has mapped.
func evict(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err == nil {
		err = errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Rows that are asked for ahead are those of the next batch, and asking changes no batch.
func TestAheadIsTheNextBatch(t *testing.T) {
	set, err := Load(Spec{Set: packedSet, Path: coldPack(t)})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int32, set.Train.Rows())
	for i := range all {
		all[i] = int32(i)
	}
	const size = 32
	plain, asked := NewSampler(all, size, 1, 0).Within(512), NewSampler(all, size, 1, 0).Within(512)
	batch, other := NewBatch(false, set.Samples(), size), NewBatch(false, set.Samples(), size)
	ahead := NewAhead(512)
	drawn := 0
	for i := range int64(600) { // more than two epochs
		rows := asked.Batch(i, nil)
		if err := errors.Join(batch.Take(set.Train, plain.Batch(i, nil)), other.Take(set.Train, rows)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(batch.X, other.X) || !slices.Equal(batch.Y, other.Y) {
			t.Fatalf("batch %d has changed", i)
		}
		ahead.Next(set.Train, func(rows []int32) []int32 {
			drawn++
			rows = asked.Batch(i+1, rows)
			if want := plain.Batch(i+1, nil); !slices.Equal(rows, want) {
				t.Fatalf("rows %v are asked for, and those of batch %d are %v", rows, i+1, want)
			}
			return rows
		})
	}
	t.Logf("asked %d times", drawn)
}

// Parts that are asked for have the rows, and the whole of blocks that have not been verified.
func TestPagesOfRows(t *testing.T) {
	set, err := Load(Spec{Set: packedSet, Path: coldPack(t)})
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(row int32) (n int) {
		whole(set.Train).(paged).pages([]int32{row}, func(b []byte) { n += len(b) })
		return n
	}
	if n := bytes(100); n != pack.BlockBytes {
		t.Errorf("%d bytes are asked for the first row of a block, want %d", n, pack.BlockBytes)
	}
	x, y := make([]float32, 2048), make([]int32, 1)
	set.Train.Fill(x, y, []int32{100})
	if n := bytes(100); n != 4*2048 {
		t.Errorf("%d bytes are asked for a row of a block that has been verified, want %d", n, 4*2048)
	}
}

// BenchmarkColdRows gathers batches of a pack of which nothing is in memory, with 2 ms of computing between two.
func BenchmarkColdRows(b *testing.B) {
	path := coldPack(b)
	for _, asks := range []bool{false, true} {
		b.Run(fmt.Sprintf("ahead=%v", asks), func(b *testing.B) {
			var took time.Duration
			const size = 64
			batches := 0
			for range b.N {
				evict(b, path)
				f, _, err := openPack(path)
				if err != nil {
					b.Fatal(err)
				}
				table, err := f.Table("train", pack.Kind{Cols: 2048, Classes: 4})
				if err != nil {
					b.Fatal(err)
				}
				f.Scattered()
				rows := packedRows{table}
				all := make([]int32, rows.Rows())
				for i := range all {
					all[i] = int32(i)
				}
				s, batch, ahead := NewSampler(all, size, 1, 0), NewBatch(false, Samples{Cols: 2048, Classes: 4}, size), NewAhead(0)
				for i := range int64(len(all) / size) {
					start := time.Now()
					if err := batch.Take(rows, s.Batch(i, nil)); err != nil {
						b.Fatal(err)
					}
					if asks {
						ahead.Next(rows, func(rows []int32) []int32 { return s.Batch(i+1, rows) })
					}
					took += time.Since(start)
					batches++
					time.Sleep(2 * time.Millisecond)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(took.Microseconds())/float64(batches), "us/batch")
		})
	}
}
