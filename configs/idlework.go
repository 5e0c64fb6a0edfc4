package configs

import (
	"fmt"

	"fluentps/ps/scheme"
)

// profile looks for a tau that workers would choose, but never do, or that says nothing of the run.
func (w *idler) profile() {
	s := &w.c.Work
	if s.Policy != "dropcompute" {
		return
	}
	l := w.leaf("work.profile")
	if s.Time > 0 {
		w.warn(l, "leave it out, or set work.time: 0", "%d iterations of a profile, but work.time sets tau: nothing is measured", s.Profile)
		return
	}
	if full := w.n.Samples / float64(w.n.PerIteration); float64(s.Profile) >= full { // nothing is left out before tau is known
		w.at("work.profile", fmt.Sprintf("set it below %s, or set work.time", whole(full)), "tau is chosen after %d iterations, but the run has %s: nothing is left out", s.Profile, times(full, "iteration"))
	}
	if waits := w.c.anyPhase(func(e scheme.Entry, ph Phase) bool { return e.Whole(ph.Common, ph.Params) }); !waits {
		w.at("work.policy", "set work.time, or a scheme such as bsp", "tau is chosen for workers that wait for the slowest of them in each iteration, but under %s they do not", w.c.Sync[0].Phases()[0].Scheme)
	}
}
