//go:build cuda

package main

import (
	"fmt"
	"slices"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
	"fluentps/ps/workload"
)

// once is a device to which each vector of the host travels once only: parameters, and batches.
type once struct {
	kernels.Device
	copied map[uint64]bool // addresses of vectors
}

func newOnce(d kernels.Device) once { return once{d, map[uint64]bool{}} }

func (d once) Refresh(v kernels.Vec) error {
	if d.copied[v.Dev] {
		return nil
	}
	d.copied[v.Dev] = true
	return d.Device.Refresh(v)
}

// withoutCopies is a device that copies no gradients, and all else once.
type withoutCopies struct{ once }

func (withoutCopies) Fetch(kernels.Vec) (kernels.Event, error) { return passed{}, nil }

type passed struct{}

func (passed) Passed() bool { return true }
func (passed) Wait() error  { return nil }

// resident is a device whose batch stays where it is, and whose losses are not downloaded. So are the steps of torchbench.py.
type resident struct{ once }

func (d resident) Download([]float32, kernels.Vec) error { return nil }

// stepTimes times forward and backward alone, with the copies of a training step, and as torchbench.py does it.
func stepTimes(r *gpucheck.Report) error {
	for _, name := range r.Sizes.StepModels {
		alone, err := stepTime(name, r.Sizes, func(d kernels.Device) kernels.Device { return withoutCopies{newOnce(d)} })
		if err != nil {
			return err
		}
		copies, err := stepTime(name, r.Sizes, func(d kernels.Device) kernels.Device { return d })
		if err != nil {
			return err
		}
		whole, err := residentTime(name, r.Sizes, cuda.Options{}, true)
		if err != nil {
			return err
		}
		r.OK(name+", one step", netSize(name)(r.Sizes),
			"%.3f ms alone, %.3f ms with copies, %.3f ms with a resident batch and the optimizer", alone, copies, whole)
	}
	return nil
}

// stepTime returns the milliseconds of forward and backward of one batch.
func stepTime(name string, s gpucheck.Sizes, wrap func(kernels.Device) kernels.Device) (ms float64, err error) {
	err = onDevice(cuda.Options{}, func(d kernels.Device) error {
		m, err := newNet(name, wrap(d), s)
		if err != nil {
			return err
		}
		x := drawn(seeded(), s.Batch, samplesOf(name, s))
		ms, err = repeated(s.StepTime, d.Sync, func() error {
			if _, err := m.pass(x); err != nil {
				return err
			}
			return d.Sync()
		})
		return err
	})
	return ms, err
}

// residentTime returns the milliseconds of a step whose data and parameters never leave the GPU, with SGD and
// momentum or without an optimizer.
func residentTime(name string, s gpucheck.Sizes, o cuda.Options, learns bool) (ms float64, err error) {
	err = onDevice(o, func(d kernels.Device) error {
		step, err := residentStep(d, name, s, learns)
		if err != nil {
			return err
		}
		ms, err = repeatedByEvents(s.StepTime, d, step)
		return err
	})
	return ms, err
}

// residentStep returns what takes such a step.
func residentStep(d kernels.Device, name string, s gpucheck.Sizes, learns bool) (step func() error, err error) {
	d = resident{newOnce(d)}
	m, err := newNet(name, d, s)
	if err != nil {
		return nil, err
	}
	var arenas [3]kernels.Vec // parameters, gradients, momentum
	for i := range arenas {
		if arenas[i], err = d.Alloc(len(m.params)); err != nil {
			return nil, err
		}
	}
	if err := d.Upload(arenas[0], m.params); err != nil {
		return nil, err
	}
	var params, grads []kernels.Vec
	at := 0
	for _, p := range m.tensors {
		params, grads = append(params, arenas[0].Slice(at, at+p.N())), append(grads, arenas[1].Slice(at, at+p.N()))
		at += p.N()
	}
	m.Model.(workload.Resident).BindVecs(params, grads)
	x := drawn(seeded(), s.Batch, samplesOf(name, s))
	update := kernels.Args{V: kernels.Vecs{arenas[0], arenas[1], arenas[0], arenas[2]}, N: kernels.Sizes{len(m.params)},
		F: kernels.Scalars{0.001, 1 / float32(s.Batch), 0, 0.9}}
	return func() error {
		if _, err := m.pass(x); err != nil || !learns {
			return err
		}
		return d.Launch(kernels.Momentum, update)
	}, nil
}

// repeatedByEvents is repeated with the GPU's own clock: events before the first step of a pass and behind its last one.
func repeatedByEvents(about time.Duration, d kernels.Device, step func() error) (ms float64, err error) {
	return passMedian(about, func(count int) (time.Duration, error) {
		ms, _, err := cuda.Timed(d, func() error { return nil }, func() error { return times(count, step) })
		return time.Duration(ms * float64(time.Millisecond)), err
	})
}

// repeated returns the milliseconds of a step: the median of some passes that take about so long together.
func repeated(about time.Duration, wait func() error, step func() error) (ms float64, err error) {
	return passMedian(about, func(count int) (time.Duration, error) {
		began := time.Now()
		if err := times(count, step); err != nil {
			return 0, err
		}
		err := wait()
		return time.Since(began), err
	})
}

func times(count int, do func() error) error {
	for range count {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// passMedian returns the milliseconds of a step: the median of passes of so many steps.
func passMedian(about time.Duration, pass func(steps int) (time.Duration, error)) (ms float64, err error) {
	const passes = 5
	if _, err := pass(1); err != nil { // the first step also finds the entries
		return 0, err
	}
	count := 1
	took, err := pass(count)
	for err == nil && took < about/passes && count < 1<<20 {
		count *= 2
		took, err = pass(count)
	}
	all := []time.Duration{took}
	for err == nil && len(all) < passes && about > 0 {
		if took, err = pass(count); err == nil {
			all = append(all, took)
		}
	}
	slices.Sort(all)
	return 1e3 * all[len(all)/2].Seconds() / float64(count), err
}

// timer times launches by events, while a large product keeps the GPU busy before them.
type timer struct {
	device   kernels.Device
	card     cuda.Card
	busy     kernels.Args
	launches int
}

func newTimer(d kernels.Device, s gpucheck.Sizes) (*timer, error) {
	gpus, err := cuda.GPUs()
	if err != nil {
		return nil, err
	}
	t := &timer{device: d, launches: s.Timed}
	if t.card, err = cuda.CardOf(gpus[0]); err != nil {
		return nil, err
	}
	side := s.BusySide
	t.busy.N = kernels.Sizes{side, side, side}
	for i := range 3 {
		if t.busy.V[i], err = d.Alloc(side * side); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// keepBusy launches what takes the GPU longer than the host needs to queue some hundred launches.
func (t *timer) keepBusy() error {
	const products = 4
	for range products {
		if err := t.device.Launch(kernels.GemmNN, t.busy); err != nil {
			return err
		}
	}
	return nil
}

// timed returns the seconds of a launch, of many between two events. queued is false if the GPU had to wait for launches.
func (t *timer) timed(launch func() error) (seconds float64, queued bool, err error) {
	if err := launch(); err != nil { // finds the entry, and makes scratch
		return 0, false, err
	}
	if err := t.device.Sync(); err != nil {
		return 0, false, err
	}
	ms, queued, err := cuda.Timed(t.device, t.keepBusy, func() error { return times(t.launches, launch) })
	return ms / 1e3 / float64(t.launches), queued, err
}

// row times a kernel and sends its row: the time of a launch, its rates, and their share of the card's own peak.
func (t *timer) row(r *gpucheck.Report, k *kernels.Kernel, n kernels.Sizes, name, size string) error {
	a := kernels.Args{N: n, F: k.Bench.Scalars}
	for v, count := range k.Need(n) {
		if count == 0 {
			continue
		}
		made, err := t.device.Alloc(count)
		if err != nil {
			return err
		}
		if err := t.device.Upload(made, legal(k, v, count)); err != nil {
			return err
		}
		a.V[v] = made
	}
	seconds, queued, err := t.timed(func() error { return t.device.Launch(k, a) })
	if err != nil {
		return err
	}
	flops, bytes := k.Cost(n)
	compute, memory := flops/seconds/t.card.FLOPs(), bytes/seconds/t.card.Bytes()
	text := fmt.Sprintf("%.2f us, %.0f GFLOP/s (%.0f %% of the card), %.0f GB/s (%.0f %%)", 1e6*seconds,
		flops/seconds/1e9, 100*compute, bytes/seconds/1e9, 100*memory)
	if !queued {
		text += "; the GPU waited for launches"
	}
	r.OK(name, size, "%s", text)
	return nil
}

// kernelTimes times every kernel in the layers of networks at batch 128.
func kernelTimes(r *gpucheck.Report) error {
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		t, err := newTimer(d, r.Sizes)
		if err != nil {
			return err
		}
		for _, k := range kernels.Table {
			for _, l := range k.Bench.Layers[:min(len(k.Bench.Layers), r.Sizes.LayersMax)] {
				var n kernels.Sizes
				copy(n[:], r.Sizes.Layer(l.N))
				if err := t.row(r, k, n, k.Name+", "+l.Name, gpucheck.By(n[:len(l.N)])); err != nil {
					return fmt.Errorf("%s, %s: %w", k.Name, l.Name, err)
				}
			}
		}
		return nil
	})
}

// productTimes times products by our kernels, and by cuBLAS in float32 and in TF32. The peak is that without tensor cores, so TF32 may
// be above it.
func productTimes(r *gpucheck.Report) error {
	for _, o := range []cuda.Options{{Gemm: cuda.Own}, {Gemm: cuda.CuBLAS}, {Gemm: cuda.CuBLAS, Math: cuda.TF32}} {
		name := map[cuda.Options]string{{Gemm: cuda.Own}: "own", {Gemm: cuda.CuBLAS}: "cuBLAS",
			{Gemm: cuda.CuBLAS, Math: cuda.TF32}: "cuBLAS in TF32"}[o]
		err := onDevice(o, func(d kernels.Device) error {
			t, err := newTimer(d, r.Sizes)
			if err != nil {
				return err
			}
			for _, n := range r.Sizes.Products {
				if err := t.row(r, kernels.GemmNT, n, "gemm_nt, "+name, gpucheck.By(n[:3])); err != nil {
					return err
				}
			}
			return nil
		})
		if isUnusable(err) {
			r.Skip("gemm_nt, "+name, productsOf(r.Sizes), "%v", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}
