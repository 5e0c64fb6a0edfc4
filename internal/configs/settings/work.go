package settings

import (
	"fluentps/internal/policy/work"
)

// WeighsSamples reports whether the samples of pushes differ, so that a push that is a version weighs by its samples.
func (c *Config) WeighsSamples() bool { return c.BatchesDiffer() || c.LeavesOut() }

// BatchesDiffer reports whether the batches of ranks differ.
func (c *Config) BatchesDiffer() bool { return c.DealsBatches() || len(c.Work.Shares) > 0 }

// LeavesOut reports whether a worker may leave out samples of its batch.
func (c *Config) LeavesOut() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Cuts
}
