//go:build cuda

package cuda

// #include <dlfcn.h>
// #include <stdlib.h>
import "C"

import (
	_ "embed" // names.txt
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// What follows asks the driver and the card what training does not need to know. It is for package gpucheck/check.

// Card is what the driver says of a GPU.
type Card struct {
	Driver              int // the CUDA version of the driver: 13000 is 13.0
	Major, Minor        int // compute capability
	Multiprocessors     int
	ClockKHz, MemoryKHz int // the highest clocks
	BusBits, L2Bytes    int
}

// CardOf asks the driver about a GPU.
func CardOf(g GPU) (Card, error) {
	c := Card{Driver: cu.Version()}
	d, err := cu.GetDevice(g.Index)
	for _, a := range []struct {
		what cu.DeviceAttribute
		to   *int
	}{
		{cu.ComputeCapabilityMajor, &c.Major}, {cu.ComputeCapabilityMinor, &c.Minor}, {cu.MultiprocessorCount, &c.Multiprocessors},
		{cu.ClockRate, &c.ClockKHz}, {cu.MemoryClockRate, &c.MemoryKHz}, {cu.GlobalMemoryBusWidth, &c.BusBits}, {cu.L2CacheSize, &c.L2Bytes},
	} {
		if err == nil {
			*a.to, err = d.Attribute(a.what)
		}
	}
	if err != nil {
		return c, unusable("the driver cannot describe GPU %d of %s: %s", g.Index, host(), errorText(err))
	}
	return c, nil
}

// lanes are the float32 multiply-adds that a multiprocessor does in each cycle, by compute capability (CUDA C++ Programming Guide,
// table of the throughput of arithmetic instructions).
var lanes = map[[2]int]int{
	{6, 0}: 64, {6, 1}: 128, {7, 0}: 64, {7, 5}: 64, {8, 0}: 64, {8, 6}: 128, {8, 7}: 128, {8, 9}: 128, {9, 0}: 128,
	{10, 0}: 128, {10, 3}: 128, {12, 0}: 128,
}

// FLOPs returns the card's peak in float32 without tensor cores, in operations per second: multiprocessors x lanes x clock x 2. It is 0 if
// the lanes of the card are not known.
func (c Card) FLOPs() float64 {
	return 2 * float64(c.Multiprocessors) * float64(lanes[[2]int{c.Major, c.Minor}]) * 1e3 * float64(c.ClockKHz)
}

// Bytes returns the peak of the card's memory in bytes per second: bus width x clock x 2, because memory moves data at both edges.
func (c Card) Bytes() float64 { return 2 * float64(c.BusBits) / 8 * 1e3 * float64(c.MemoryKHz) }

//go:embed cuload/names.txt
var names string

// Functions looks up the functions that the program is linked with. It returns how many there are, and those that the driver lacks.
func Functions() (linked int, missing []string, err error) {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	driver := C.dlopen(path, C.RTLD_NOW|C.RTLD_LOCAL)
	if driver == nil {
		return 0, nil, unusable("%s cannot be opened on %s: %s", library, host(), C.GoString(C.dlerror()))
	}
	all := strings.Fields(names)
	for _, name := range all {
		symbol := C.CString(name)
		if C.dlsym(driver, symbol) == nil {
			missing = append(missing, name)
		}
		C.free(unsafe.Pointer(symbol))
	}
	return len(all), missing, nil
}

// Timed returns the milliseconds that the GPU needs for what run launches, between two events. The launches must not wait for the GPU.
// Before them, busy launches work during which the host queues them, so that the time is the GPU's and not that of the launches. queued is
// false if the GPU was done with that work too early.
func Timed(d kernels.Device, busy, run func() error) (ms float64, queued bool, err error) {
	between, queued, err := Intervals(d, 1, busy, func(mark func() error) error {
		if err := run(); err != nil {
			return err
		}
		return mark()
	})
	if err != nil {
		return 0, false, err
	}
	return between[0], queued, nil
}

// Intervals is Timed with several events: it returns the milliseconds from the begin of run to its first mark, from
// that to the next one, and so on. run makes at most marksMax marks.
func Intervals(d kernels.Device, marksMax int, busy func() error, run func(mark func() error) error) (ms []float64,
	queued bool, err error) {
	dev := d.(*device)
	if err := dev.enter(); err != nil {
		return nil, false, err
	}
	defer dev.leave()
	events := make([]cu.Event, marksMax+1)
	for i := range events {
		if events[i], err = cu.MakeEvent(cu.DefaultEvent); err != nil {
			return nil, false, dev.fail(err, "make an event")
		}
		defer func() {
			if destroyed := cu.DestroyEvent(&events[i]); err == nil && destroyed != nil {
				err = dev.fail(destroyed, "release an event")
			}
		}()
	}
	marks := 0
	mark := func() error {
		if marks > marksMax {
			return fmt.Errorf("cuda: more than %d marks", marksMax)
		}
		marks++
		return events[marks-1].Record(dev.compute)
	}
	for _, step := range []func() error{busy, mark, func() error { return run(mark) }} {
		if err = step(); err != nil {
			return nil, false, dev.fail(err, "time launches")
		}
	}
	queued = codeOf(events[0].Query()) == notReady
	err = events[marks-1].Synchronize()
	for i := 1; i < marks && err == nil; i++ {
		var between float64
		between, err = events[i-1].Elapsed(events[i])
		ms = append(ms, between)
	}
	return ms, queued, dev.fail(err, "time launches")
}

// CopyPinned pins p, copies it to the GPU and back, and returns the milliseconds of both copies. It is an error if the system does not
// pin p, or if other values come back.
func CopyPinned(d kernels.Device, p []float32) (in, out float64, err error) {
	dev := d.(*device)
	on, err := dev.Alloc(len(p))
	if err != nil {
		return 0, 0, err
	}
	if err := dev.enter(); err != nil {
		return 0, 0, err
	}
	defer dev.leave()
	if err := pin(p); err != nil {
		return 0, 0, dev.fail(err, "pin %d bytes of host memory", bytesOf(len(p)))
	}
	defer func() {
		if unpinned := unpin(p); err == nil && unpinned != nil {
			err = dev.fail(unpinned, "release pinned memory")
		}
	}()
	sent := slices.Clone(p)
	none := func() error { return nil }
	in, _, err = Timed(d, none, func() error {
		return cu.MemcpyHtoDAsync(cu.DevicePtr(on.Dev), pointer(p), bytesOf(len(p)), dev.compute)
	})
	if err != nil {
		return 0, 0, err
	}
	clear(p)
	out, _, err = Timed(d, none, func() error {
		return cu.MemcpyDtoHAsync(pointer(p), cu.DevicePtr(on.Dev), bytesOf(len(p)), dev.compute)
	})
	if err == nil && !slices.Equal(p, sent) {
		err = fmt.Errorf("%d bytes came back from the GPU with other values", bytesOf(len(p)))
	}
	return in, out, err
}
