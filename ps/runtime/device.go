package runtime

import (
	"errors"
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/ps/coordinate"
	"fluentps/ps/link"
)

// Unit is what a rank computes on.
type Unit struct {
	kernels.Device
	ID   string // of a GPU, the same on all ranks that share it; "" of the host's processor
	Note string // why it is not what it might have been; "" if it is
}

// newUnit is a device of this rank: where it computes, what the options choose for it; else, and where they choose
// nothing, the host's processor. So a rank that only serves never touches a GPU.
func (r *rank) newUnit() (Unit, error) {
	i := slices.Index(r.station.Computes, r.station.Me)
	if i >= 0 && r.o.NewUnit != nil {
		local := 0
		for _, before := range r.station.Computes[:i] {
			if r.station.Hosts[before] == r.station.Hosts[r.station.Me] {
				local++
			}
		}
		return r.o.NewUnit(local)
	}
	device, err := r.o.NewDevice()
	return Unit{Device: device}, err
}

// newDevice is the device of such a unit.
func (r *rank) newDevice() (kernels.Device, error) {
	u, err := r.newUnit()
	return u.Device, err
}

// openUnit finds what this rank computes on, and tells rank 0. Ranks that want what their host does not have end the run
// for all.
func (r *rank) openUnit() error {
	var wrong, failed error
	var mine coordinate.UnitReport
	if slices.Contains(r.station.Computes, r.station.Me) {
		var err error
		var broken *kernels.Failure
		if r.unit, err = r.newUnit(); errors.As(err, &broken) {
			failed = err
		} else if err != nil {
			wrong = err
		} else {
			mine = coordinate.UnitReport{Name: r.unit.Name(), ID: r.unit.ID}
			mine.CUDAAware, wrong = r.reachUnit()
			mine.Describe(r.unit.Device)
		}
	} else if evaluates, err := r.o.NewDevice(); err != nil {
		wrong = err
	} else {
		mine.Describe(evaluates)
		failed = evaluates.Close()
	}
	if err := r.station.Net.Agree(wrong, CodeUsage); err != nil {
		return err
	}
	if err := r.station.Net.Agree(failed, CodeFailed); err != nil {
		return err
	}
	var err error
	r.run.Units, err = link.Gather(r.station.Net, mine)
	return err
}

// unitLog tells once what a worker computes on.
func (r *rank) unitLog() {
	if r.unit.Device == nil {
		return
	}
	if r.unit.Note != "" {
		r.station.Log.Info("computes on "+r.unit.Name(), "why", r.unit.Note)
		return
	}
	r.station.Log.Info("computes on " + r.unit.Name())
}

// reachUnit finds out whether MPI reaches the memory of this rank's device, and says it in words: none of a device without
// memory of its own. It is an error if MPI must reach it and does not.
func (r *rank) reachUnit() (answer string, err error) {
	wanted := r.station.Config.Device.CUDAAwareMPI
	device, ok := r.unit.Device.(kernels.Placer)
	switch {
	case !ok:
		return "", nil
	case wanted == configs.CUDAAwareOff:
		return "not asked: device.cuda_aware_mpi is off", nil
	}
	no := errors.New("ranks of one process do without MPI")
	if t, ok := r.station.Transport.(comm.CUDAAware); ok {
		no = t.CUDAAware()
	}
	switch {
	case no == nil:
		r.reached = device
		return "yes", nil
	case wanted == configs.CUDAAwareOn:
		return "", fmt.Errorf("device.cuda_aware_mpi: on, but %w; take an MPI that is built with CUDA, or set device.cuda_aware_mpi: auto", no)
	}
	return "no: " + no.Error(), nil
}
