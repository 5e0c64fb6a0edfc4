package steps

import (
	"fmt"

	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// Device is Vectors on a device with memory of its own. Kernels do the arithmetic of Host, product by product: on a device whose kernels
// round each product the bits are those of Host, and a GPU may fuse products into sums.
type Device struct {
	*optim.Inner // the terms of steps; the state is on the device
	dev          kernels.Device
	o            *Options
	v            [vectorsN]kernels.Vec
	state        []kernels.Vec
	constants    kernels.Vec     // of adam
	leaving      []kernels.Event // what Left waits for
	saved        []copied        // what Save returned last
	err          error           // of the first call of the device that failed; it stays, and the device is called no more
}

// copied is a vector of the device, with the copy of it that Save returned.
type copied struct {
	on   kernels.Vec
	host []float32
}

// FitsDevice says whether a device can do all of a worker's arithmetic. A state that is averaged stays on the host.
// There is no kernel for the correction of hpsgd (compensate), nor for L1 penalties, and a vector has a limit.
func FitsDevice(o *Options) bool {
	if o.Spec.Compensate > 0 || o.States != nil || o.Plan.Arena > kernel.GPUElementsMax ||
		optim.NewInner(0, o.Update).Terms(optim.Run{}, 0, 1).Rule == "" {
		return false
	}
	for i := range o.Plan.Pieces {
		for _, q := range o.Runs(&o.Plan.Pieces[i]) {
			if q.L1 != 0 {
				return false
			}
		}
	}
	return true
}

// OnDevice makes them on a device: Global and Outgoing as the device's side of host memory, all else there only. It fails if the device has
// not enough memory.
func OnDevice(o *Options, dev kernels.Device, global, push []float32) (*Device, error) {
	d := &Device{Inner: optim.NewInner(0, o.Update), dev: dev, o: o}
	var failed error
	keep := func(v kernels.Vec, err error) kernels.Vec {
		if err != nil && failed == nil {
			failed = fmt.Errorf("on the device, where they stay between exchanges: %w", err)
		}
		return v
	}
	n := o.Plan.Arena
	d.v[Own], d.v[Grads] = keep(dev.Alloc(n)), keep(dev.Alloc(n))
	d.v[Global], d.v[Outgoing] = keep(dev.Wrap(global)), keep(dev.Wrap(push))
	if e, _ := local.All.Lookup(o.Spec.Policy); e.KeepsBase() {
		d.v[Base] = keep(dev.Alloc(n))
	}
	for range o.Update.Rule.State() {
		d.state = append(d.state, keep(dev.Alloc(n)))
	}
	if t := d.Terms(optim.Run{}, 0, 1); (t.Rule == "adam" || t.Rule == "adamw") && failed == nil {
		d.constants = keep(dev.Alloc(len(t.Adam)))
		if failed == nil {
			failed = dev.Upload(d.constants, t.Adam[:])
		}
	}
	return d, failed
}

// Views cuts a vector into one for each parameter, in model order.
func (d *Device) Views(name Vector) []kernels.Vec {
	views := make([]kernels.Vec, len(d.o.Plan.Params))
	for k, p := range d.o.Plan.Params {
		views[k] = d.v[name].Slice(d.o.Plan.At[k], d.o.Plan.At[k]+p.N)
	}
	return views
}

// do calls the device, unless it has failed.
func (d *Device) do(what string, call func() error) {
	if d.err != nil {
		return
	}
	if err := call(); err != nil {
		d.err = fmt.Errorf("the worker's own steps: %s: %w", what, err)
	}
}

func (d *Device) launch(k *kernels.Kernel, f kernels.Scalars, v ...kernels.Vec) {
	if d.err != nil {
		return
	}
	a := kernels.Args{N: kernels.Sizes{v[0].Len()}, F: f}
	copy(a.V[:], v)
	if err := d.dev.Launch(k, a); err != nil {
		d.err = fmt.Errorf("the worker's own steps: kernel %s: %w", k.Name, err)
	}
}

func (d *Device) Err() error { return d.err }

func (d *Device) part(name Vector, lo, hi int) kernels.Vec { return d.v[name].Slice(lo, hi) }

func (d *Device) Arrived(lo, hi int) {
	d.do("copy to the device", func() error { return d.dev.Refresh(d.part(Global, lo, hi)) })
}

func (d *Device) Leave(lo, hi int) {
	d.do("copy to the host", func() error {
		e, err := d.dev.Fetch(d.part(Outgoing, lo, hi))
		if err == nil {
			d.leaving = append(d.leaving, e)
		}
		return err
	})
}

func (d *Device) Left() {
	for _, e := range d.leaving {
		d.do("copy to the host", e.Wait)
	}
	d.leaving = d.leaving[:0]
}

// download copies a vector to the host. After a failure host has what it had.
func (d *Device) download(host []float32, v kernels.Vec) {
	d.do("copy to the host", func() error { return d.dev.Download(host, v) })
}

func (d *Device) Copy(dst, src Vector, lo, hi int) { d.Scale(dst, src, lo, hi, 1) }

func (d *Device) Scale(dst, src Vector, lo, hi int, by float32) {
	d.launch(kernels.Scale, kernels.Scalars{by}, d.part(src, lo, hi), d.part(dst, lo, hi))
}

func (d *Device) Add(dst, src Vector, lo, hi int, by float32) {
	d.launch(kernels.Axpy, kernels.Scalars{by}, d.part(src, lo, hi), d.part(dst, lo, hi))
}

func (d *Device) Read(v Vector) []float32 {
	host := make([]float32, d.v[v].Len())
	d.download(host, d.v[v])
	return host
}

// Fault has nothing to tell: the values stay on the device.
func (d *Device) Fault() (f *optim.Fault, looks bool) { return nil, false }

// Squares copies the elements to the host: there is no kernel that adds squares up in one order on all devices.
func (d *Device) Squares(v Vector, lo, hi int) float64 {
	host := make([]float32, hi-lo)
	d.download(host, d.part(v, lo, hi))
	return optim.Squares(host)
}

func (d *Device) Mix(lo, hi int, keep float32) {
	if keep == 0 {
		d.Copy(Own, Global, lo, hi)
		return
	}
	d.Add(Own, Global, lo, hi, -1)
	d.Scale(Own, Own, lo, hi, keep)
	d.Add(Own, Global, lo, hi, 1)
}

func (d *Device) Change(dst, after, before Vector, lo, hi int, weight float32) {
	if dst != after {
		d.Copy(dst, after, lo, hi)
	}
	d.Add(dst, before, lo, hi, -1)
	if weight != 1 {
		d.Scale(dst, dst, lo, hi, weight)
	}
}

func (d *Device) Compensate(int, int, float32, float32) {
	panic("steps: no kernel compensates changes; FitsDevice was not asked")
}

func (d *Device) Step(q optim.Run, step, samples int64) {
	t := d.Terms(q, step, samples)
	own, grads := d.part(Own, q.Lo, q.Hi), d.part(Grads, q.Lo, q.Hi)
	state := func(i int) kernels.Vec { return d.state[i].Slice(q.Lo, q.Hi) }
	switch t.Rule {
	case "sgd":
		d.launch(kernels.SGD, kernels.Scalars{t.LR, t.GradScale, t.Decay}, own, grads, own)
	case "momentum":
		d.launch(kernels.Momentum, kernels.Scalars{t.LR, t.GradScale, t.Decay, t.Momentum}, own, grads, own, state(0))
	case "nesterov":
		d.launch(kernels.Nesterov, kernels.Scalars{t.LR, t.GradScale, t.Decay, t.Momentum}, own, grads, own, state(0))
	case "adam", "adamw":
		if t.Lost != 0 {
			d.launch(kernels.SGD, kernels.Scalars{t.Lost, 0, 1}, own, grads, own)
		}
		d.launch(kernels.Adam, kernels.Scalars{t.GradScale, t.Decay, t.Rate, t.Root}, own, grads, own, state(0), state(1), d.constants)
	default:
		panic("steps: no kernel takes the step of the rule; FitsDevice was not asked")
	}
}

func (d *Device) Save(named ...Vector) (vectors [][]float32, steps int64) {
	all := append([]kernels.Vec(nil), d.state...)
	for _, name := range named {
		all = append(all, d.v[name])
	}
	for i, v := range all {
		if i == len(d.saved) {
			d.saved = append(d.saved, copied{host: make([]float32, v.Len())})
		}
		d.saved[i].on = v
		d.download(d.saved[i].host, v)
		vectors = append(vectors, d.saved[i].host)
	}
	_, steps = d.Inner.State()
	return vectors, steps
}

func (d *Device) Restored() {
	for _, c := range d.saved {
		d.do("copy to the device", func() error { return d.dev.Upload(c.on, c.host) })
	}
}
