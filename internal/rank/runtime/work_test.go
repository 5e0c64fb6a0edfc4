package runtime

import "testing"

// withoutMemory makes ranks send messages to each other, as a work policy needs.
const withoutMemory = "cluster.shared_memory=off"

// A stall report says which parts of a slow worker's iteration others have computed.
func TestAStallOfMovedWorkIsExplained(t *testing.T) {
	c := load(t, "work.policy=flexrr", "faults=[{worker: 2, slow: {sleep: 30s}}]", "stall={warn: 100ms, abort: 1h}")
	mustStall(t, "aaaaaa", c,
		`waits for worker 2 .*; of worker 2 parts \[1.*\] of an unknown number, which its own part tells of its iteration 0 have landed`)
}
