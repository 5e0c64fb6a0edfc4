package report

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/show/metrics"
)

// Point is one run of a sweep: its settings, as key=value, and what is known of it.
type Point struct {
	Set []string
	Run *Run
}

// seedKey is the setting over which a sweep has means.
const seedKey = "seed"

// SweepTables are the results of a sweep: a row for each run, and a row for each setting with mean and deviation over the seeds.
func SweepTables(points []Point) (each, means *Table) {
	var runs []*Run
	for _, p := range points {
		p.Run.complete()
		runs = append(runs, p.Run)
	}
	target := chooseTarget([]*Group{{Runs: runs}})
	each = &Table{ID: "sweep", Caption: "Each run", Columns: []Column{{"run", "run", true, false}}}
	means = &Table{ID: "sweep-means", Caption: "Mean and deviation over seeds"}
	keys := keysOf(points)
	for _, k := range keys {
		each.Columns = append(each.Columns, Column{k, k, true, false})
		if k != seedKey {
			means.Columns = append(means.Columns, Column{k, k, true, false})
		}
	}
	each.Columns = append(each.Columns, Column{"state", "finished", true, false})
	means.Columns = append(means.Columns, Column{"seeds", "runs", false, false})
	measures := sweepMeasures(target, runs)
	for _, m := range measures {
		each.Columns, means.Columns = append(each.Columns, m.Column), append(means.Columns, m.Column)
	}
	groups := map[string]*Group{}
	var order []string
	for i, p := range points {
		row, rest, key := []Cell{textCell(fmt.Sprintf("%04d", i))}, []Cell(nil), ""
		for _, k := range keys {
			cell := textCell(valueOf(p.Set, k))
			if row = append(row, cell); k != seedKey {
				rest, key = append(rest, cell), key+fmt.Sprintf("%q ", cell.Text)
			}
		}
		row = append(row, textCell(stateWord(p.Run)))
		for _, m := range measures {
			row = append(row, numberCell(m.value(p.Run), short))
		}
		each.Rows = append(each.Rows, row)
		if groups[key] == nil {
			groups[key] = &Group{}
			order, means.Rows = append(order, key), append(means.Rows, rest)
		}
		groups[key].Runs = append(groups[key].Runs, p.Run)
	}
	for i, key := range order {
		g := groups[key]
		means.Rows[i] = append(means.Rows[i], numberCell(float64(len(g.Runs)), short))
		for _, m := range measures {
			means.Rows[i] = append(means.Rows[i], spreadCell(g.over(m.value), short))
		}
	}
	return each, means
}

// sweepMeasure is a column of numbers.
type sweepMeasure struct {
	Column
	value func(*Run) float64
}

func sweepMeasures(target *Target, runs []*Run) []sweepMeasure {
	total := func(head, key string, get func(*metrics.Summary) float64) sweepMeasure {
		return sweepMeasure{Column{head, key, false, false}, func(r *Run) float64 { return summed(r, get) }}
	}
	all := []sweepMeasure{
		total("samples", "samples", func(s *metrics.Summary) float64 { return float64(s.Samples) }),
		total("train time", "train_s", func(s *metrics.Summary) float64 { return float64(s.TrainS) }),
		total("wall time", "wall_s", func(s *metrics.Summary) float64 { return float64(s.WallS) }),
		{Column{"samples/s", "samples_per_s", false, false}, (*Run).speed},
		total("train loss", "train_loss", func(s *metrics.Summary) float64 { return optional(s.TrainLoss) }),
		total("test loss", "test_loss", func(s *metrics.Summary) float64 { return optional(s.TestLoss) }),
		total("test accuracy", "test_accuracy", func(s *metrics.Summary) float64 { return optional(s.TestAccuracy) }),
		{Column{"blocked", "blocked_share", false, false}, func(r *Run) float64 { return r.share(metrics.Blocked) }},
	}
	if anyPredicts(runs) {
		all = append(all, total("test R2", "test_r2", func(s *metrics.Summary) float64 { return optional(s.TestR2) }),
			total("test RMSE", "test_rmse", func(s *metrics.Summary) float64 { return optional(s.TestRMSE) }))
	}
	if target != nil {
		key := fmt.Sprintf("time_to_%s_%s_s", target.What, plain(target.Value))
		all = append(all, sweepMeasure{Column{"time to " + target.text(), key, false, false},
			func(r *Run) float64 { at, _, _ := target.reached(r); return at }})
	}
	return all
}

// keysOf are the keys that points set, in the order in which they occur.
func keysOf(points []Point) (keys []string) {
	for _, p := range points {
		for _, set := range p.Set {
			if key, _, _ := strings.Cut(set, "="); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func valueOf(set []string, key string) string {
	for _, s := range set {
		if k, v, _ := strings.Cut(s, "="); k == key {
			return v
		}
	}
	return ""
}
