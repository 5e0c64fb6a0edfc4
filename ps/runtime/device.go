package runtime

import (
	"errors"
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/kernels"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
)

// Unit is what a rank computes on.
type Unit struct {
	kernels.Device
	ID   string // of a GPU, the same on all ranks that share it; "" of the host's processor
	Note string // why it is not what it might have been; "" if it is
}

// unitReport is what rank 0 knows of a rank's unit. Name, ID and CUDAAware are empty of a rank that computes no gradients.
type unitReport struct {
	Name, ID  string
	CUDAAware string // whether MPI reaches its memory; "" if it has none of its own
	KernelSet string // of its unit; of the host's processor where it only evaluates
	Weak      string // what keeps its kernels below what the hardware can do
}

// newUnit is a device of this rank: where it computes, what the options choose for it; else, and where they choose
// nothing, the host's processor. So a rank that only serves never touches a GPU.
func (r *rank) newUnit() (Unit, error) {
	i := slices.Index(r.computes, r.me)
	if i >= 0 && r.o.NewUnit != nil {
		local := 0
		for _, before := range r.computes[:i] {
			if r.hosts[before] == r.hosts[r.me] {
				local++
			}
		}
		return r.o.NewUnit(local)
	}
	device, err := r.o.NewDevice()
	return Unit{Device: device}, err
}

// openUnit finds what this rank computes on, and tells rank 0. Ranks that want what their host does not have end the run
// for all.
func (r *rank) openUnit() error {
	var wrong, failed error
	var mine unitReport
	if slices.Contains(r.computes, r.me) {
		var err error
		var broken *kernels.Failure
		if r.unit, err = r.newUnit(); errors.As(err, &broken) {
			failed = err
		} else if err != nil {
			wrong = err
		} else {
			mine = unitReport{Name: r.unit.Name(), ID: r.unit.ID}
			mine.CUDAAware, wrong = r.reachUnit()
			mine.describe(r.unit.Device)
		}
	} else if evaluates, err := r.o.NewDevice(); err != nil {
		wrong = err
	} else {
		mine.describe(evaluates)
		failed = evaluates.Close()
	}
	if err := r.net.Agree(wrong, CodeUsage); err != nil {
		return err
	}
	if err := r.net.Agree(failed, CodeFailed); err != nil {
		return err
	}
	var err error
	r.units, err = link.Gather(r.net, mine)
	return err
}

func (u *unitReport) describe(device kernels.Device) {
	if d, ok := device.(kernels.Describer); ok {
		u.KernelSet, u.Weak = d.KernelSet(), d.Weak()
	}
}

// unitWarnings finds what is odd about the devices of a run.
func unitWarnings(units []unitReport, hosts []string) []string {
	warnings := kernelWarnings(units)
	gpus, cpus := 0, 0
	ranks, ids := map[string]int{}, map[string][]string{}
	var order []string
	for rank, u := range units {
		switch h := hosts[rank]; {
		case u.ID != "":
			gpus++
			if ranks[h]++; ranks[h] == 1 {
				order = append(order, h)
			}
			if !slices.Contains(ids[h], u.ID) {
				ids[h] = append(ids[h], u.ID)
			}
		case u.Name != "":
			cpus++
		}
	}
	if gpus > 0 && cpus > 0 {
		warnings = append(warnings, fmt.Sprintf("%s on GPUs and %s on CPUs: results differ in the last bits, and speeds by far",
			verbed(gpus, "computes", "compute"), verbed(cpus, "computes", "compute")))
	}
	for _, h := range order {
		if n := len(ids[h]); ranks[h] > n {
			warnings = append(warnings, fmt.Sprintf("host %s: %s on %s: they take turns, so their computing times depend on each other; start as many workers as GPUs, or MPS",
				h, verbed(ranks[h], "computes", "compute"), metrics.Count(n, "GPU")))
		}
	}
	return warnings
}

func verbed(n int, one, many string) string {
	if n == 1 {
		return metrics.Count(n, "rank") + " " + one
	}
	return metrics.Count(n, "rank") + " " + many
}

// unitLog tells once what a worker computes on.
func (r *rank) unitLog() {
	if r.unit.Device == nil {
		return
	}
	if r.unit.Note != "" {
		r.log.Info("computes on "+r.unit.Name(), "why", r.unit.Note)
		return
	}
	r.log.Info("computes on " + r.unit.Name())
}

// announce tells a device with memory of its own of arenas that it will copy.
func announce(device kernels.Device, arenas ...*comm.Buf) error {
	if p, ok := device.(kernels.Pinner); ok {
		for _, b := range arenas {
			if err := p.Pin(b.F32()); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindModel hands the model its arenas.
func (w *workerSide) bindModel(params, grads *comm.Buf) error {
	if err := announce(w.device, params, grads); err != nil {
		return err
	}
	if err := w.place(params, grads); err != nil {
		return err
	}
	w.model.Bind(w.r.plan.Views(params.F32()), w.r.plan.Views(grads.F32()))
	return nil
}
