package runtime

import (
	"fmt"

	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/params"
)

// openInitial opens the file that parameters begin with, on every rank that makes some: servers, or all that add up gradients.
// Rank 0 reads it first, whoever serves, so that what is wrong with the file is said once.
func (r *rank) openInitial() error {
	path := r.station.Config.Model.Init
	if path == "" {
		return nil
	}
	var first struct{ SHA256, Problem string }
	if r.station.Me == 0 {
		if err := r.readInitial(path); err != nil {
			first.Problem = err.Error()
		} else {
			first.SHA256 = r.initial.SHA256()
		}
	}
	if err := link.Spread(r.station.Net, &first); err != nil {
		return err
	}
	if first.Problem != "" {
		return station.Usage("%s", first.Problem)
	}
	var problem error
	if r.station.Me != 0 && (r.station.Roles.Server(r.station.Me) >= 0 || layout.Reduces(r.station.Config)) {
		if problem = r.readInitial(path); problem == nil && r.initial.SHA256() != first.SHA256 {
			problem = fmt.Errorf("model.init: %s has other parameters than rank 0 sees in it: sha256 %.12s against %.12s; "+
				"put the same file on all hosts", path, r.initial.SHA256(), first.SHA256)
		}
	}
	return r.station.Net.Agree(problem, CodeUsage)
}

func (r *rank) readInitial(path string) (err error) {
	if r.o.testing.initFile != nil {
		path = r.o.testing.initFile(path)
	}
	if r.initial, err = params.OpenInitial(path, params.Of(r.station.Model.Architecture.Params())); err == nil {
		r.station.Model.Initial = r.initial
	}
	return err
}

// tellInitial says in the log, which there is by now, what parameters begin with.
func (r *rank) tellInitial() {
	if r.station.Me == 0 && r.initial != nil {
		r.station.Log.Info("parameters begin as they are in model.init", "file", r.station.Config.Model.Init,
			"parameters_sha256", r.initial.SHA256())
	}
}

// closeInitial lets go of the file, of which everything was read.
func (r *rank) closeInitial() {
	if r.initial != nil {
		_ = r.initial.Close() // it was only read
		r.initial, r.station.Model.Initial = nil, nil
	}
}
