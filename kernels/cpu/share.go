package cpu

import (
	"sync"
	"sync/atomic"
)

// slicesPerThread is the number of slices of a launch per thread. A thread that has a core to itself takes more slices than a
// thread whose core also runs another program or another thread. Launches with much preparation for each slice have one slice
// per thread.
const slicesPerThread = 4

// parallelFor computes parts 0 to n-1 with several threads. Each thread takes the next slice when it has finished one. f
// computes parts first to last-1; thread identifies the scratch to use. No result may depend on which thread computes a part.
func parallelFor(threads, slicesEach, n int, f func(thread, first, last int)) {
	threads = max(1, min(threads, n))
	if threads == 1 {
		f(0, 0, n)
		return
	}
	count := min(n, threads*slicesEach)
	var next atomic.Int64
	take := func(thread int) {
		for s := int(next.Add(1)) - 1; s < count; s = int(next.Add(1)) - 1 {
			f(thread, n*s/count, n*(s+1)/count)
		}
	}
	var done sync.WaitGroup
	for t := 1; t < threads; t++ {
		done.Go(func() { take(t) })
	}
	take(0)
	done.Wait()
}
