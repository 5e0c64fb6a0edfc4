package comm

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func mustAlloc(t *testing.T, p *Pool, n int) *Buf {
	t.Helper()
	b, err := p.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got, ok := recover().(string); !ok || !strings.Contains(got, want) {
			t.Fatalf("panic %q, want one that contains %q", got, want)
		}
	}()
	f()
}

func TestAllocIsZeroedAndAligned(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	for _, n := range []int{0, 1, 63, 64, 65, 2048, 65536, 65537, 1 << 20, 3<<20 + 5} {
		for range 2 { // the second one comes from the free list
			b := mustAlloc(t, p, n)
			if b.Len() != n || len(b.Bytes()) != n || len(b.F32()) != n/4 {
				t.Fatalf("Alloc(%d): Len %d, %d bytes, %d values", n, b.Len(), len(b.Bytes()), len(b.F32()))
			}
			if n > 0 && uintptr(unsafe.Pointer(&b.Bytes()[0]))%64 != 0 {
				t.Fatalf("Alloc(%d) at %p is not 64-byte aligned", n, &b.Bytes()[0])
			}
			for i, v := range b.Bytes() {
				if v != 0 {
					t.Fatalf("Alloc(%d): byte %d is %d", n, i, v)
				}
			}
			for i := range b.Bytes() {
				b.Bytes()[i] = 1
			}
			b.Free()
		}
	}
}

func TestPoolReusesAndStaysInItsLimit(t *testing.T) {
	p := NewPool(4 << 20)
	for range 100 {
		b := mustAlloc(t, p, 3<<20)
		b.Free()
	}
	if mapped, inUse, max := p.Usage(); mapped != 3<<20 || inUse != 0 || max != 4<<20 {
		t.Fatalf("Usage %d %d %d after 100 times the same buffer", mapped, inUse, max)
	}
	// Another class fits only if the idle 3 MiB go back first.
	b := mustAlloc(t, p, 2<<20)
	_, err := p.Alloc(3 << 20)
	if !errors.Is(err, ErrNoMemory) || !strings.Contains(err.Error(), "4194304") {
		t.Fatalf("error %v does not wrap ErrNoMemory and name the limit", err)
	}
	if _, err := p.Alloc(math.MaxInt); !errors.Is(err, ErrNoMemory) {
		t.Fatalf("error %v", err)
	}
	b.Free()
	p.Close()
	if mapped, _, _ := p.Usage(); mapped != 0 {
		t.Fatalf("%d bytes mapped after Close", mapped)
	}
	if _, err := p.Alloc(1); !errors.Is(err, ErrClosed) {
		t.Fatalf("Alloc after Close: %v", err)
	}
}

func TestBufOutlivesClose(t *testing.T) {
	p := NewPool(0)
	small, large := mustAlloc(t, p, 100), mustAlloc(t, p, 1<<20)
	p.Close()
	small.Bytes()[99], large.Bytes()[1<<20-1] = 1, 1
	small.Free()
	large.Free()
	if mapped, inUse, _ := p.Usage(); mapped != 0 || inUse != 0 {
		t.Fatalf("%d bytes mapped, %d in use after the last Free", mapped, inUse)
	}
}

func TestHeldMemoryIsNotReused(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	b := mustAlloc(t, p, 1<<20)
	mem := Span(b, 0, 1<<20)
	b.Free()
	other := mustAlloc(t, p, 1<<20)
	defer other.Free()
	if &mem[0] == &other.Bytes()[0] {
		t.Fatal("memory of an operation in flight was handed out")
	}
	b.Release()
	again := mustAlloc(t, p, 1<<20)
	defer again.Free()
	if &mem[0] != &again.Bytes()[0] {
		t.Fatal("released memory was not reused")
	}
}

func TestReservedBytesCount(t *testing.T) {
	p := NewPool(2 << 20)
	defer p.Close()
	mustAlloc(t, p, 1<<20).Free() // idle: it makes room
	if err := p.Reserve(3 << 19); err != nil {
		t.Fatal(err)
	}
	if mapped, inUse, _ := p.Usage(); mapped != 3<<19 || inUse != 3<<19 {
		t.Fatalf("%d mapped, %d in use", mapped, inUse)
	}
	if _, err := p.Alloc(1 << 20); !errors.Is(err, ErrNoMemory) {
		t.Fatalf("Alloc past the limit: %v", err)
	}
	if err := p.Reserve(1 << 20); !errors.Is(err, ErrNoMemory) {
		t.Fatalf("Reserve past the limit: %v", err)
	}
	p.Unreserve(3 << 19)
	mustAlloc(t, p, 2<<20).Free()
}

func TestSmallBuffersComeBackWithoutAllocation(t *testing.T) {
	if Invariants {
		t.Skip("this build never hands out a Buf twice")
	}
	p := NewPool(0)
	defer p.Close()
	n := testing.AllocsPerRun(100, func() {
		a, _ := p.Alloc(64)
		b, _ := p.Alloc(100_000)
		a.Free()
		b.Free()
	})
	if n != 0 {
		t.Fatalf("%v allocations for two buffers", n)
	}
}

func TestWindowMisusePanics(t *testing.T) {
	well := func() error { return nil }
	w := NewWindow([]*Buf{NewSegment(make([]byte, 8)), nil}, well, well)
	own := w.Of(0)
	if w.Of(1) != nil || own.Len() != 8 {
		t.Fatal("the window has other segments")
	}
	mustPanic(t, "is freed with its window", own.Free)
	Span(own, 0, 8)
	mustPanic(t, "1 operations in flight on the segment of rank 0", func() { w.Free() })
	own.Release()
	if err := w.Free(); err != nil {
		t.Fatal(err)
	}
	mustPanic(t, "double free", func() { w.Free() })
	mustPanic(t, "after its Free", func() { w.Of(0) })
	mustPanic(t, "after its Free", func() { own.Bytes() })
	gone := NewWindow(nil, func() error { return ErrClosed }, nil)
	if err := gone.Free(); !errors.Is(err, ErrClosed) {
		t.Fatalf("Free after Close: %v", err)
	}
}

func TestMisusePanics(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	b := mustAlloc(t, p, 8)
	keep := mustAlloc(t, p, 8)
	b.Free()
	mustPanic(t, "double free", b.Free)
	mustPanic(t, "after its Free", func() { b.Bytes() })
	mustPanic(t, "after its Free", func() { b.F32() })
	mustPanic(t, "after its Free", func() { b.Hold() })
	mustPanic(t, "more often", func() { keep.Release(); keep.Release() })
	mustPanic(t, "to rank 2", func() { CheckSend(2, 2, Ctl, 0, nil, 0, 0) })
	mustPanic(t, "to rank -1", func() { CheckSend(2, AnyPeer, Ctl, 0, nil, 0, 0) })
	mustPanic(t, "from rank -2", func() { CheckRecv(2, -2, Ctl, 0, nil, 0, 0) })
	mustPanic(t, "channel 2", func() { CheckRecv(2, 0, Chans, 0, nil, 0, 0) })
	mustPanic(t, "tag", func() { CheckRecv(2, 0, Ctl, TagMax+1, nil, 0, 0) })
	mustPanic(t, "8193 bytes", func() { CheckRecv(2, 0, Ctl, 0, nil, 0, CtlMax+1) })
	mustPanic(t, "buffer of 8", func() { c := mustAlloc(t, p, 8); CheckRecv(2, 0, Ctl, 0, c, 4, 5) })
}

func TestClassWastesAtMostAQuarter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<40).Draw(t, "n")
		c := classOf(n)
		if c < n || c%classMin != 0 || c > classMin && c > n+n/4+classMin {
			t.Fatalf("class of %d is %d", n, c)
		}
		if classOf(c) != c {
			t.Fatalf("class %d of %d is of class %d", c, n, classOf(c))
		}
	})
}

// Random allocations from several goroutines never overlap and never pass the limit.
func TestPoolRandom(t *testing.T) {
	p := NewPool(8 << 20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var held []*Buf
			sizes := []int{1, 100, 5000, 70000, 300000, 1 << 20}
			for i := range 500 {
				b, err := p.Alloc(sizes[(i*7+g*3+i/11)%len(sizes)])
				if err == nil {
					for j := 0; j < b.Len(); j += 64 {
						b.Bytes()[j] = byte(g + 1)
					}
					held = append(held, b)
				} else if !errors.Is(err, ErrNoMemory) {
					t.Error(err)
				}
				if len(held) > 3 || err != nil && len(held) > 0 {
					for j := 0; j < held[0].Len(); j += 64 {
						if held[0].Bytes()[j] != byte(g+1) {
							t.Errorf("buffer of goroutine %d holds %d", g, held[0].Bytes()[j])
						}
					}
					held[0].Free()
					held = held[1:]
				}
			}
			for _, b := range held {
				b.Free()
			}
		}()
	}
	wg.Wait()
	if mapped, inUse, max := p.Usage(); inUse != 0 || mapped > max {
		t.Fatalf("%d mapped, %d in use, limit %d", mapped, inUse, max)
	}
	p.Close()
	if mapped, _, _ := p.Usage(); mapped != 0 {
		t.Fatalf("%d bytes mapped after Close", mapped)
	}
}

// A slab consists of whole huge pages, and regions of its class fill it.
func TestSlabsLieInHugePages(t *testing.T) {
	for _, n := range []int{100, hugeMin, 64 << 10, 100_000, 1 << 20, 1<<20 + 1, 3 << 19, hugeSize, 5<<20 + 1} {
		p := NewPool(0)
		b := mustAlloc(t, p, n)
		s, class := b.slab, classOf(n)
		at := uintptr(unsafe.Pointer(&s.mem[0]))
		if n >= hugeMin && at%hugeSize != 0 {
			t.Errorf("Alloc(%d): its slab begins at %#x", n, at)
		}
		if n >= hugeMin && class < hugeSize && len(s.mem)%hugeSize != 0 {
			t.Errorf("Alloc(%d): its slab has %d bytes", n, len(s.mem))
		}
		if waste := len(s.mem) % class; waste > len(s.mem)/4 {
			t.Errorf("Alloc(%d): of a slab of %d bytes %d are wasted", n, len(s.mem), waste)
		}
		if mapped, _, _ := p.Usage(); mapped != int64(len(s.mem)) {
			t.Errorf("Alloc(%d): %d bytes mapped for a slab of %d", n, mapped, len(s.mem))
		}
		b.Free()
		p.Close()
		if mapped, _, _ := p.Usage(); mapped != 0 {
			t.Errorf("Alloc(%d): %d bytes mapped after Close", n, mapped)
		}
	}
}

// Near the limit a slab takes no more than the rest of it.
func TestSlabNearTheLimitIsShort(t *testing.T) {
	p := NewPool(300 << 10)
	defer p.Close()
	a, b := mustAlloc(t, p, 128<<10), mustAlloc(t, p, 128<<10)
	if _, err := p.Alloc(128 << 10); !errors.Is(err, ErrNoMemory) {
		t.Errorf("a third of 128 KiB in 300 KiB: %v", err)
	}
	a.Free()
	b.Free()
}
