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
	copied []kernels.Range // the elements that Refresh and Fetch copy, ascending
}

func (d *device) Place(p []float32, reached []kernels.Range) (kernels.Vec, error) {
	if err := d.enter(); err != nil {
		return kernels.Vec{}, err
	}
	defer d.leave()
	memory, err := d.allocRaw(len(p)) // no kernel takes the whole arena
	if err != nil {
		return kernels.Vec{}, err
	}
	d.arenas = append(d.arenas, &arena{host: p, memory: memory, copied: gaps(reached, len(p))})
	if err := cu.MemsetD32Async(memory, 0, int64(max(len(p), 1)), d.compute); err != nil {
		return kernels.Vec{}, d.fail(err, "clear %d bytes", bytesOf(len(p)))
	}
	return kernels.Vec{Dev: uint64(memory), N: len(p)}, d.wait(d.compute, "clear memory") // MPI does not wait for our streams
}

// gaps returns the ranges of n elements between the given ranges.
func gaps(given []kernels.Range, n int) (between []kernels.Range) {
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

// arenaOf returns the arena that contains p, and the index of p's first element there; nil if there is none.
func (d *device) arenaOf(p []float32) (a *arena, at int) {
	i := slices.IndexFunc(d.arenas, func(a *arena) bool { return len(p) > 0 && spanOf(a.host).contains(spanOf(p)) })
	if i < 0 {
		return nil, 0
	}
	return d.arenas[i], int(spanOf(p).from-spanOf(d.arenas[i].host).from) / elemBytes
}

// part returns the ranges that are copied of the n elements from lo on. Its ranges count from lo.
func (a *arena) part(lo, n int) (copied []kernels.Range) {
	for r := range intersect(a.copied, lo, lo+n) {
		copied = append(copied, kernels.Range{Lo: r.Lo - lo, Hi: r.Hi - lo})
	}
	return copied
}

// intersect yields the intersections of the ranges with the elements lo to hi-1.
func intersect(ranges []kernels.Range, lo, hi int) iter.Seq[kernels.Range] {
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

// Detach leaves the thread without a context, so that no call on it works by luck afterwards.
func (d *device) Detach() {
	_ = cu.SetCurrentContext(cu.CUContext{}) // it fails only where no context can be current
	d.leave()
}
