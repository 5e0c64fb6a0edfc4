package workload

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"unsafe"
)

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
