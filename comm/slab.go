package comm

import (
	"fmt"
	"syscall"
	"unsafe"
)

const (
	slabSize = 1 << 20 // of regions shorter than hugeMin
	// hugeMin is the shortest region that lies in huge pages, in bytes: what is sent in place, and not in a copy that MPI
	// makes. Between processes the kernel looks up each page that it copies; with huge ones a round of push and pull of
	// 1 MiB was measured to take 0.6 of the time.
	hugeMin  = 16 << 10
	hugeSize = 2 << 20 // of a page, and its alignment; where huge pages have another size it does no harm
)

// slab is one mapping cut into regions of one class.
type slab struct {
	mem  []byte // what is handed out
	raw  []byte // what the system gave: address space for the alignment is in it, which takes no memory
	live int    // regions handed out; at 0 the slab may be unmapped
}

// slabOf is how much is mapped at once for regions of a class. Of what is cut from huge pages a quarter is wasted at most.
func slabOf(class int) int {
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
