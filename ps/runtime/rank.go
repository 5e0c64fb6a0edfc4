package runtime

import (
	"os"
	"time"

	"fluentps/kernels"
	"fluentps/ps/coordinate"
	"fluentps/ps/liveness"
	"fluentps/ps/station"
)

// rank is one process or goroutine of the world: a server, a worker, or both.
type rank struct {
	station *station.Station
	run     *coordinate.Run
	o       Options
	file    *os.File // of the log; may be nil

	unit    Unit           // what it computes on; none of a rank that does not
	reached kernels.Placer // that, where MPI reaches its memory; else nil

	live   *liveness.Liveness // nil where the transport has no heartbeats
	gaveUp bool               // the run ends with CodeStall
	// awake is when this process went on after it was stopped, 0: it was not. No wait is longer than since then.
	awake time.Duration
}
