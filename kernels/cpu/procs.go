//go:build blas

package cpu

import (
	"os"
	"runtime"
)

// spareProcessors lets Go's scheduler run two threads more than compute, unless the user has set GOMAXPROCS. A kernel in C keeps
// the scheduler's processor of its thread. Where none is idle the scheduler looks every 20 us whether it can take one back, 14,000
// times a second over two threads: each look wakes its watcher, which interrupts a core that computes, and what it takes back has
// to be found again. With an idle one the watcher sleeps. ResNet-20 on two threads of two cores: 1.78 times one thread, and
// 1.55 without. Where one is idle anyway, more of them cost a run with small messages 5 %.
func spareProcessors(threads int) {
	if threads > 1 && os.Getenv("GOMAXPROCS") == "" && threads >= runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(threads + 2)
	}
}
