package runtime

import (
	"fmt"
	"strings"

	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
)

// keeper has versions of the parameters for who evaluates.
type keeper interface {
	sendSnapshot(to int, k int64)
	forget(k int64)
}

// keepers are the ranks that have the versions of the plan's servers, by server. Without servers rank 0 has all.
func (r *rank) keepers() []int {
	if layout.Reduces(r.cfg) {
		return []int{0}
	}
	return r.roles.Servers
}

// stopNow ends the run for a reason that only rank 0 knows.
func (r *rank) stopNow() {
	if r.reduce != nil {
		r.reduce.asked = true
		return
	}
	r.lead.ended = true
	r.lead.snapshots.stopped(false, "")
	r.server.step(core.Input{Kind: core.StopNow})
}

// stopping says on rank 0 whether the budget is used up. In a pause it is not, by that alone.
func (r *rank) stopping() bool {
	if r.reduce != nil {
		return r.reduce.over
	}
	return r.server.node.Stopping() && (!r.lead.snapshots.pausing() || r.lead.ended || r.server.node.Spent())
}

// atBarrier is rank 0's: PS-Lite's scheduler, which here has no process of its own.
func (r *rank) atBarrier(h wire.Header) {
	r.releases = r.scheduler.Step(core.Input{Kind: core.Arrived, Msg: h}, r.releases[:0])
	for i := range r.releases {
		e := &r.releases[i]
		r.net.Send(r.roles.Workers[e.To], &e.Msg)
	}
}

// differ says which ranks ended with other parameters than the first, where every rank has all of them; "" if none.
func (r *rank) differ(reports []report) string {
	first := -1
	var others []string
	for i, rep := range reports {
		switch {
		case rep.Worker == nil || rep.Worker.Hash == "":
		case first < 0:
			first = i
		case rep.Worker.Hash != reports[first].Worker.Hash:
			others = append(others, r.net.Place(i))
		}
	}
	if others == nil {
		return ""
	}
	return fmt.Sprintf("the all-reduce left other parameters on %s than on %s; use another MPI or another of its algorithms", strings.Join(others, "; "), r.net.Place(first))
}
