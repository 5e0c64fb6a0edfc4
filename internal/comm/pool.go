package comm

import (
	"fmt"
	"math/bits"
	"os"
	"sync"
)

// PoolMax is the limit of a Pool that names none, in bytes.
const PoolMax int64 = 8 << 30

const (
	classMin = 64     // the smallest region, also the alignment of all
	classes  = 4 * 64 // upper bound of indexOf
)

// Pool hands out Bufs and reuses their memory by size class. It maps at most its limit; rounding up to a class wastes
// at most a quarter. Buffers of 16 KiB and more lie in huge pages where the system has them. All methods may be called
// from any goroutine.
type Pool struct {
	max int64

	mu     sync.Mutex
	mapped int64           // bytes mapped from the system or counted by Reserve; at most max
	inUse  int64           // bytes of regions handed out or counted by Reserve
	free   [classes][]*Buf // by index of the class
	closed bool
}

// NewPool returns an empty pool of at most max bytes; 0 means PoolMax.
func NewPool(max int64) *Pool {
	if max < 0 {
		panic(fmt.Sprintf("comm: pool limit of %d bytes", max))
	}
	if max == 0 {
		max = PoolMax
	}
	return &Pool{max: max}
}

// Alloc returns n zeroed bytes, 64-byte aligned. The error wraps ErrNoMemory or ErrClosed.
func (p *Pool) Alloc(n int) (*Buf, error) {
	if n < 0 {
		panic(fmt.Sprintf("comm: Alloc of %d bytes", n))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("comm: Alloc of %d bytes: %w", n, ErrClosed)
	}
	if int64(n) > p.max {
		return nil, p.fullError(n)
	}
	class := classOf(n)
	list := &p.free[indexOf(class)]
	if len(*list) == 0 {
		if err := p.grow(n, class); err != nil {
			return nil, err
		}
	}
	last := len(*list) - 1
	b := (*list)[last]
	*list = (*list)[:last]
	b.mem = b.region[:n:n]
	if b.used {
		checkPoison(b.region)
		clear(b.mem)
	}
	b.slab.live++
	p.inUse += int64(class)
	b.refs.Store(1)
	b.freed.Store(false)
	return b, nil
}

// Reserve counts n bytes that were mapped elsewhere, such as a window's, against the limit. The error wraps ErrNoMemory
// or ErrClosed.
func (p *Pool) Reserve(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("comm: %d bytes asked: %w", n, ErrClosed)
	}
	p.trim(p.mapped + int64(n) - p.max)
	if p.mapped+int64(n) > p.max {
		return p.fullError(n)
	}
	p.mapped += int64(n)
	p.inUse += int64(n)
	return nil
}

// Unreserve undoes a Reserve of n bytes.
func (p *Pool) Unreserve(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mapped -= int64(n)
	p.inUse -= int64(n)
}

// Usage returns the bytes mapped, the part of them in use, and the limit.
func (p *Pool) Usage() (mapped, inUse, max int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mapped, p.inUse, p.max
}

// Close gives idle memory back to the system. Buffers not yet freed stay valid; each gives its memory back with its
// Free.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.trim(p.mapped)
}

func (p *Pool) put(b *Buf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	class := len(b.region)
	p.inUse -= int64(class)
	poison(b.region)
	b.slab.live--
	if Invariants { // a stale reference to the old Buf panics
		b = &Buf{region: b.region, slab: b.slab, pool: p}
	}
	b.used = true
	list := &p.free[indexOf(class)]
	*list = append(*list, b)
	if p.closed {
		p.trim(p.mapped)
	}
}

// grow puts at least one zeroed region of the class on its free list.
func (p *Pool) grow(n, class int) error {
	size := int64(slabSizeOf(class))
	p.trim(p.mapped + size - p.max)
	if left := p.max - p.mapped; size > left {
		size = left &^ int64(os.Getpagesize()-1) // near the limit a slab may be short
	}
	if size < int64(class) {
		return p.fullError(n)
	}
	s, err := newSlab(int(size))
	if err != nil {
		return fmt.Errorf("comm: the system refuses %d bytes: %v: %w", size, err, ErrNoMemory)
	}
	p.mapped += size
	list := &p.free[indexOf(class)]
	for mem := s.mem; len(mem) >= class; mem = mem[class:] {
		*list = append(*list, &Buf{region: mem[:class:class], slab: s, pool: p})
	}
	return nil
}

// trim unmaps idle memory until it has given back at least want bytes or none is idle.
func (p *Pool) trim(want int64) {
	for i, list := range &p.free {
		if want <= 0 {
			return
		}
		if len(list) == 0 {
			continue
		}
		unmapped := make(map[*slab]bool)
		kept := list[:0]
		for _, r := range list {
			switch {
			case unmapped[r.slab]:
			case want <= 0 || r.slab.live > 0:
				kept = append(kept, r)
			default:
				unmapped[r.slab] = true
				p.mapped -= int64(len(r.slab.mem))
				want -= int64(len(r.slab.mem))
				r.slab.unmap()
			}
		}
		clear(list[len(kept):])
		p.free[i] = kept
	}
}

func (p *Pool) fullError(n int) error {
	return fmt.Errorf("comm: %d bytes asked, %d in use of at most %d: %w; raise the pool's limit or use smaller buffers",
		n, p.inUse, p.max, ErrNoMemory)
}

// classOf rounds n up to one of four steps per doubling, a multiple of classMin.
func classOf(n int) int {
	if n <= classMin {
		return classMin
	}
	step := max(classMin, 1<<max(0, bits.Len(uint(n-1))-3))
	return (n + step - 1) &^ (step - 1)
}

// indexOf numbers the classes with few gaps.
func indexOf(class int) int {
	doubling := bits.Len(uint(class - 1))
	return 4*doubling + (class-1)>>max(0, doubling-3)&3
}
