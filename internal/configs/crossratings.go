package configs

import (
	"slices"
	"strings"

	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// crossRatings checks that models for ratings have data sets of ratings, that other models have none, and that no model for ratings has a
// target accuracy.
func (w *walker) crossRatings(t *table) {
	name, set, target := t.byPath["model.name"], t.byPath["data.set"], t.byPath["train.stop.target"]
	if name.bad || set.bad {
		return
	}
	takes, has := workload.TakesRatings(w.cfg.Model.Name), slices.Contains(dataset.RatingSetNames(), w.cfg.Data.Set)
	switch {
	case takes && !has:
		w.fatal(name.node, name.path, "choose one of the sets "+strings.Join(dataset.RatingSetNames(), ", "),
			"%s needs ratings (entries of a matrix), but data.set %s has none", w.cfg.Model.Name, w.cfg.Data.Set)
	case has && !takes:
		w.fatal(name.node, name.path, "choose model.name: matrix_factorization, or another set",
			"%s needs features with a class, but data.set %s has ratings (entries of a matrix)", w.cfg.Model.Name, w.cfg.Data.Set)
	}
	if takes && target.key != nil && !target.bad {
		w.fatal(target.key, target.path, "remove it, and stop by epochs, samples, updates or time",
			"is a test accuracy, but %s has none: its test loss is a mean squared error", w.cfg.Model.Name)
	}
}
