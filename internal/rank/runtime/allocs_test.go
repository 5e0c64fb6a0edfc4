package runtime

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"fluentps/internal/plan/layout"
)

// An iteration allocates nothing on any rank: buffers, handlers and queues are kept. The test compares the allocations of a
// longer and a shorter run.
func TestAnIterationTakesNoMemory(t *testing.T) {
	if underRace {
		t.Skip("the race detector takes memory of its own")
	}
	for _, c := range []struct {
		servers, workers, layer int
		payload, memory         string
		baseline                string
	}{
		{1, 1, 64, "{}", "auto", "none"},                  // in frames
		{1, 1, layout.InlineMax, "{}", "off", "none"},     // on the data channel
		{2, 2, 64, "{}", "auto", "none"},                  // one frame of several shards
		{1, 2, 3 * layout.InlineMax, "{}", "off", "none"}, // several workers
		{1, 2, layout.InlineMax, "{}", "auto", "none"},    // in shared memory
		{1, 2, 64, "{push: bfloat16, pull: float16}", "auto", "none"},
		{1, 2, layout.InlineMax, "{push: topk, pull: bfloat16}", "auto", "none"},
		{2, 2, 64, "{}", "auto", "pslite"},
		{1, 2, layout.InlineMax, "{}", "auto", "{name: pslite, keys: list}"},
		{1, 2, layout.InlineMax, "{}", "auto", "{name: pslite, keys: scalar}"},
	} {
		taken := func(updates int) int64 {
			cfg := load(t, "model={name: synthetic, layers: ["+fmt.Sprint(c.layer, ", ", c.layer)+"]}",
				fmt.Sprintf("cluster.servers=%d", c.servers), "cluster.shared_memory="+c.memory,
				fmt.Sprintf("train.stop={updates: %d}", updates), "evaluate.every_epochs=0", "data.rows=16", "data.test_rows=4",
				"train.batch_per_worker=1", "metrics.interval=1h", "payload="+c.payload, "baseline="+c.baseline)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			mustTrain(t, cfg, c.servers+c.workers)
			runtime.ReadMemStats(&after)
			return int64(after.Mallocs - before.Mallocs)
		}
		const warm, more = 500, 2000
		// One allocation a message would give 1 or more each time. A longer run may meet a deeper queue and allocate for it.
		each := math.Inf(1)
		for try := 0; try < 3 && each > 0.6; try++ {
			base := taken(warm)
			each = min(each, float64(taken(warm+more)-base)/more)
		}
		if each > 0.6 {
			t.Errorf("%d servers, %d workers, layers of %d, payload %s, shared memory %s, baseline %s: %.2f allocations in "+
				"an iteration", c.servers, c.workers, c.layer, c.payload, c.memory, c.baseline, each)
		}
	}
}
