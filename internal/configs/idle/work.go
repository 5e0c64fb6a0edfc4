package idle

import (
	"fmt"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// profile looks for a tau that workers would choose, but never do, or that says nothing of the run.
func (w *idler) profile() {
	s := &w.c.Work
	if e, _ := work.All.Lookup(s.Policy); !e.Cuts || e.Timed {
		return
	}
	l := w.leaf("work.profile")
	if s.Time > 0 {
		w.warn(l, "leave it out, or set work.time: 0", "%d iterations of a profile, but work.time sets tau: nothing is measured", s.Profile)
		return
	}
	if full := w.n.Samples / float64(w.n.PerIteration); float64(s.Profile) >= full { // nothing is left out before tau is known
		w.at("work.profile", fmt.Sprintf("set it below %s, or set work.time", diag.FormatWhole(full)),
			"tau is chosen after %d iterations, but the run has %s: nothing is left out", s.Profile, diag.FormatCount(full, "iteration"))
	}
	if waits := w.c.AnyPhase(func(e scheme.Entry, ph settings.Phase) bool { return e.Whole(ph.Common, ph.Params) }); !waits {
		w.at("work.policy", "set work.time, or a scheme such as bsp",
			"tau is chosen for workers that wait for the slowest of them in each iteration, but under %s they do not",
			w.c.Sync[0].Phases()[0].Scheme)
	}
}

// steps looks for steps of a batch that leave nothing to move or to leave out, or too few samples for batch norm, and
// for threads that cannot move.
func (w *idler) steps() {
	s := &w.c.Work
	e, _ := work.All.Lookup(s.Policy)
	if !e.Steps {
		return
	}
	batch := w.c.LeastStep(w.f)
	if most := w.c.BatchMax(max(1, w.f.Computes)); (e.Cuts || e.Moves) && s.Micro >= most && (w.c.Train.BatchGlobal == 0 || w.f.Computes > 0) {
		what := "the first step always runs, so nothing is left out"
		if e.Moves {
			what = "a worker gives no sample away that has begun, so it can only do so before it begins"
		}
		w.at("work.micro", "set it to a fraction of the batch, or 0: a sixteenth",
			"%d samples of a step, and a batch has %d: %s", s.Micro, most, what)
	}
	if s.Micro == 0 && len(workload.Statistics(w.c.ModelSpec())) > 0 && (w.c.Train.BatchGlobal == 0 || w.f.Computes > 0) {
		w.at("work.policy", "set work.micro to what one normalisation should see, such as 32",
			"%s computes a batch in steps of %d samples, of %d, and the batch norm of %s normalises the samples of a step",
			s.Policy, s.StepOf(batch), batch, w.c.Model.Name)
	}
	if s.ThreadsMax == 0 {
		return
	}
	if w.c.Device.Threads == 1 {
		w.at("work.threads_max", "set device.threads to 2 or more, or work.threads_max: 0",
			"%d, but each worker begins with one thread (device.threads), so none has one to give", s.ThreadsMax)
	} else if w.f.Simulated && w.c.Simulate.RanksPerHost == 1 {
		w.at("work.threads_max", "set simulate.ranks_per_host", "%d, but no two workers share a host, and threads move within one", s.ThreadsMax)
	}
}
