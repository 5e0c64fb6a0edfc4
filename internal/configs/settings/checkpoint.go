package settings

import (
	"slices"

	"fluentps/internal/policy/local"
	"fluentps/ps/scheme"
)

// Periodic reports whether the run writes checkpoints during training.
func (c Checkpoint) Periodic() bool { return c.Every > 0 || c.EveryUpdates > 0 }

// InStep reports whether all workers are at the same clock whenever a shard makes a version, so that each version is a consistent cut.
// Shards that are exchanged in turn make their versions in different iterations.
func (c *Config) InStep() bool {
	if e, _ := local.All.Lookup(c.Local.Policy); e.Fragments && c.Local.Fragments > 1 {
		return false
	}
	return !c.AnyPhase(func(e scheme.Entry, ph Phase) bool { return !e.InStep(ph.Common, ph.Params) })
}

// AnyPhase reports whether something holds of any scheme of any rule.
func (c *Config) AnyPhase(is func(scheme.Entry, Phase) bool) bool {
	return slices.ContainsFunc(c.Sync, func(r Rule) bool {
		return slices.ContainsFunc(r.Phases(), func(ph Phase) bool {
			e, ok := scheme.All.Lookup(ph.Scheme)
			return ok && is(e, ph)
		})
	})
}
