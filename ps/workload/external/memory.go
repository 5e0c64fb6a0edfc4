package external

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"fluentps/internal/comm/shm"
)

// region is memory that parent and child have mapped.
type region struct {
	id   int
	file *os.File
	mem  []byte
	// isLent: file and memory belong to somebody else.
	isLent bool
}

// newRegion allocates and maps memory, zeroed, all of its pages at once: a child or a parent that touched a page without memory behind it
// would end by SIGBUS.
func newRegion(bytes int) (*region, error) {
	f, err := shm.Create(shm.Dir, int64(bytes), shm.Spare)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of memory that a child shares, in %s: %w; enlarge it", bytes, shm.Dir, err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("mmap", err), f.Close())
	}
	return &region{file: f, mem: mem}, nil
}

func (r *region) free() error {
	if r.isLent {
		return nil
	}
	return errors.Join(unix.Munmap(r.mem), r.file.Close())
}

// place returns where in the region a slice of its memory begins; ok is false for a slice of other memory.
func (r *region) place(s []float32) (at int, ok bool) {
	from, p := uintptr(unsafe.Pointer(unsafe.SliceData(r.mem))), uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	if p < from || p+uintptr(len(s))*floatBytes > from+uintptr(len(r.mem)) {
		return 0, false
	}
	return int(p - from), true
}

// floats are n numbers at a byte of the region.
func (r *region) floats(at, n int) []float32 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&r.mem[at])), n)
}

const (
	floatBytes = 4
	rowsAt     = 4096 // byte of region 0
	entryBytes = 16   // of a table
)

// control is region 0: the numbers of rows, and behind them the tables of places.
type control struct {
	*region
	tensors int
	rowsMax int
}

// controlBytes is the size of region 0.
func controlBytes(tensors, rowsMax int) int {
	return tablesAt(rowsMax) + int(slots)*2*tensors*entryBytes
}

func tablesAt(rowsMax int) int { return (rowsAt + rowsMax*4 + 63) &^ 63 }

// tableAt is where the table of a slot begins.
func (c *control) tableAt(slot Slot) int {
	return tablesAt(c.rowsMax) + int(slot)*2*c.tensors*entryBytes
}

func (c *control) setRows(rows []int32) {
	copy(unsafe.Slice((*int32)(unsafe.Pointer(&c.mem[rowsAt])), c.rowsMax), rows)
}

// setPlace writes entry i of a table that begins at a byte.
func (c *control) setPlace(table, i int, region, at int) {
	b := c.mem[table+i*entryBytes:]
	binary.LittleEndian.PutUint32(b, uint32(region))
	binary.LittleEndian.PutUint32(b[4:], 0)
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
}
