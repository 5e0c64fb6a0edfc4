package verbs

import (
	"errors"
	"fmt"

	"fluentps/internal/configs"
	ps "fluentps/internal/rank/runtime"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/cuda"
)

// newUnit opens the device that a rank computes on. local is the number of computing ranks before it on its host; crowded says that
// the host has more ranks than cores.
func newUnit(c configs.Device, local int, crowded bool) (ps.Unit, error) {
	if c.Kind == "cpu" {
		device, err := newCPU(c.Threads)
		return ps.Unit{Device: device}, err
	}
	index, options := c.Index, cuda.Options{Gemm: c.Gemm, Math: c.Math}
	if c.Kind != "cuda" { // the other keys belong to kind cuda
		index, options = -1, cuda.Options{Gemm: cuda.Auto}
	}
	options.Sleep = crowded
	gpus, err := cuda.GPUs()
	if err != nil {
		if c.Kind == "auto" {
			device, missing := newCPU(c.Threads)
			return ps.Unit{Device: device, Note: err.Error()}, missing
		}
		return ps.Unit{}, noGPU(err)
	}
	gpu, err := cuda.Pick(gpus, index, local)
	if err != nil {
		return ps.Unit{}, fmt.Errorf("device.index: %w; they count from 0", err)
	}
	device, err := cuda.New(gpu, options)
	if lacks := (*cuda.Unusable)(nil); errors.As(err, &lacks) {
		return ps.Unit{}, noGPU(err)
	}
	unit := ps.Unit{Device: device, ID: gpu.UUID}
	if d, ok := device.(interface{ PassedOver() string }); ok {
		unit.Note = d.PassedOver()
	}
	return unit, err
}

// newCPU opens the processor of this host, with the kernels that it can run.
func newCPU(threads int) (kernels.Device, error) {
	if err := cpu.Open(); err != nil {
		return nil, err
	}
	return cpu.New(threads), nil
}

// noGPU explains why a rank cannot compute on a GPU as configured, and how to compute on the CPU instead.
func noGPU(err error) error {
	return fmt.Errorf("device: cuda, but %w; to compute on the CPU there, set device.kind: auto, or cpu", err)
}

// devices names the kinds of device that this build can open.
func devices() string {
	if cuda.Built {
		return "cpu cuda"
	}
	return "cpu   (no GPU: built without CUDA, make build CUDA=1)"
}

// openDevice opens a device for this process. kind is a value of device.kind; any other one is an error.
func openDevice(kind string, threads int) (kernels.Device, error) {
	if kind != "cpu" && kind != "cuda" && kind != "auto" {
		return nil, fmt.Errorf("there is no device %q; there are: cpu, cuda, and auto, a GPU where this binary and this host have one", kind)
	}
	u, err := newUnit(configs.Device{Kind: kind, Index: -1, Threads: threads}, 0, false)
	return u.Device, err
}
