package dataset

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"fluentps/ps/workload/dataset/files"
)

// The memory that a set reports is the growth of the heap when it is loaded, for all readers.
func TestASetSaysWhatItHolds(t *testing.T) {
	pixels := make([]byte, 3000*28*28)
	for i := range pixels {
		pixels[i] = byte(i * 7)
	}
	var comma, sparse, rated strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		for range 40 {
			fmt.Fprintf(&comma, "%d,", r.IntN(17))
		}
		fmt.Fprintln(&comma, i%10)
		fmt.Fprint(&sparse, i%2)
		for j := range 30 {
			fmt.Fprintf(&sparse, " %d:%d", 1+j*4, r.IntN(9))
		}
		fmt.Fprintf(&sparse, "\n")
		for j := range 20 {
			fmt.Fprintf(&rated, "%d,%d,%d\n", i%900, j, r.IntN(5))
		}
	}
	dir := write(t, map[string]string{
		"train-images-idx3-ubyte.gz": idx(0x803, []uint32{3000, 28, 28}, pixels...),
		"train-labels-idx1-ubyte":    idx(0x801, []uint32{3000}, make([]byte, 3000)...),
		"t10k-images-idx3-ubyte":     idx(0x803, []uint32{1, 28, 28}, pixels[:784]...), "t10k-labels-idx1-ubyte": idx(0x801, []uint32{1}, 1),
		"a.csv": comma.String(), "a.libsvm": sparse.String(), "a.ratings": rated.String(),
	})
	cifar := map[string]string{"test_batch.bin": cifarRecordOf(0, 1)}
	for i := 1; i <= 5; i++ {
		cifar[fmt.Sprintf("data_batch_%d.bin", i)] = strings.Repeat(cifarRecordOf(1, 7), 300)
	}
	batches := write(t, cifar)
	for _, s := range []Spec{
		{Set: "idx", Path: dir},
		{Set: "idx", Path: dir, Rows: 10}, // hidden rows are in memory, too
		{Set: "cifar10", Path: batches},
		{Set: "csv", Path: dir + "/a.csv", Test: dir + "/a.csv"},
		{Set: "libsvm", Path: dir + "/a.libsvm", Test: dir + "/a.libsvm"},
		{Set: "ratings", Path: dir + "/a.ratings", Test: dir + "/a.ratings", Center: true},
		{Set: "generated", Rows: 100, TestRows: 10, Features: 5000, Classes: 100},
		{Set: "generated_sparse", Rows: 100, TestRows: 10, Features: 500000, Nonzeros: 5},
		{Set: "generated_ratings", Rows: 100, TestRows: 10, Matrix: Matrix{20000, 30000}, Rank: 10},
	} {
		before := heap()
		set, err := Load(s)
		if err != nil {
			t.Fatal(err)
		}
		grown, says := heap()-before, set.Bytes()
		if slack := says/50 + 1<<17; says < 1<<20 || grown < says-slack || grown > says+slack {
			t.Errorf("%s: it reports %d bytes, but the heap grew by %d", s.Set, says, grown)
		}
		runtime.KeepAlive(set)
	}
}

// heap is the size of the live heap in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second collection sweeps the garbage that the first one found
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// While a file is read, the heap holds at most what the set says: the rows and what they have outgrown, whatever waits for the collector.
func TestReadingTakesWhatItSays(t *testing.T) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", i%3, i, i%5, 2, 3, i%7, 4, 5, i, 8, i%11, 3, 1, 0, 9, i%2)
	}
	dir := write(t, map[string]string{"a.csv": text.String()})
	text.Reset()
	debug.FreeOSMemory()
	before := heap()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, int64(m.HeapAlloc)-before)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // as in a run
	set, err := Load(Spec{Set: "csv", Path: dir + "/a.csv"})
	close(stop)
	most := <-peak
	if err != nil {
		t.Fatal(err)
	}
	says := set.Bytes() + set.ReadBytes()
	if slack := int64(files.SweepMin + 2<<20); most > says+says/4+slack || most < says*7/10 || set.ReadBytes() == 0 {
		t.Errorf("the heap grew by up to %d bytes, the set says %d and %d while it was read", most, set.Bytes(), set.ReadBytes())
	}
	runtime.KeepAlive(set)
}

// The numbers of a worker's rows take what the ledger counts: what is kept on the heap, and nothing more while a large share is dealt.
func TestRowNumbersTakeWhatTheySay(t *testing.T) {
	const rows, workers = 3 << 20, 3
	for _, scheme := range PartitionNames() {
		before := allocated()
		share, err := Partition(scheme, rows, workers, 1, 5)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSampler(share, 10, 5, 1)
		took, says := allocated()-before, PartitionBytes(scheme, rows, workers)
		if took > says.Kept+1<<16 || took < says.Kept-1<<16 {
			t.Errorf("%s: the heap took %d bytes, want %d", scheme, took, says.Kept)
		}
		if (says.Dealing > 0) != (scheme == "disjoint_random") {
			t.Errorf("%s: %d bytes while rows are dealt", scheme, says.Dealing)
		}
		runtime.KeepAlive(s)
	}
	before := allocated()
	share := Deal([]int{1 << 20, 2 << 20}, 1, 5, 0)
	if took := allocated() - before; took > 4*int64(len(share))+1<<16 {
		t.Errorf("the heap took %d bytes for a share of %d rows", took, len(share))
	}
}

// allocated is how many bytes were ever taken from the heap.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}
