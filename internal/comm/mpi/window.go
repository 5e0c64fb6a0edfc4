//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"fluentps/internal/comm"
	"fluentps/internal/comm/shm"
)

// This package makes its own windows and uses none of MPI's. MPI maps a file before it has any page: SIGBUS ends two
// jobs that find space for one of them at the same time, and no call of MPI allocates the pages before. Each rank
// creates the file of its own segment, on its own memory node, and the other ranks of its host open that through the
// owner's descriptor. If the system forbids that, as between containers with user namespaces of their own, the files
// have names until all ranks have opened them.

// window is a window in which this rank has a segment.
type window struct {
	t     *transport
	bytes int             // of this rank's segment, as counted against the pool
	file  *os.File        // of this rank's segment; nil if that is empty
	maps  map[int]mapping // by rank
}

type mapping struct {
	at    unsafe.Pointer
	bytes int
}

// offer is the message of a rank to all others while a window is created.
type offer struct {
	Bytes    int64 // of its segment; ^bytes if the rank failed to get them
	Errno    int64 // the system's reason for the failure; 0: none known
	PID, FD  int64 // process and descriptor that have the segment open
	Dev, Ino int64 // identity of the file: in a container a process number may mean another process
}

const offerBytes = int(unsafe.Sizeof(offer{}))

// Shared allocates all memory of the window before it maps any. All ranks agree after each step, so that all get the
// window or all get the same error.
func (t *transport) Shared(n int) (*comm.Window, error) {
	if n < 0 {
		panic(fmt.Sprintf("mpi: Shared of %d bytes", n))
	}
	reserved := t.pool.Reserve(n)
	if _, err := t.agree(offer{Bytes: int64(n)}, "its pool", reserved); err != nil {
		if reserved == nil {
			t.pool.Unreserve(n)
		}
		return nil, err
	}
	w := &window{t: t, bytes: n, maps: map[int]mapping{}}
	own, failed := w.create(n)
	offers, err := t.agree(own, "shared memory in "+shm.Dir, failed)
	if err == nil {
		err = w.mapOthers(own, offers)
	}
	if err != nil {
		return nil, errors.Join(err, w.drop())
	}
	t.windows = append(t.windows, w)
	return comm.NewWindow(w.segments(offers), t.stopped, w.free).WithFile(w.file), nil
}

// agree exchanges the offers of all ranks. If any rank failed, all return the same error.
func (t *transport) agree(own offer, of string, failed error) ([]offer, error) {
	offers := unsafe.Slice((*offer)(unsafe.Pointer(&t.offerBuf.Bytes()[0])), 1+t.size)
	if offers[0] = own; failed != nil {
		var errno syscall.Errno
		errors.As(failed, &errno)
		offers[0] = offer{Bytes: ^own.Bytes, Errno: int64(errno)}
	}
	const words = offerBytes / 8
	err := t.collective(func(slot C.uint32_t) C.int {
		return C.fp_gather((*C.int64_t)(unsafe.Pointer(&offers[0])), C.int(words), (*C.int64_t)(unsafe.Pointer(&offers[1])), slot)
	})
	if err != nil {
		return nil, err
	}
	all := slices.Clone(offers[1:])
	bad := slices.IndexFunc(all, func(o offer) bool { return o.Bytes < 0 })
	if bad < 0 {
		return all, nil
	}
	why := ""
	if errno := syscall.Errno(all[bad].Errno); errno != 0 {
		why = " (" + errno.Error() + ")"
	}
	return nil, fmt.Errorf(
		"mpi: a window that the ranks of a host share: rank %d cannot have %d bytes of %s%s: %w; enlarge it or share less",
		bad, ^all[bad].Bytes, of, why, comm.ErrNoMemory)
}

// create allocates the memory of this rank's segment.
func (w *window) create(bytes int) (own offer, err error) {
	own.Bytes = int64(bytes)
	if bytes == 0 {
		return own, nil
	}
	spare := int64(len(w.t.nodePeers)) * shm.Spare
	if w.file, err = shm.Create(shm.Dir, own.Bytes, spare); err != nil {
		return own, err
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(w.file.Fd()), &stat); err != nil {
		return own, err
	}
	own.PID, own.FD = int64(os.Getpid()), int64(w.file.Fd())
	own.Dev, own.Ino = int64(stat.Dev), int64(stat.Ino)
	return own, w.mapFile(w.t.rank, w.file, true)
}

// mapOthers maps the segments of the other ranks of this host: on all ranks, or on none.
func (w *window) mapOthers(own offer, offers []offer) error {
	const what = "shared memory of other ranks, whose files it cannot open"
	_, err := w.t.agree(own, what, w.mapMissing(offers, (*offer).descriptor))
	if !errors.Is(err, comm.ErrNoMemory) {
		return err
	}
	var failed error
	if w.file != nil {
		failed = shm.Name(w.file, own.name())
	}
	if failed == nil && w.file != nil {
		defer func() { _ = os.Remove(own.name()) }()
	}
	if _, err = w.t.agree(own, what, failed); err == nil {
		_, err = w.t.agree(own, what, w.mapMissing(offers, (*offer).name))
	}
	return err
}

// descriptor returns the path to a segment through its owner.
func (o *offer) descriptor() string { return fmt.Sprintf("/proc/%d/fd/%d", o.PID, o.FD) }

// name returns the path of a segment while it has a name. No two files there have the same number.
func (o *offer) name() string { return fmt.Sprintf("%s/fluentps-window-%d", shm.Dir, o.Ino) }

// mapMissing maps those segments of the other ranks of this host that are not mapped yet.
func (w *window) mapMissing(offers []offer, at func(*offer) string) error {
	for _, peer := range w.t.nodePeers {
		o := &offers[peer]
		if _, mapped := w.maps[int(peer)]; mapped || int(peer) == w.t.rank || o.Bytes == 0 {
			continue
		}
		if err := w.open(int(peer), o, at(o)); err != nil {
			return err
		}
	}
	return nil
}

// open maps the segment of another rank.
func (w *window) open(peer int, o *offer, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	var stat syscall.Stat_t
	err = syscall.Fstat(int(f.Fd()), &stat)
	if err == nil && (int64(stat.Dev) != o.Dev || int64(stat.Ino) != o.Ino || stat.Size != o.Bytes) {
		err = syscall.ESTALE
	}
	if err == nil {
		err = w.mapFile(peer, f, false)
	}
	return errors.Join(err, f.Close())
}

func (w *window) mapFile(rank int, f *os.File, populate bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	m := mapping{bytes: int(info.Size())}
	if errno := C.fp_map(C.int(f.Fd()), C.int64_t(m.bytes), C.int(b2i(populate)), &m.at); errno != 0 {
		return syscall.Errno(errno)
	}
	w.maps[rank] = m
	return nil
}

// segments returns the segments of this host's ranks, by rank of the world.
func (w *window) segments(offers []offer) []*comm.Buf {
	segments := make([]*comm.Buf, w.t.size)
	for _, peer := range w.t.nodePeers {
		m := w.maps[int(peer)] // zero if the segment is empty
		segments[peer] = comm.NewSegment(unsafe.Slice((*byte)(m.at), m.bytes))
	}
	return segments
}

// free releases the window when all ranks have called.
func (w *window) free() error {
	if err := w.t.Barrier(); err != nil {
		return err
	}
	return w.release()
}

// release unmaps the window; all ranks have called.
func (w *window) release() error {
	i := slices.Index(w.t.windows, w)
	w.t.windows = slices.Delete(w.t.windows, i, i+1)
	return w.drop()
}

// drop unmaps this rank's mappings of a window.
func (w *window) drop() error {
	w.t.pool.Unreserve(w.bytes)
	var problems []error
	for rank, m := range w.maps {
		if errno := C.fp_unmap(m.at, C.int64_t(m.bytes)); errno != 0 {
			problems = append(problems, fmt.Errorf("mpi: munmap of the segment of rank %d: %w", rank, syscall.Errno(errno)))
		}
	}
	clear(w.maps)
	if w.file != nil {
		problems = append(problems, w.file.Close())
		w.file = nil
	}
	return errors.Join(problems...)
}
