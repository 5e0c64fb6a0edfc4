package configs

import (
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// crossStatistics refuses statistics under schemes that commit differences of means of pushes: such a scheme has no mean of the values.
func (w *walker) crossStatistics() {
	globs, on := w.cfg.Matches()
	takes := map[int]bool{} // rules that take statistics
	for _, name := range workload.Statistics(w.cfg.ModelSpec()) {
		for _, i := range shard.RulesOf(globs, on, name) {
			takes[i] = true
		}
	}
	for i := range w.rows {
		if !takes[i] {
			continue
		}
		phases, at := w.phasesOf(i)
		for k, ph := range phases {
			e, ok := scheme.All.Lookup(ph.Scheme)
			if !ok || e.Means == nil || e.Means(ph.Params, 1) == 0 || e.Name == "ringleader" {
				continue // ringleader commits a mean of the values
			}
			w.fatal(at.node, at.path, "set "+w.inScheme(i, k, "versions")+
				": single, or put rules for the statistics before this one, whose match fits bn*.mean and bn*.variance",
				"%s keeps means of the pushes of each version, but pushes of the statistics of %s are values, not changes", e.Name, w.cfg.Model.Name)
		}
	}
}
