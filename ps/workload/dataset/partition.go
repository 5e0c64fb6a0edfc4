package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"fluentps/ps/workload/dataset/draw"
)

// The partition schemes of SystemML's paramserv, but with balanced blocks that lose no row. Each returns the rows of one worker. The
// arguments have been checked.
var partitions = []struct {
	name    string
	overlap bool // every worker gets all rows
	rows    func(rows, workers, worker int, seed uint64) []int32
}{
	{"disjoint_contiguous", false, contiguous},
	{"disjoint_round_robin", false, roundRobin},
	{"disjoint_random", false, randomBlock},
	{"overlap_reshuffle", true, reshuffle},
}

// PartitionNames lists the schemes of Partition.
func PartitionNames() []string {
	names := make([]string, len(partitions))
	for i, p := range partitions {
		names[i] = p.name
	}
	return names
}

// Partition returns the rows of a worker, 0 to workers-1. The disjoint schemes give every row to
// exactly one worker, and sizes differ by at most 1:
//
//	disjoint_contiguous   neighbouring rows, order kept
//	disjoint_round_robin  row r goes to worker r mod workers
//	disjoint_random       a block of one permutation, which depends on the seed and is the same for all workers
//	overlap_reshuffle     all rows, in a permutation of (seed, worker)
//
// It fails if a worker would get no row.
func Partition(scheme string, rows, workers, worker int, seed uint64) ([]int32, error) {
	for _, p := range partitions {
		if p.name != scheme {
			continue
		}
		switch {
		case workers < 1 || worker < 0 || worker >= workers:
			return nil, fmt.Errorf("partition %s: worker %d of %d does not exist", scheme, worker, workers)
		case rows < 1 || rows > math.MaxInt32:
			return nil, fmt.Errorf("partition %s: %d rows, must be 1 to %d", scheme, rows, math.MaxInt32)
		case rows < workers && !p.overlap:
			return nil, fmt.Errorf("partition %s: %d rows for %d workers leave some without data; use at most %d workers, "+
				"or overlap_reshuffle", scheme, rows, workers, rows)
		}
		return p.rows(rows, workers, worker, seed), nil
	}
	return nil, fmt.Errorf("partition %q is not known; choose one of: %s", scheme, strings.Join(PartitionNames(), ", "))
}

// block is the range of rows of a worker if the rows are cut as evenly as possible.
func block(rows, workers, worker int) (lo, hi int) {
	return rows * worker / workers, rows * (worker + 1) / workers
}

func contiguous(rows, workers, worker int, _ uint64) []int32 {
	lo, hi := block(rows, workers, worker)
	return ascending(lo, hi, 1)
}

func roundRobin(rows, workers, worker int, _ uint64) []int32 {
	return ascending(worker, rows, workers)
}

func randomBlock(rows, workers, worker int, seed uint64) []int32 {
	lo, hi := block(rows, workers, worker)
	return ofPermutation(rows, lo, hi, rand.NewPCG(seed, partitionStream))
}

func reshuffle(rows, _, worker int, seed uint64) []int32 {
	all := ascending(0, rows, 1)
	shuffle(all, rand.NewPCG(draw.Mix(seed, uint64(worker)), partitionStream))
	return all
}

// Deal returns the rows of a worker whom an assignment gives sizes[worker] of them: a block of one permutation, which
// depends on the seed and on the assignment's number. The sizes add up to the number of rows. Source: DBS deals
// contiguous slices of a seeded shuffle [A].
func Deal(sizes []int, worker int, seed uint64, number int64) []int32 {
	rows, at := 0, 0
	for i, n := range sizes {
		rows += n
		if i < worker {
			at += n
		}
	}
	return ofPermutation(rows, at, at+sizes[worker], rand.NewPCG(draw.Mix(seed, uint64(number)), dealStream))
}

// dealStream separates the draws of Deal from those of Partition.
const dealStream = 0x6465616c

// partitionStream separates the draws of partitions from those of samplers with the same seed.
const partitionStream = 0x7061727469746e

func ascending(lo, hi, step int) []int32 {
	out := make([]int32, 0, (hi-lo+step-1)/step)
	for r := lo; r < hi; r += step {
		out = append(out, int32(r))
	}
	return out
}

// apartMin is the fewest rows whose permutation lies outside of the Go heap: there it goes back to the system at once, and not when the
// collector runs. Ranks of one process make such permutations one after another, so that only one takes memory at a time.
const apartMin = 1 << 20

// apartLock is held while such a permutation exists.
var apartLock sync.Mutex

// ofPermutation returns the elements lo to hi-1 of a permutation of 0 to rows-1.
func ofPermutation(rows, lo, hi int, from *rand.PCG) []int32 {
	if rows >= apartMin {
		apartLock.Lock()
		defer apartLock.Unlock()
		if raw, err := syscall.Mmap(-1, 0, rows*valueBytes, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_ANON|syscall.MAP_PRIVATE); err == nil {
			defer syscall.Munmap(raw) // never fails for a whole mapping
			all := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(raw))), rows)
			for r := range all {
				all[r] = int32(r)
			}
			return part(all, lo, hi, from)
		}
	}
	return part(ascending(0, rows, 1), lo, hi, from)
}

func part(all []int32, lo, hi int, from *rand.PCG) []int32 {
	shuffle(all, from)
	return append(make([]int32, 0, hi-lo), all[lo:hi]...)
}

// RowBytes is the memory of the row numbers of a worker, in bytes: its share, and the share in the order of an epoch. Dealing is what
// finding the share takes for a while in addition.
type RowBytes struct{ Kept, Dealing int64 }

// PartitionBytes is the most that a worker's row numbers take with a scheme of Partition.
func PartitionBytes(scheme string, rows, workers int) RowBytes {
	share := (int64(rows) + int64(workers) - 1) / int64(max(1, workers))
	b := RowBytes{Kept: 2 * valueBytes * share}
	switch scheme {
	case "overlap_reshuffle":
		b.Kept = 2 * valueBytes * int64(rows)
	case "disjoint_random":
		b.Dealing = max(0, valueBytes*(int64(rows)+share)-b.Kept)
	}
	return b
}

// DealBytes is the most that a worker's row numbers take where Deal gives it up to share of the rows, again and again. While a new share
// is dealt, the old one and its order are kept, and those before them may wait for the collector.
func DealBytes(rows, share int, again bool) RowBytes {
	b := RowBytes{Kept: 2 * valueBytes * int64(share), Dealing: max(0, valueBytes*(int64(rows)-int64(share)))}
	if again {
		b.Dealing = valueBytes * (int64(rows) + 3*int64(share))
	}
	return b
}
