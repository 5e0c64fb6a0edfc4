package configs

import (
	"slices"
	"strings"

	"fluentps/ps/workload"
)

// crossRatings demands ratings of a model that takes them, and no others of others; and no accuracy of it.
func (w *walker) crossRatings(t *table) {
	name, set, target := t.byPath["model.name"], t.byPath["data.set"], t.byPath["train.stop.target"]
	if name.bad || set.bad {
		return
	}
	takes, has := workload.TakesRatings(w.cfg.Model.Name), slices.Contains(workload.RatingSetNames(), w.cfg.Data.Set)
	switch {
	case takes && !has:
		w.fatal(name.node, name.path, "choose one of the sets "+strings.Join(workload.RatingSetNames(), ", "),
			"%s takes ratings, entries of a matrix, and the rows of data.set %s are none", w.cfg.Model.Name, w.cfg.Data.Set)
	case has && !takes:
		w.fatal(name.node, name.path, "choose model.name: matrix_factorization, or another set",
			"%s takes features with a class, and data.set %s has ratings: entries of a matrix", w.cfg.Model.Name, w.cfg.Data.Set)
	}
	if takes && target.key != nil && !target.bad {
		w.fatal(target.key, target.path, "remove it, and stop by epochs, samples, updates or time",
			"is a test accuracy, and %s has none: its test loss is a mean squared error", w.cfg.Model.Name)
	}
}
