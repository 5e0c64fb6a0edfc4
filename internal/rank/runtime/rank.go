package runtime

import (
	"os"
	"sync/atomic"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/digest"
	"fluentps/internal/policy/work"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/liveness"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/params"
	"fluentps/kernels"
)

// rank is one process or goroutine of the world: a server, a worker, or both.
type rank struct {
	station *station.Station
	run     *coordinate.Run
	o       Options
	file    *os.File // the log; may be nil
	traces  configs.Traces
	replay  work.Record // on rank 0 only

	initial *params.Initial // open while the sides are made, in a run that begins with a file of parameters; else nil
	unit    Unit            // zero on a rank that does not compute
	placer  kernels.Placer  // the unit, if MPI reaches its memory; else nil

	live   *liveness.Liveness // nil: the transport has no heartbeats
	gaveUp bool               // the run ends with CodeStall
	// awakeSince is when this process last continued after it was stopped; 0: it never was. No wait counts from an earlier
	// time.
	awakeSince time.Duration
	tell       teller
	lost       atomic.Pointer[time.Timer] // ends this rank if it has lost the run folder and does not end by itself; nil: it has the folder
	digests    *digest.Log                // nil: none are kept
}
