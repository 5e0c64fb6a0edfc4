package runtime

import "testing"

// The log names the worker that waits for its turn, and the server that waits for another worker's push.
func TestAStallOfARotationIsExplained(t *testing.T) {
	c := load(t, "sync=[{match: '*', scheme: r2sp, skip_after: 0}]", "faults=[{worker: 2, slow: {sleep: 30s}}]",
		"stall={warn: 100ms, abort: 1h}")
	mustStall(t, "aaaaaa", c, `worker 3 has waited \d+s to start iteration 1; its turn to push to server 0`, `\(r2sp\) waits for worker 2 \(`)
}
