package configs

import "gopkg.in/yaml.v3"

// crossL1 checks that servers take the steps: a parameter that is 0 in the step of each worker is not 0 after the sum of their deltas.
func (w *walker) crossL1(t *table) {
	l1 := t.byPath["train.optimizer.l1"]
	if l1.bad || w.cfg.Train.Optimizer.L1 == 0 {
		return
	}
	if r := w.deltaRule(t); r != nil {
		w.fatal(l1.node, l1.path, "remove it, or use a scheme that pushes gradients in that rule",
			"l1 makes parameters exactly 0 in the step of a server, but under match %q (%s) each worker takes the step "+
				"itself and pushes deltas", r.Match, r.Scheme)
	}
}

// crossNonzeros refuses more nonzeros in a row than the row has features.
func (w *walker) crossNonzeros(t *table, root *yaml.Node) {
	nonzeros, features := t.byPath["data.nonzeros"], t.byPath["data.features"]
	if d := w.cfg.Data; d.Set == "generated_sparse" && !nonzeros.bad && !features.bad && d.Nonzeros > d.Features {
		w.fatal(w.nodeOf(t, nonzeros, root), nonzeros.path, "raise data.features, or lower nonzeros",
			"%d is more than the %d features of a row", d.Nonzeros, d.Features)
	}
}
