package scheme

import "fmt"

// Await is what a scheme waits for before the next one takes over, where that is found out while training runs. The
// zero value is nothing.
//
// The rule is reconstructed [R]: Sync-Switch (Li, Mangoubi, Xu, Guo, ICDCS 2021, arXiv 2104.08364) trains with BSP
// first and with ASP later, and its online policies change the scheme when stragglers show. How it detects them we know
// from an account of the paper only.
type Await struct {
	Straggler string  // StragglerShows, StragglerGone, or "": nothing
	Factor    float64 // a worker straggles while its iterations take more than Factor times the median of all workers
	Rounds    int64   // in so many iterations in a row
}

// The words of Await.Straggler.
const (
	StragglerShows = "shows" // some worker has straggled for Rounds iterations in a row
	StragglerGone  = "gone"  // no worker has in its last Rounds iterations
)

// The defaults of Await, and the fewest workers whose median tells a straggler from the others.
const (
	AwaitFactor     = 1.5
	AwaitRounds     = 5
	AwaitWorkersMin = 3
)

// IsSet says whether the scheme waits for anything.
func (a Await) IsSet() bool { return a.Straggler != "" }

// Turn is the index of the scheme that is current after so many changes, of n schemes in turn. If the last one, too,
// waits for something, the first follows it.
func Turn(changes int64, n int) int { return int(changes % int64(n)) }

func (a Await) String() string {
	if a.Straggler == StragglerGone {
		return fmt.Sprintf("no worker takes more than %g times the median in its last %d iterations", a.Factor, a.Rounds)
	}
	return fmt.Sprintf("a worker takes more than %g times the median in %d iterations in a row", a.Factor, a.Rounds)
}
