package runtime

import (
	"errors"
	"fmt"
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/link"
	"fluentps/kernels"
	"fluentps/ps/workload"
)

// Unit is what a rank computes on.
type Unit struct {
	kernels.Device
	ID   string // of a GPU, the same on all ranks that share it; "": the host's processor
	Note string // why it, or a part of it, is a fallback; "": it is not
}

// newUnit opens a device of this rank: the one that the options choose for a rank that computes, else the host's processor.
// So a rank that only serves never touches a GPU.
func (r *rank) newUnit() (Unit, error) {
	i := slices.Index(r.station.Roles.Computing(), r.station.Me)
	if i >= 0 && r.o.NewUnit != nil && !workload.IsExternal(r.station.Config.Model.Name) {
		local := 0
		for _, before := range r.station.Roles.Computing()[:i] {
			if r.station.Hosts[before] == r.station.Hosts[r.station.Me] {
				local++
			}
		}
		return r.o.NewUnit(local)
	}
	device, err := r.o.NewDevice()
	return Unit{Device: device}, err
}

// newDevice is newUnit without the rest of the Unit.
func (r *rank) newDevice() (kernels.Device, error) {
	u, err := r.newUnit()
	return u.Device, err
}

// openUnit opens the unit of this rank and reports it to rank 0. A rank whose host lacks the device that it asks for ends
// the run on all ranks.
func (r *rank) openUnit() error {
	var usageErr, failedErr error
	var own coordinate.UnitReport
	if slices.Contains(r.station.Roles.Computing(), r.station.Me) {
		var err error
		var broken *kernels.Failure
		if r.unit, err = r.newUnit(); errors.As(err, &broken) {
			failedErr = err
		} else if err != nil {
			usageErr = err
		} else {
			own = coordinate.UnitReport{Name: r.unit.Name(), ID: r.unit.ID}
			own.CUDAAware, usageErr = r.checkCUDAAware()
			own.Describe(r.unit.Device)
		}
	} else if evaluates, err := r.o.NewDevice(); err != nil {
		usageErr = err
	} else {
		own.Describe(evaluates)
		failedErr = evaluates.Close()
	}
	if err := r.station.Net.Agree(usageErr, CodeUsage); err != nil {
		return err
	}
	if err := r.station.Net.Agree(failedErr, CodeFailed); err != nil {
		return err
	}
	if r.placer != nil {
		r.live.Attach(r.placer)
	}
	var err error
	r.run.Units, err = link.Gather(r.station.Net, own)
	return err
}

// unitLog logs once what a worker computes on.
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

// checkCUDAAware finds out whether MPI reaches the memory of this rank's device, and says it in words; "" for a device
// without memory of its own. It fails if the configuration requires it and MPI does not.
func (r *rank) checkCUDAAware() (answer string, err error) {
	wanted := r.station.Config.Device.CUDAAwareMPI
	device, ok := r.unit.Device.(kernels.Placer)
	switch {
	case !ok:
		return "", nil
	case wanted == configs.CUDAAwareOff:
		return "not asked: device.cuda_aware_mpi is off", nil
	}
	notAware := errors.New("ranks of one process use no MPI")
	if t, ok := r.station.Transport.(comm.CUDAAware); ok {
		notAware = t.CUDAAware()
	}
	switch {
	case notAware == nil:
		r.placer = device
		return "yes", nil
	case wanted == configs.CUDAAwareOn:
		return "", fmt.Errorf("device.cuda_aware_mpi: on, but %w; take an MPI that is built with CUDA, or set "+
			"device.cuda_aware_mpi: auto", notAware)
	}
	return "no: " + notAware.Error(), nil
}
