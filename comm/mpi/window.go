//go:build mpi

package mpi

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"fluentps/comm"
)

// window is one that this rank has a segment in.
type window struct {
	t      *transport
	number C.int // C's
	bytes  int   // of our segment, as counted against the pool
}

// lineMax is the alignment that segments get; MPI promises none.
const lineMax = 64

// sharedMemory is where the MPI libraries put windows, when there is such a place.
const sharedMemory = "/dev/shm"

// Shared is MPI_Win_allocate_shared among the ranks of each host. That call blocks inside MPI, and some libraries never
// return from it when another rank fails in it; so all ranks agree first that there is room.
func (t *transport) Shared(n int) (*comm.Window, error) {
	if n < 0 {
		panic(fmt.Sprintf("mpi: Shared of %d bytes", n))
	}
	bytes := n
	if n > 0 {
		bytes = n + lineMax - 1
	}
	reserved := t.pool.Reserve(bytes)
	sizes, err := t.agree(bytes, "its pool", reserved)
	if err == nil {
		want, full := t.roomOnHost(sizes)
		_, err = t.agree(want, sharedMemory, full)
	}
	if err != nil {
		if reserved == nil {
			t.pool.Unreserve(bytes)
		}
		return nil, err
	}
	w := &window{t: t, bytes: bytes}
	segments, refused := w.make(n, sizes)
	// Past this all segments are made and zeroed.
	if _, err := t.agree(n, "MPI's shared memory", refused); err != nil {
		t.pool.Unreserve(bytes)
		return nil, err
	}
	t.windows = append(t.windows, w)
	return comm.NewWindow(segments, t.stopped, w.free), nil
}

// agree tells all ranks how many bytes this one wants of something. If any rank has failed to get them, all return
// the same error.
func (t *transport) agree(bytes int, of string, failed error) ([]int64, error) {
	numbers := unsafe.Slice((*int64)(unsafe.Pointer(&t.numbers.Bytes()[0])), 1+t.size)
	if numbers[0] = int64(bytes); failed != nil {
		numbers[0] = ^int64(bytes)
	}
	err := t.collective(func(slot C.uint32_t) C.int {
		return C.fp_gather((*C.int64_t)(&numbers[0]), 1, (*C.int64_t)(&numbers[1]), slot)
	})
	if err != nil {
		return nil, err
	}
	all := slices.Clone(numbers[1:])
	if bad := slices.IndexFunc(all, func(n int64) bool { return n < 0 }); bad >= 0 {
		return nil, fmt.Errorf("mpi: a window that the ranks of a host share: rank %d cannot have %d bytes of %s: %w; make it larger, or share less",
			bad, ^all[bad], of, comm.ErrNoMemory)
	}
	return all, nil
}

// roomOnHost is what the segments of this host need of its shared memory, and an error if that is more than there is.
// One rank of the host judges for all.
func (t *transport) roomOnHost(sizes []int64) (want int, err error) {
	if t.nodeRank > 0 {
		return 0, nil
	}
	page := syscall.Getpagesize()
	for _, peer := range t.nodePeers {
		want += (int(sizes[peer]) + page - 1) / page * page
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(sharedMemory, &fs); err == nil && int64(want) > int64(fs.Bavail)*fs.Bsize {
		return want, comm.ErrNoMemory
	}
	return want, nil // without the file system MPI uses something else
}

// make makes the window and zeroes our segment.
func (w *window) make(n int, sizes []int64) ([]*comm.Buf, error) {
	bases := (*[1 << 20]unsafe.Pointer)(C.calloc(C.size_t(len(w.t.nodePeers)), C.size_t(unsafe.Sizeof(uintptr(0)))))
	if bases == nil {
		return nil, comm.ErrNoMemory
	}
	defer C.free(unsafe.Pointer(bases))
	if rc := C.fp_window(C.int64_t(w.bytes), &bases[0], &w.number); rc != 0 {
		return nil, fmt.Errorf("mpi: MPI_Win_allocate_shared: %s", errorText(rc))
	}
	segments := make([]*comm.Buf, w.t.size)
	for i, peer := range w.t.nodePeers {
		if sizes[peer] == 0 {
			segments[peer] = comm.NewSegment(nil)
			continue
		}
		// Mappings differ by whole pages, so all ranks skip the same bytes.
		skip := -uintptr(bases[i]) % lineMax
		segments[peer] = comm.NewSegment(unsafe.Slice((*byte)(unsafe.Add(bases[i], skip)), int(sizes[peer])-lineMax+1))
	}
	clear(segments[w.t.rank].Bytes())
	return segments, nil
}

// free ends the window when all ranks have come.
func (w *window) free() error {
	if err := w.t.Barrier(); err != nil {
		return err
	}
	return w.release()
}

// release ends the window; all ranks are here.
func (w *window) release() error {
	i := slices.Index(w.t.windows, w)
	w.t.windows = slices.Delete(w.t.windows, i, i+1)
	w.t.pool.Unreserve(w.bytes)
	if rc := C.fp_window_free(w.number); rc != 0 {
		return fmt.Errorf("mpi: MPI_Win_free: %s", errorText(rc))
	}
	return nil
}
