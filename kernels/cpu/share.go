package cpu

import (
	"sync"
	"sync/atomic"
)

// finely is in how many slices each thread's share of a launch is cut. A thread that has a core to itself takes more of them than
// one whose core is shared with another program, or with another thread of the same core. Launches that prepare much
// for each slice are cut into one a thread.
const finely = 4

// share has threads compute parts 0 to n-1, a slice after the other, as each gets to it: f is told the thread, for its
// scratch, and the first part and the one behind the last. Which thread computes what must change no result.
func share(threads, slicesEach, n int, f func(thread, first, last int)) {
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
