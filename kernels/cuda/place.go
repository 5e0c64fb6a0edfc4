//go:build cuda

package cuda

import (
	"iter"
	"slices"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// arena is memory on the GPU for host memory that is wrapped in parts.
type arena struct {
	host   []float32
	memory cu.DevicePtr
	copied []kernels.Range // ascending: what Refresh and Fetch copy
}

func (d *device) Place(p []float32, reached []kernels.Range) (kernels.Vec, error) {
	if err := d.enter(); err != nil {
		return kernels.Vec{}, err
	}
	defer d.leave()
	memory, err := d.take(len(p)) // no kernel gets it whole
	if err != nil {
		return kernels.Vec{}, err
	}
	d.arenas = append(d.arenas, &arena{host: p, memory: memory, copied: others(reached, len(p))})
	if err := cu.MemsetD32Async(memory, 0, int64(max(len(p), 1)), d.compute); err != nil {
		return kernels.Vec{}, d.fail(err, "clear %d bytes", bytesOf(len(p)))
	}
	return kernels.Vec{Dev: uint64(memory), N: len(p)}, d.wait(d.compute, "clear memory") // others do not wait for streams
}

// others are the ranges of n elements between the given ones.
func others(given []kernels.Range, n int) (between []kernels.Range) {
	at := 0
	for _, r := range given {
		if at < r.Lo {
			between = append(between, kernels.Range{Lo: at, Hi: r.Lo})
		}
		at = r.Hi
	}
	if at < n {
		between = append(between, kernels.Range{Lo: at, Hi: n})
	}
	return between
}

// arenaOf finds where memory was placed that p is part of.
func (d *device) arenaOf(p []float32) (a *arena, at int) {
	i := slices.IndexFunc(d.arenas, func(a *arena) bool { return len(p) > 0 && spanOf(a.host).has(spanOf(p)) })
	if i < 0 {
		return nil, 0
	}
	return d.arenas[i], int(spanOf(p).from-spanOf(d.arenas[i].host).from) / elemBytes
}

// part is what is copied of n elements from lo on, counted from there.
func (a *arena) part(lo, n int) (copied []kernels.Range) {
	for r := range within(a.copied, lo, lo+n) {
		copied = append(copied, kernels.Range{Lo: r.Lo - lo, Hi: r.Hi - lo})
	}
	return copied
}

// within are the parts of ranges that lie in lo to hi-1.
func within(ranges []kernels.Range, lo, hi int) iter.Seq[kernels.Range] {
	return func(yield func(kernels.Range) bool) {
		for _, r := range ranges {
			r = kernels.Range{Lo: max(r.Lo, lo), Hi: min(r.Hi, hi)}
			if r.Lo < r.Hi && !yield(r) {
				return
			}
		}
	}
}

func (d *device) Attach() error { return d.enter() }

func (d *device) Detach() { d.leave() }
