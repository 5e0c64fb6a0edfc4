//go:build cuda

package cuda

import (
	"cmp"
	"slices"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// twin is host memory of someone else and its copy on the GPU. It is also the Event of its latest Fetch.
type twin struct {
	d        *device
	host     []float32
	mirror   []float32 // pinned, between the two; nil where host is pinned itself
	memory   cu.DevicePtr
	placed   bool            // memory is part of an arena's
	copied   []kernels.Range // ascending: what Refresh and Fetch copy
	came     cu.Event        // recorded behind the latest copy to the GPU
	went     cu.Event        // recorded behind the latest copy to the host
	used     int64           // the latest launch that was given some of it
	launches int64           // before the latest Fetch

	fetching bool // a copy to the host may be under way
	lo, hi   int  // what the latest Fetch brings
	failed   error
}

func (t *twin) end() uint64 { return uint64(t.memory) + uint64(bytesOf(max(len(t.host), 1))) }

// Pin takes an arena, so that what of it is wrapped later is copied without a stop. Where the system cannot pin it,
// copies go through memory that it can.
func (d *device) Pin(p []float32) error {
	if len(p) == 0 {
		return nil
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	switch err := pin(p); {
	case err == nil:
		d.pinned = append(d.pinned, p)
	case lost(codeOf(err)):
		return d.fail(err, "pin %d bytes of host memory", bytesOf(len(p)))
	}
	return nil
}

// Wrap gives the same vector for the same memory.
func (d *device) Wrap(p []float32) (kernels.Vec, error) {
	for _, t := range d.twins {
		if spanOf(t.host) == spanOf(p) && len(p) > 0 {
			return t.vec(), nil
		}
	}
	if err := d.enter(); err != nil {
		return kernels.Vec{}, err
	}
	defer d.leave()
	t := &twin{d: d, host: p}
	if err := t.make(); err != nil {
		return kernels.Vec{}, err
	}
	at, _ := slices.BinarySearchFunc(d.twins, t.memory, func(t *twin, p cu.DevicePtr) int { return cmp.Compare(t.memory, p) })
	d.twins = slices.Insert(d.twins, at, t)
	if err := d.refresh(t, 0, len(p)); err != nil {
		return kernels.Vec{}, err
	}
	return t.vec(), d.wait(d.in, "wait for a copy to the GPU") // the host may write at once
}

func (t *twin) vec() kernels.Vec { return kernels.Vec{Dev: uint64(t.memory), N: len(t.host)} }

func (t *twin) make() (err error) {
	d := t.d
	if a, at := d.arenaOf(t.host); a != nil {
		err = d.countable(len(t.host))
		t.placed, t.memory, t.copied = true, a.memory+cu.DevicePtr(bytesOf(at)), a.part(at, len(t.host))
	} else {
		t.memory, err = d.alloc(len(t.host))
		t.copied = []kernels.Range{{Lo: 0, Hi: len(t.host)}}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !t.placed { // nobody else gives it back; the first error is the one to tell
			_ = cu.MemFree(t.memory)
		}
	}()
	if !slices.ContainsFunc(d.pinned, func(p []float32) bool { return spanOf(p).has(spanOf(t.host)) }) && len(t.copied) > 0 && len(t.host) > 0 {
		if t.mirror, err = allocHost(len(t.host)); err != nil {
			return d.fail(err, "pin %d bytes of host memory", bytesOf(len(t.host)))
		}
	}
	if t.came, err = cu.MakeEvent(cu.DisableTiming); err == nil {
		t.went, err = cu.MakeEvent(cu.DisableTiming)
	}
	return d.fail(err, "make an event")
}

// twinOf finds the wrapped memory that an address belongs to.
func (d *device) twinOf(address uint64) *twin {
	i, found := slices.BinarySearchFunc(d.twins, cu.DevicePtr(address), func(t *twin, p cu.DevicePtr) int { return cmp.Compare(t.memory, p) })
	if !found {
		i--
	}
	if i < 0 || address >= d.twins[i].end() {
		return nil
	}
	return d.twins[i]
}

// touch lets the stream of kernels wait until a vector is not read by a copy to the host any more.
func (d *device) touch(v kernels.Vec) error {
	t := d.twinOf(v.Dev)
	if t == nil {
		return nil
	}
	t.used = d.launched + 1
	if !t.fetching {
		return nil
	}
	return d.fail(d.compute.Wait(t.went, 0), "wait for a copy to the host")
}

func (d *device) Refresh(v kernels.Vec) error {
	t := d.twinOf(v.Dev)
	if t == nil { // it has no other side
		return nil
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	lo := int(v.Dev-uint64(t.memory)) / elemBytes
	return d.refresh(t, lo, lo+v.N)
}

// refresh copies elements lo to hi-1 to the GPU, behind the kernels that may still read what was there, and lets later
// kernels wait for it.
func (d *device) refresh(t *twin, lo, hi int) error {
	ordered := t.used <= d.passed
	copies := false
	for r := range within(t.copied, lo, hi) {
		copies = true
		from := t.host[r.Lo:r.Hi]
		if t.mirror != nil {
			from = t.mirror[r.Lo:r.Hi] // of which nothing is copied: the host would not have written then
			copy(from, t.host[r.Lo:r.Hi])
		}
		if !ordered {
			ordered = true
			if err := d.behind(d.in, d.compute); err != nil {
				return err
			}
		}
		if err := cu.MemcpyHtoDAsync(t.at(r.Lo), pointer(from), bytesOf(r.Hi-r.Lo), d.in); err != nil {
			return d.fail(err, "copy %d bytes to the GPU", bytesOf(r.Hi-r.Lo))
		}
	}
	if !copies {
		return nil
	}
	err := t.came.Record(d.in)
	if err == nil {
		err = d.compute.Wait(t.came, 0)
	}
	return d.fail(err, "wait for a copy to the GPU")
}

// at is the address of an element.
func (t *twin) at(i int) cu.DevicePtr { return t.memory + cu.DevicePtr(bytesOf(i)) }

// behind makes one stream wait for all that was asked of another so far.
func (d *device) behind(waits, other cu.Stream) error {
	err := d.order.Record(other)
	if err == nil {
		err = waits.Wait(d.order, 0)
	}
	return d.fail(err, "order streams")
}

// Fetch returns the wrapped memory itself as the Event: of a second Fetch before the first has passed, both Events tell.
func (d *device) Fetch(v kernels.Vec) (kernels.Event, error) {
	t := d.twinOf(v.Dev)
	if t == nil || v.N == 0 {
		return nothing{}, nil
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := t.settle(); err != nil {
		return nil, err
	}
	t.lo = int(v.Dev-uint64(t.memory)) / elemBytes
	t.hi, t.launches = t.lo+v.N, d.launched
	last := d.compute // with nothing to copy, the kernels alone are waited for
	for r := range within(t.copied, t.lo, t.hi) {
		if last != d.out {
			last = d.out
			if err := d.behind(d.out, d.compute); err != nil {
				return nil, err
			}
		}
		to := t.host
		if t.mirror != nil {
			to = t.mirror
		}
		if err := cu.MemcpyDtoHAsync(pointer(to[r.Lo:r.Hi]), t.at(r.Lo), bytesOf(r.Hi-r.Lo), d.out); err != nil {
			return nil, d.fail(err, "copy %d bytes to the host", bytesOf(r.Hi-r.Lo))
		}
	}
	if err := t.went.Record(last); err != nil {
		return nil, d.fail(err, "record a copy to the host")
	}
	t.fetching = true
	return t, nil
}

// land ends a Fetch whose copy is over.
func (t *twin) land() {
	if !t.fetching {
		return
	}
	t.fetching = false
	t.d.passed = max(t.d.passed, t.launches)
	if t.mirror == nil {
		return
	}
	for r := range within(t.copied, t.lo, t.hi) {
		copy(t.host[r.Lo:r.Hi], t.mirror[r.Lo:r.Hi])
	}
}

// settle waits for the latest Fetch.
func (t *twin) settle() error {
	if !t.fetching {
		return nil
	}
	if err := t.went.Synchronize(); err != nil {
		return t.d.fail(err, "wait for a copy to the host")
	}
	t.land()
	return nil
}

func (t *twin) Wait() error {
	if !t.fetching {
		return t.failed
	}
	if err := t.d.enter(); err != nil {
		return err
	}
	defer t.d.leave()
	return t.settle()
}

const notReady = 600

// Passed is true of what failed, too: Wait says why.
func (t *twin) Passed() bool {
	if !t.fetching {
		return true
	}
	if t.d.enter() != nil {
		return true
	}
	defer t.d.leave()
	switch err := t.went.Query(); {
	case err == nil:
		t.land()
	case codeOf(err) == notReady:
		return false
	default:
		t.failed = t.d.fail(err, "copy to the host")
		t.fetching = false
	}
	return true
}

// nothing is the Event of a vector that has no other side.
type nothing struct{}

func (nothing) Passed() bool { return true }
func (nothing) Wait() error  { return nil }
