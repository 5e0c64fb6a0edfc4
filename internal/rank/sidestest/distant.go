package sidestest

import (
	"slices"
	"sync"
	"unsafe"

	"fluentps/kernels"
)

// Distant is a device with memory of its own, which a network can read and write. If Eager, it computes and copies at once;
// else only when a goroutine waits, and only what that goroutine waits for.
type Distant struct {
	kernels.Device
	Eager   bool
	pending []func() // all requests; those done are nil
	done    int      // number of requests done
	homes   []home
	copied  *Copies
}

// NewDistant is a device with memory of its own whose kernels are those of another device. It counts its copies in to.
func NewDistant(kernels kernels.Device, to *Copies) *Distant {
	return &Distant{Device: kernels, copied: to}
}

// home is the place on the device of host memory that was wrapped or placed.
type home struct {
	host, memory []float32
	reached      []kernels.Range
	isBatch      bool // samples for a model, which wraps two batches before anything else
}

// Copies counts what devices copied between their memory and that of the host, in elements, and the arenas placed on them.
type Copies struct {
	sync.Mutex
	In, Out  int // between host memory and memory on the device that belongs to it, batches left out
	Up, Down int
	Placed   int // arenas
	Batches  int // that were uploaded
	Ahead    int // those of them beside requests that nobody had waited for
	Flights  InFlight
}

// InFlight are the bytes that the network may read or write: operations that were posted and have not completed.
type InFlight struct {
	sync.Mutex
	Spans      map[[2]uintptr]int
	All        int
	Violations []string // kernels that ran on bytes in flight
}

func spanOf[T any](p []T) [2]uintptr {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return [2]uintptr{from, from + uintptr(len(p))*unsafe.Sizeof(p[0])}
}

// Begin notes an operation on these bytes, and end that it has completed.
func (f *InFlight) Begin(b []byte) (end func()) {
	f.Lock()
	defer f.Unlock()
	if f.Spans == nil {
		f.Spans = map[[2]uintptr]int{}
	}
	span := spanOf(b)
	f.Spans[span]++
	f.All++
	return func() {
		f.Lock()
		defer f.Unlock()
		if f.Spans[span]--; f.Spans[span] == 0 {
			delete(f.Spans, span)
		}
	}
}

func (f *InFlight) check(k *kernels.Kernel, a kernels.Args) {
	f.Lock()
	defer f.Unlock()
	for _, v := range a.V {
		if len(v.Host) == 0 {
			continue
		}
		at := spanOf(v.Host)
		for s := range f.Spans {
			if s[0] < at[1] && at[0] < s[1] {
				f.Violations = append(f.Violations, k.Name)
			}
		}
	}
}

func (d *Distant) upTo(n int) {
	for ; d.done < n; d.done++ {
		d.pending[d.done]()
		d.pending[d.done] = nil
	}
}

func (d *Distant) late(f func()) {
	d.pending = append(d.pending, f)
	if d.Eager {
		d.upTo(len(d.pending))
	}
}

func (d *Distant) vec(memory []float32) kernels.Vec {
	return kernels.Vec{Host: memory, Dev: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), N: len(memory)}
}

func (d *Distant) Place(p []float32, reached []kernels.Range) (kernels.Vec, error) {
	h := home{host: p, memory: make([]float32, len(p)), reached: reached}
	d.homes = append(d.homes, h)
	d.copied.Lock()
	defer d.copied.Unlock()
	d.copied.Placed++
	return d.vec(h.memory), nil
}

// Alloc is memory that no host memory belongs to.
func (d *Distant) Alloc(n int) (kernels.Vec, error) {
	return d.vec(make([]float32, max(n, 1))[:n]), nil
}

func (d *Distant) Attach() error { return nil }
func (d *Distant) Detach()       {}

// offsetIn is the offset of q in p, in elements; -1: q is not in p.
func offsetIn(p, q []float32) int {
	at := int(uintptr(unsafe.Pointer(unsafe.SliceData(q)))-uintptr(unsafe.Pointer(unsafe.SliceData(p)))) / 4
	if at < 0 || at+len(q) > len(p) {
		return -1
	}
	return at
}

func (d *Distant) Wrap(p []float32) (kernels.Vec, error) {
	for _, h := range d.homes {
		if at := offsetIn(h.host, p); at >= 0 {
			return d.vec(h.memory[at : at+len(p)]), nil
		}
	}
	h := home{host: p, memory: slices.Clone(p), isBatch: len(d.homes) < 2}
	d.homes = append(d.homes, h)
	return d.vec(h.memory), nil
}

// eachCopied calls f for the spans of a vector that the device copies, with both sides.
func (d *Distant) eachCopied(v kernels.Vec, f func(host, memory []float32)) {
	h := d.homes[slices.IndexFunc(d.homes, func(h home) bool { return offsetIn(h.memory, v.Host) >= 0 })]
	from := offsetIn(h.memory, v.Host)
	end := from + v.N
	for e := from; e <= end; e++ {
		if e < end && !slices.ContainsFunc(h.reached, func(r kernels.Range) bool { return r.Lo <= e && e < r.Hi }) {
			continue
		}
		if e > from {
			f(h.host[from:e], h.memory[from:e])
		}
		from = e + 1
	}
}

func (d *Distant) Refresh(v kernels.Vec) error {
	isBatch := slices.ContainsFunc(d.homes, func(h home) bool { return h.isBatch && offsetIn(h.memory, v.Host) >= 0 })
	beside := d.done < len(d.pending)
	d.eachCopied(v, func(host, memory []float32) {
		values := slices.Clone(host)
		d.late(func() { copy(memory, values) })
		if !isBatch {
			d.copied.add(len(values), 0)
		}
	})
	if isBatch {
		d.copied.Lock()
		d.copied.Up += v.N
		d.copied.Batches++
		if beside {
			d.copied.Ahead++
		}
		d.copied.Unlock()
	}
	return nil
}

func (d *Distant) Fetch(v kernels.Vec) (kernels.Event, error) {
	d.eachCopied(v, func(host, memory []float32) {
		d.late(func() { copy(host, memory) })
		d.copied.add(0, len(host))
	})
	return point{d, len(d.pending)}, nil
}

func (c *Copies) add(in, out int) {
	c.Lock()
	defer c.Unlock()
	c.In, c.Out = c.In+in, c.Out+out
}

type point struct {
	d  *Distant
	at int
}

func (p point) Passed() bool { return p.d.done >= p.at }

func (p point) Wait() error {
	p.d.upTo(p.at)
	return nil
}

func (d *Distant) Upload(dst kernels.Vec, src []float32) error {
	d.copied.Lock()
	d.copied.Up += len(src)
	d.copied.Unlock()
	values := slices.Clone(src)
	d.late(func() { copy(dst.Host, values) })
	return nil
}

func (d *Distant) Download(dst []float32, src kernels.Vec) error {
	d.copied.Lock()
	d.copied.Down += len(dst)
	d.copied.Unlock()
	d.upTo(len(d.pending))
	copy(dst, src.Host)
	return nil
}

func (d *Distant) Launch(k *kernels.Kernel, a kernels.Args) error {
	d.late(func() {
		d.copied.Flights.check(k, a)
		if err := d.Device.Launch(k, a); err != nil {
			panic(err)
		}
	})
	return k.Check(a)
}

func (d *Distant) Sync() error {
	d.upTo(len(d.pending))
	return nil
}
