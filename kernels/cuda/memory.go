//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// stage is pinned memory through which pageable host memory is copied.
type stage struct {
	memory []float32
	copied cu.Event // passed when the latest copy from memory is done
}

// stages is how many uploads may be in flight. An iteration has two: samples and labels.
const stages = 4

var errTooLong = fmt.Errorf("kernels count the elements of a vector in 32 bits, at most %d; take smaller batches "+
	"or layers, or compute on the CPU (device.kind: cpu)", kernel.GPUElementsMax)

var errTooWide = fmt.Errorf("a grid has at most %d blocks in y and in z; take smaller batches or layers, or "+
	"compute on the CPU (device.kind: cpu)", kernel.GridMax)

func bytesOf(n int) int64 { return int64(n) * elemBytes }

// alloc returns n elements of the GPU's memory, for kernels. An empty vector has an address too, as on the host.
func (d *device) alloc(n int) (cu.DevicePtr, error) {
	if n < 0 {
		return 0, fmt.Errorf("cuda: cannot allocate %d elements", n)
	}
	if err := d.checkLength(n); err != nil {
		return 0, err
	}
	return d.allocRaw(n)
}

// checkLength returns an error if a vector of n elements is too long for kernels.
func (d *device) checkLength(n int) error {
	if n > kernel.GPUElementsMax {
		return d.fail(errTooLong, "allocate %d elements", n)
	}
	return nil
}

// allocRaw returns n elements of the GPU's memory, without a limit on their number.
func (d *device) allocRaw(n int) (cu.DevicePtr, error) {
	p, err := cu.MemAlloc(bytesOf(max(n, 1)))
	if err != nil {
		free, total, _ := cu.MemInfo() // 0 of 0 if the driver does not know
		return 0, d.fail(err, "allocate %d bytes (%d of %d are free)", bytesOf(n), free, total)
	}
	return p, nil
}

func (d *device) Alloc(n int) (kernels.Vec, error) {
	if err := d.enter(); err != nil {
		return kernels.Vec{}, err
	}
	defer d.leave()
	p, err := d.alloc(n)
	if err != nil {
		return kernels.Vec{}, err
	}
	d.allocated = append(d.allocated, p)
	if err := cu.MemsetD32Async(p, 0, int64(max(n, 1)), d.compute); err != nil {
		return kernels.Vec{}, d.fail(err, "clear %d bytes", bytesOf(n))
	}
	return kernels.Vec{Dev: uint64(p), N: n}, nil
}

// nextStage returns the next stage. It has space for at least n elements, and no copy from it is in flight.
func (d *device) nextStage(n int) (*stage, error) {
	if len(d.staging) < stages {
		s := &stage{}
		var err error
		if s.copied, err = d.newEvent(); err != nil {
			return nil, err
		}
		d.staging = append(d.staging, s)
	}
	d.latestStage = (d.latestStage + 1) % len(d.staging)
	s := d.staging[d.latestStage]
	if err := s.copied.Synchronize(); err != nil {
		return nil, d.fail(err, "wait for an upload")
	}
	if len(s.memory) >= n {
		return s, nil
	}
	if err := freeHost(s.memory); err != nil {
		return nil, d.fail(err, "release pinned memory")
	}
	s.memory = nil
	var err error
	if s.memory, err = allocHost(n); err != nil {
		return nil, d.fail(err, "pin %d bytes of host memory", bytesOf(n))
	}
	return s, nil
}

func (d *device) Upload(dst kernels.Vec, src []float32) error {
	if dst.Len() < len(src) {
		return fmt.Errorf("cuda: upload of %d elements into a vector of %d", len(src), dst.Len())
	}
	if len(src) == 0 {
		return nil
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	s, err := d.nextStage(len(src))
	if err != nil {
		return err
	}
	copy(s.memory, src)
	if err := d.use(dst); err != nil {
		return err
	}
	if err := cu.MemcpyHtoDAsync(cu.DevicePtr(dst.Dev), pointer(s.memory), bytesOf(len(src)), d.compute); err != nil {
		return d.fail(err, "upload %d bytes", bytesOf(len(src)))
	}
	if err := s.copied.Record(d.compute); err != nil {
		return d.fail(err, "record an upload")
	}
	return nil
}

func (d *device) Download(dst []float32, src kernels.Vec) error {
	if src.Len() < len(dst) {
		return fmt.Errorf("cuda: download of %d elements from a vector of %d", len(dst), src.Len())
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if len(dst) > 0 {
		s, err := d.nextStage(len(dst))
		if err != nil {
			return err
		}
		if err := cu.MemcpyDtoHAsync(pointer(s.memory), cu.DevicePtr(src.Dev), bytesOf(len(dst)), d.compute); err != nil {
			return d.fail(err, "download %d bytes", bytesOf(len(dst)))
		}
		defer func() { copy(dst, s.memory) }()
	}
	if err := d.wait(d.compute, "wait for kernels"); err != nil {
		return err
	}
	d.completed = d.launched
	return nil
}

func pointer(p []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }
