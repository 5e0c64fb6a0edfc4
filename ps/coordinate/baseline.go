package coordinate

import (
	"fmt"
	"strings"

	"fluentps/comm/wire"
	"fluentps/ps/core"
)

// Keeper has versions of the parameters for who evaluates.
type Keeper interface {
	SendSnapshot(to int, k int64)
	Forget(k int64)
}

// stopNow ends the run for a reason that only rank 0 knows.
func (r *Run) stopNow() {
	if r.Reduce != nil {
		r.Reduce.Stop()
		return
	}
	r.Lead.end.ended = true
	r.Lead.kept.snapshots.stopped(false, "")
	r.Server.Step(core.Input{Kind: core.StopNow})
}

// stopping says on rank 0 whether the budget is used up. In a pause it is not, by that alone.
func (r *Run) stopping() bool {
	if r.Reduce != nil {
		return r.Reduce.Ended()
	}
	return r.Server.Stopping() && (!r.Lead.kept.snapshots.pausing() || r.Lead.end.ended || r.Server.Spent())
}

// atBarrier is rank 0's: PS-Lite's scheduler, which here has no process of its own.
func (r *Run) atBarrier(h wire.Header) {
	r.releases = r.Scheduler.Step(core.Input{Kind: core.Arrived, Msg: h}, r.releases[:0])
	for i := range r.releases {
		e := &r.releases[i]
		r.station.Net.Send(r.station.Roles.Workers[e.To], &e.Msg)
	}
}

// differ says which ranks ended with other parameters than the first, where every rank has all of them; "" if none.
func (r *Run) differ(reports []report) string {
	first := -1
	var others []string
	for i, rep := range reports {
		switch {
		case rep.Worker == nil || rep.Worker.Hash == "":
		case first < 0:
			first = i
		case rep.Worker.Hash != reports[first].Worker.Hash:
			others = append(others, r.station.Net.Place(i))
		}
	}
	if others == nil {
		return ""
	}
	return fmt.Sprintf("the all-reduce left other parameters on %s than on %s; use another MPI or another of its algorithms", strings.Join(others, "; "), r.station.Net.Place(first))
}
