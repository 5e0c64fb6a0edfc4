//go:build blas

package cpu

import (
	"os"
	"runtime"
)

// spareProcessors raises GOMAXPROCS to two more than the computing threads, unless the user has set GOMAXPROCS. A thread
// inside a C kernel keeps its processor (P) of Go's scheduler. If no P is idle, the scheduler's monitor thread checks every
// 20 us whether it can take one back, 14,000 times a second with two threads. Each check interrupts a core that computes, and
// a thread that has lost its P must find another one. With an idle P the monitor sleeps. ResNet-20 on two threads of two cores
// ran 1.78 times as fast as on one thread with this, and 1.55 times without. If a P is idle anyway, spare ones cost a run with
// small messages 5 %, so then there are none.
func spareProcessors(threads int) {
	if threads > 1 && os.Getenv("GOMAXPROCS") == "" && threads >= runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(threads + 2)
	}
}
