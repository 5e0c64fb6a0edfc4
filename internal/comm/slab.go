package comm

import (
	"fmt"
	"syscall"
	"unsafe"
)

const (
	slabSize = 1 << 20 // of slabs for regions shorter than hugeMin
	// hugeMin is the shortest region that lies in huge pages, in bytes: MPI sends such a region in place, and a shorter
	// one from a copy. Between processes the kernel looks up each page that it copies; with huge pages a round of push
	// and pull of 1 MiB was measured to take 0.6 of the time.
	hugeMin  = 16 << 10
	hugeSize = 2 << 20 // of a huge page, and its alignment; does no harm where huge pages have another size
)

// slab is one mapping cut into regions of one class.
type slab struct {
	mem  []byte // the regions
	raw  []byte // the whole mapping: it includes address space for the alignment, which takes no memory
	live int    // regions handed out; at 0 the slab may be unmapped
}

// slabSizeOf returns how many bytes to map at once for regions of a class. At most a quarter of a slab of huge pages is
// wasted.
func slabSizeOf(class int) int {
	switch {
	case class < hugeMin:
		return slabSize
	case class <= hugeSize/2:
		return hugeSize
	case class < hugeSize:
		return 2 * hugeSize
	}
	return class
}

// newSlab maps size bytes of zeroes: in huge pages, as far as these fit.
func newSlab(size int) (*slab, error) {
	room := size
	if size >= hugeSize {
		room += hugeSize
	}
	raw, err := syscall.Mmap(-1, 0, room, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	s := &slab{mem: raw[:size:size], raw: raw}
	if room > size {
		skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & (hugeSize - 1)
		s.mem = raw[skip : skip+size : skip+size]
		adviseHuge(s.mem)
	}
	return s, nil
}

func (s *slab) unmap() {
	if err := syscall.Munmap(s.raw); err != nil {
		panic(fmt.Sprintf("comm: munmap of %d bytes: %v", len(s.raw), err))
	}
}
