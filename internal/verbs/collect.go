package verbs

import (
	"os"
	"runtime"
	"runtime/debug"

	"fluentps/internal/plan/layout"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// gcPercentMax is the highest GC percentage: the collector runs when the heap has grown by so much of the live heap.
const gcPercentMax = 400

// gcPercentSetup is the GC percentage before training. Data are large and without pointers, so collecting them is cheap.
const gcPercentSetup = 25

// load reads a data set for a run and returns to the system the memory that only reading needed.
func load(spec workload.DataSpec) (*dataset.Set, error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercentSetup)
	}
	set, err := dataset.Load(spec)
	debug.FreeOSMemory()
	return set, err
}

// collectRarely has the collector run rarely from now on, because training allocates little: once the garbage is as much as plan counts
// for it. What set-up has left behind goes back to the system.
func collectRarely() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(gcPercent(m.HeapAlloc))
}

// gcPercent is the GC percentage for a live heap of so many bytes.
func gcPercent(liveBytes uint64) int {
	if liveBytes == 0 {
		return gcPercentMax
	}
	return int(max(1, min(gcPercentMax, 100*layout.GarbageBytesMax/liveBytes)))
}
