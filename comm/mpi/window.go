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

	"fluentps/comm"
	"fluentps/comm/shm"
)

// Windows are ours and not MPI's. MPI maps a file of which it has no page yet: two jobs that find room for one of them at the
// same time are both ended, by SIGBUS, when they write, and no call that it offers takes the pages before. Each rank makes the
// file of its own segment, on its own memory node, and the others of its host open that through the owner's descriptor. Where the
// system forbids that, as between containers that each have a namespace of users, the files get names until all have them open.

// window is one that this rank has a segment in.
type window struct {
	t     *transport
	bytes int             // of our segment, as counted against the pool
	file  *os.File        // of our segment, until the others have it open
	maps  map[int]mapping // by rank
}

type mapping struct {
	at    unsafe.Pointer
	bytes int
}

// offer is what a rank tells all others when a window is made.
type offer struct {
	Bytes    int64 // of its segment; ^bytes if it has failed to get them
	Errno    int64 // why it has failed, if the system said so
	PID, FD  int64 // where its segment is open
	Dev, Ino int64 // which file that is: a number of a process may mean another one in a container
}

const offerBytes = int(unsafe.Sizeof(offer{}))

// Shared takes all memory of the window before any of it is mapped. All ranks agree after each step, so that all have the
// window or all have the same error.
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
	own, failed := w.make()
	offers, err := t.agree(own, "shared memory in "+shm.Dir, failed)
	if err == nil {
		err = w.reach(own, offers)
	}
	// Past this all segments are mapped where they are wanted, and their owners' descriptors of no use.
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	if err != nil {
		return nil, errors.Join(err, w.drop())
	}
	t.windows = append(t.windows, w)
	return comm.NewWindow(w.segments(offers), t.stopped, w.free), nil
}

// agree brings the offers of all ranks to all. If any rank has failed to get its memory, all return the same error.
func (t *transport) agree(own offer, of string, failed error) ([]offer, error) {
	offers := unsafe.Slice((*offer)(unsafe.Pointer(&t.numbers.Bytes()[0])), 1+t.size)
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
	return nil, fmt.Errorf("mpi: a window that the ranks of a host share: rank %d cannot have %d bytes of %s%s: %w; make it larger, or share less",
		bad, ^all[bad].Bytes, of, why, comm.ErrNoMemory)
}

// make takes the memory of our segment.
func (w *window) make() (own offer, err error) {
	own.Bytes = int64(w.bytes)
	if w.bytes == 0 {
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

// reach maps the segments of the other ranks of this host: of all, or on no rank.
func (w *window) reach(own offer, offers []offer) error {
	const what = "shared memory of other ranks, whose files it cannot open"
	_, err := w.t.agree(own, what, w.join(offers, (*offer).descriptor))
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
		_, err = w.t.agree(own, what, w.join(offers, (*offer).name))
	}
	return err
}

// descriptor is the way to a segment through its owner.
func (o *offer) descriptor() string { return fmt.Sprintf("/proc/%d/fd/%d", o.PID, o.FD) }

// name is where a segment stands while it has a name. No two files there have one number.
func (o *offer) name() string { return fmt.Sprintf("%s/fluentps-window-%d", shm.Dir, o.Ino) }

// join maps those segments of the other ranks of this host that are not mapped yet.
func (w *window) join(offers []offer, at func(*offer) string) error {
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

// segments are those of this host's ranks, by rank of the world.
func (w *window) segments(offers []offer) []*comm.Buf {
	segments := make([]*comm.Buf, w.t.size)
	for _, peer := range w.t.nodePeers {
		m := w.maps[int(peer)] // none where the segment is empty
		segments[peer] = comm.NewSegment(unsafe.Slice((*byte)(m.at), m.bytes))
	}
	return segments
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
	return w.drop()
}

// drop gives back what this rank has of a window.
func (w *window) drop() error {
	w.t.pool.Unreserve(w.bytes)
	var problems []error
	for rank, m := range w.maps {
		if errno := C.fp_unmap(m.at, C.int64_t(m.bytes)); errno != 0 {
			problems = append(problems, fmt.Errorf("mpi: munmap of the segment of rank %d: %w", rank, syscall.Errno(errno)))
		}
	}
	clear(w.maps)
	return errors.Join(problems...)
}
