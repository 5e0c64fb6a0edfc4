package verbs

import (
	"os"
	"runtime"
	"runtime/debug"

	"fluentps/ps/workload"
)

// garbageBytesMax is how far the heap may grow beyond the live heap before the collector runs. It is part of what plan counts
// for the program of a rank.
const garbageBytesMax = 64 << 20

// gcPercentMax is the highest GC percentage: the collector runs when the heap has grown by so much of the live heap.
const gcPercentMax = 400

// gcPercentLoading is the GC percentage while data are read. They are large and without pointers, so collecting them is cheap.
const gcPercentLoading = 25

// load reads a data set for a run and returns to the system the memory that only reading needed. From then on the collector
// runs rarely, because training allocates little.
func load(spec workload.DataSpec) (*workload.Set, error) {
	if os.Getenv("GOGC") != "" {
		return workload.Load(spec)
	}
	debug.SetGCPercent(gcPercentLoading)
	set, err := workload.Load(spec)
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(gcPercent(m.HeapAlloc))
	return set, err
}

// gcPercent is the GC percentage for a live heap of so many bytes.
func gcPercent(liveBytes uint64) int {
	if liveBytes == 0 {
		return gcPercentMax
	}
	return int(max(1, min(gcPercentMax, 100*garbageBytesMax/liveBytes)))
}
