package settings

import (
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
)

// CountsHits says whether the model counts the samples that it has right, so that a run has an accuracy.
func (c *Config) CountsHits() bool {
	return c.Measure() == metrics.Hits
}

// Measure is what evaluations say of the run beside its loss.
func (c *Config) Measure() metrics.Measure {
	switch {
	case workload.IsExternal(c.Model.Name) && !c.Data.External.Accuracy:
		return metrics.None
	case workload.TakesRatings(c.Model.Name) || c.Data.Regresses():
		return metrics.Misses
	}
	return metrics.Hits
}

// HasScore says whether a run has an accuracy or an R2, of which a target may be.
func (c *Config) HasScore() bool { return c.Measure() != metrics.None }
