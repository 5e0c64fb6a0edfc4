//go:build cuda

package cuda

import (
	"cmp"
	"slices"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// twin is the caller's host memory together with its copy on the GPU. It is also the Event of its latest Fetch.
type twin struct {
	device    *device
	host      []float32
	mirror    []float32 // pinned memory between host and memory; nil if host itself is pinned
	memory    cu.DevicePtr
	placed    bool            // memory is part of an arena
	copied    []kernels.Range // the elements that Refresh and Fetch copy, ascending
	copiedIn  cu.Event        // recorded after the latest copy to the GPU
	copiedOut cu.Event        // recorded after the latest copy to the host
	lastUse   int64           // number of the latest launch that took part of the twin
	launches  int64           // number of launches before the latest Fetch

	isFetching bool  // a copy to the host may be in flight
	lo, hi     int   // the elements of the latest Fetch
	failed     error // of the latest Fetch
}

func (t *twin) end() uint64 { return uint64(t.memory) + uint64(bytesOf(max(len(t.host), 1))) }

// Pin pins an arena, so that the GPU copies the parts that are wrapped later directly. If the system refuses to pin it,
// copies go through other pinned memory.
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
	case breaksContext(codeOf(err)):
		return d.fail(err, "pin %d bytes of host memory", bytesOf(len(p)))
	}
	return nil
}

// Wrap returns the same vector when it is called again for the same memory.
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
	t := &twin{device: d, host: p}
	if err := t.make(); err != nil {
		return kernels.Vec{}, err
	}
	at, _ := slices.BinarySearchFunc(d.twins, t.memory, func(t *twin, p cu.DevicePtr) int { return cmp.Compare(t.memory, p) })
	d.twins = slices.Insert(d.twins, at, t)
	if err := d.refresh(t, 0, len(p)); err != nil {
		return kernels.Vec{}, err
	}
	return t.vec(), d.wait(d.toGPU, "wait for a copy to the GPU") // the host may write at once
}

func (t *twin) vec() kernels.Vec { return kernels.Vec{Dev: uint64(t.memory), N: len(t.host)} }

func (t *twin) make() (err error) {
	d := t.device
	if a, at := d.arenaOf(t.host); a != nil {
		err = d.checkLength(len(t.host))
		t.placed, t.memory, t.copied = true, a.memory+cu.DevicePtr(bytesOf(at)), a.part(at, len(t.host))
	} else {
		t.memory, err = d.alloc(len(t.host))
		t.copied = []kernels.Range{{Lo: 0, Hi: len(t.host)}}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !t.placed { // nothing else releases it; the caller gets the first error
			_ = cu.MemFree(t.memory)
		}
	}()
	if !slices.ContainsFunc(d.pinned, func(p []float32) bool { return spanOf(p).contains(spanOf(t.host)) }) &&
		len(t.copied) > 0 && len(t.host) > 0 {
		if t.mirror, err = allocHost(len(t.host)); err != nil {
			return d.fail(err, "pin %d bytes of host memory", bytesOf(len(t.host)))
		}
	}
	if t.copiedIn, err = d.newEvent(); err == nil {
		t.copiedOut, err = d.newEvent()
	}
	return err
}

// twinOf returns the twin that an address on the GPU belongs to; nil if there is none.
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

// use records that the next launch uses a vector, and makes the stream of kernels wait for a copy of it to the host.
func (d *device) use(v kernels.Vec) error {
	t := d.twinOf(v.Dev)
	if t == nil {
		return nil
	}
	t.lastUse = d.launched + 1
	if !t.isFetching {
		return nil
	}
	return d.fail(d.compute.Wait(t.copiedOut, 0), "wait for a copy to the host")
}

func (d *device) Refresh(v kernels.Vec) error {
	t := d.twinOf(v.Dev)
	if t == nil { // v is not wrapped memory
		return nil
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	lo := int(v.Dev-uint64(t.memory)) / elemBytes
	return d.refresh(t, lo, lo+v.N)
}

// refresh copies elements lo to hi-1 to the GPU, after the kernels that may still read the old values, and makes later
// kernels wait for the copy.
func (d *device) refresh(t *twin, lo, hi int) error {
	ordered := t.lastUse <= d.completed
	copies := false
	for r := range intersect(t.copied, lo, hi) {
		copies = true
		from := t.host[r.Lo:r.Hi]
		if t.mirror != nil {
			from = t.mirror[r.Lo:r.Hi] // no copy from the mirror is in flight, or the host could not have written
			copy(from, t.host[r.Lo:r.Hi])
		}
		if !ordered {
			ordered = true
			if err := d.orderAfter(d.toGPU, d.compute); err != nil {
				return err
			}
		}
		if err := cu.MemcpyHtoDAsync(t.at(r.Lo), pointer(from), bytesOf(r.Hi-r.Lo), d.toGPU); err != nil {
			return d.fail(err, "copy %d bytes to the GPU", bytesOf(r.Hi-r.Lo))
		}
	}
	if !copies {
		return nil
	}
	err := t.copiedIn.Record(d.toGPU)
	if err == nil {
		err = d.compute.Wait(t.copiedIn, 0)
	}
	return d.fail(err, "wait for a copy to the GPU")
}

// at returns the address of element i on the GPU.
func (t *twin) at(i int) cu.DevicePtr { return t.memory + cu.DevicePtr(bytesOf(i)) }

// orderAfter makes one stream wait for all work that is already in another stream.
func (d *device) orderAfter(waiting, other cu.Stream) error {
	err := d.orderEvent.Record(other)
	if err == nil {
		err = waiting.Wait(d.orderEvent, 0)
	}
	return d.fail(err, "order streams")
}

// Fetch returns the twin itself as the Event. So if a second Fetch starts before the first Event has passed, both Events
// are the same.
func (d *device) Fetch(v kernels.Vec) (kernels.Event, error) {
	t := d.twinOf(v.Dev)
	if t == nil || v.N == 0 {
		return passedEvent{}, nil
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := t.finishFetch(); err != nil {
		return nil, err
	}
	t.lo = int(v.Dev-uint64(t.memory)) / elemBytes
	t.hi, t.launches = t.lo+v.N, d.launched
	last := d.compute // with nothing to copy, the Event waits for the kernels only
	for r := range intersect(t.copied, t.lo, t.hi) {
		if last != d.toHost {
			last = d.toHost
			if err := d.orderAfter(d.toHost, d.compute); err != nil {
				return nil, err
			}
		}
		to := t.host
		if t.mirror != nil {
			to = t.mirror
		}
		if err := cu.MemcpyDtoHAsync(pointer(to[r.Lo:r.Hi]), t.at(r.Lo), bytesOf(r.Hi-r.Lo), d.toHost); err != nil {
			return nil, d.fail(err, "copy %d bytes to the host", bytesOf(r.Hi-r.Lo))
		}
	}
	if err := t.copiedOut.Record(last); err != nil {
		return nil, d.fail(err, "record a copy to the host")
	}
	t.isFetching = true
	return t, nil
}

// endFetch ends a Fetch whose copy is done. It copies the elements from the mirror to the host.
func (t *twin) endFetch() {
	if !t.isFetching {
		return
	}
	t.isFetching = false
	t.device.completed = max(t.device.completed, t.launches)
	if t.mirror == nil {
		return
	}
	for r := range intersect(t.copied, t.lo, t.hi) {
		copy(t.host[r.Lo:r.Hi], t.mirror[r.Lo:r.Hi])
	}
}

// finishFetch waits for the latest Fetch and ends it.
func (t *twin) finishFetch() error {
	if !t.isFetching {
		return nil
	}
	if err := t.copiedOut.Synchronize(); err != nil {
		return t.device.fail(err, "wait for a copy to the host")
	}
	t.endFetch()
	return nil
}

func (t *twin) Wait() error {
	if !t.isFetching {
		return t.failed
	}
	if err := t.device.enter(); err != nil {
		return err
	}
	defer t.device.leave()
	return t.finishFetch()
}

const notReady = 600

// Passed is also true for a Fetch that failed. Wait then returns the error.
func (t *twin) Passed() bool {
	if !t.isFetching {
		return true
	}
	if t.device.enter() != nil {
		return true
	}
	defer t.device.leave()
	switch err := t.copiedOut.Query(); {
	case err == nil:
		t.endFetch()
	case codeOf(err) == notReady:
		return false
	default:
		t.failed = t.device.fail(err, "copy to the host")
		t.isFetching = false
	}
	return true
}

// passedEvent is the Event of a vector without a twin.
type passedEvent struct{}

func (passedEvent) Passed() bool { return true }
func (passedEvent) Wait() error  { return nil }
