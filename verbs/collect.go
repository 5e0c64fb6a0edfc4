package verbs

import (
	"os"
	"runtime"
	"runtime/debug"

	"fluentps/ps/workload"
)

// garbageMax is how far the heap may grow over what is alive before the collector runs, in bytes: a part of what plan counts
// for the program of a rank.
const garbageMax = 64 << 20

// collectMost is the growth of the heap, in per cent of what is alive, at which the collector runs at the latest.
const collectMost = 400

// collectLoading is that while data are read: they are large, without pointers, and so collected at little cost.
const collectLoading = 25

// load reads a data set for a run, gives back what reading took beside it, and from then on lets the collector run rarely, for
// training allocates little.
func load(spec workload.DataSpec) (*workload.Set, error) {
	if os.Getenv("GOGC") != "" {
		return workload.Load(spec)
	}
	debug.SetGCPercent(collectLoading)
	set, err := workload.Load(spec)
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(collectAt(m.HeapAlloc))
	return set, err
}

// collectAt is the growth of the heap, in per cent of what is alive, at which the collector runs.
func collectAt(alive uint64) int {
	if alive == 0 {
		return collectMost
	}
	return int(max(1, min(collectMost, 100*garbageMax/alive)))
}
