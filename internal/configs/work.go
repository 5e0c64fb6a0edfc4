package configs

import (
	"fmt"

	"fluentps/internal/policy/work"
)

// WeighsSamples reports whether the samples of pushes differ, so that a push that is a version weighs by its samples.
func (c *Config) WeighsSamples() bool { return c.batchesDiffer() || c.LeavesOut() }

// batchesDiffer reports whether the batches of ranks differ.
func (c *Config) batchesDiffer() bool { return c.DealsBatches() || len(c.Work.Shares) > 0 }

// LeavesOut reports whether a worker may leave out samples of its batch.
func (c *Config) LeavesOut() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Cuts
}

// workDefaults makes the scheme that a policy needs the default.
func (w *walker) workDefaults(t *table) {
	if e, _ := work.All.Lookup(w.cfg.Work.Policy); e.Scheme != "" {
		keys := ""
		if e.Copies {
			keys = fmt.Sprintf(", required: %d", w.cfg.Work.Required)
		}
		t.setDefault("sync", fmt.Sprintf(`[{match: "*", scheme: %s%s}]`, e.Scheme, keys))
	}
}
