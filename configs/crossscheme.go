package configs

import "fluentps/ps/scheme"

// crossSchemes holds the rules to what their schemes need of the optimizer and of each other.
func (w *walker) crossSchemes(t *table) {
	name, decay := t.byPath["train.optimizer.name"], t.byPath["train.optimizer.weight_decay"]
	for i, row := range w.rows {
		e, known := w.schemeOf(i)
		if !known {
			continue
		}
		at, r := row.byPath["scheme"], &w.cfg.Sync[i]
		switch o := w.cfg.Train.Optimizer; {
		case !e.OwnUpdate || r.Update == UpdateAdd:
		case !name.bad && o.Name != "sgd":
			w.fatal(at.node, at.path, "set train.optimizer.name: sgd, or push: delta in this rule",
				"%s bounds what each push changes, but under %s a push moves the parameters again with later ones", e.Name, o.Name)
		case !decay.bad && o.WeightDecay > 0:
			w.fatal(at.node, at.path, "set train.optimizer.weight_decay: 0, or push: delta in this rule",
				"%s bounds what each push changes, but weight_decay (%s) changes the parameters too", e.Name, format(&o.WeightDecay))
		}
		if e.Alone != nil && e.Alone(r.Params) {
			w.crossAlone(i, e)
		}
	}
}

// crossAlone looks for a rule under which a worker may wait for slower ones, beside one that cannot stand that.
func (w *walker) crossAlone(i int, e scheme.Entry) {
	at := w.rows[i].byPath["scheme"]
	for j := range w.rows {
		other, known := w.schemeOf(j)
		if j == i || !known || other.NeverWaits != nil && other.NeverWaits(w.cfg.Sync[j].Params) {
			continue
		}
		w.fatal(at.node, at.path, "set strict: false here, or take asp, softsync or vap there",
			"%s with strict: true may hold back a slow worker until the fast ones go on, and %s (%s) may make these wait for it: nobody would go on",
			e.Name, w.rows[j].prefix, other.Name)
		return
	}
}

// schemeOf is the table entry of a rule without a problem of its own.
func (w *walker) schemeOf(i int) (e scheme.Entry, known bool) {
	if i >= len(w.cfg.Sync) || w.cfg.Sync[i].Params == nil {
		return e, false
	}
	for _, l := range w.rows[i].leaves {
		if l.bad {
			return e, false
		}
	}
	return scheme.Lookup(w.cfg.Sync[i].Scheme)
}
