package configs

import (
	"fmt"
	"slices"

	"fluentps/ps/scheme"
)

// crossSchemes holds the rules to what their schemes need of the optimizer and of each other.
func (w *walker) crossSchemes(t *table) {
	name, decay, l1 := t.byPath["train.optimizer.name"], t.byPath["train.optimizer.weight_decay"], t.byPath["train.optimizer.l1"]
	for i := range w.rows {
		phases, at := w.phasesOf(i)
		for k, ph := range phases {
			e, _ := scheme.Lookup(ph.Scheme)
			switch o := w.cfg.Train.Optimizer; {
			case !e.OwnUpdate || w.cfg.Sync[i].Update == UpdateAdd:
			case !name.bad && o.Name != "sgd":
				w.fatal(at.node, at.path, "set train.optimizer.name: sgd, or push: delta in this rule",
					"%s bounds what each push changes, but under %s a push moves the parameters again with later ones", e.Name, o.Name)
			case !decay.bad && o.WeightDecay > 0:
				w.fatal(at.node, at.path, "set train.optimizer.weight_decay: 0, or push: delta in this rule",
					"%s bounds what each push changes, but weight_decay (%s) changes the parameters too", e.Name, format(&o.WeightDecay))
			case !l1.bad && o.L1 > 0:
				w.fatal(at.node, at.path, "set train.optimizer.l1: 0", "%s bounds what each push changes, but l1 (%s) changes the parameters too", e.Name, format(&o.L1))
			}
			if e.Alone != nil && e.Alone(ph.Params) {
				w.crossAlone(i, k, e)
			}
			w.crossWhole(i, k, e)
		}
	}
}

// crossWhole warns of deltas that are added whole by default, in the k-th scheme of rule i: nobody who thinks of gradients expects
// the sum of N steps. Who writes the weight down knows.
func (w *walker) crossWhole(i, k int, e scheme.Entry) {
	phases, at := w.phasesOf(i)
	if !e.DeltaWhole || w.cfg.Sync[i].Push != PushDelta || phases[k].Common.Fold == scheme.FoldRank {
		return
	}
	if len(phases) > 1 {
		item := deref(at.node.Content[k])
		if child(item, "weight") != nil {
			return
		}
		at = &leaf{path: fmt.Sprintf("%s[%d].scheme", at.path, k), node: child(item, "scheme")}
	} else if w.rows[i].byPath["weight"].key != nil {
		return
	}
	w.report(Warning, at.node, at.path, "divide train.optimizer.lr by the number of workers and write weight: 1, or write the weight that you want, such as 1/N as a number",
		"%s adds the delta of each of N workers whole (weight 1, as Bösen does), so that an iteration moves the parameters N times as far as one worker's step", e.Name)
}

// crossAlone looks for a rule under which a worker may wait for slower ones, beside a scheme that cannot stand that:
// the k-th of rule i. A change of scheme is such a wait, in its own rule too.
func (w *walker) crossAlone(i, k int, e scheme.Entry) {
	phases, at := w.phasesOf(i)
	if k < len(phases)-1 {
		w.fatal(at.node, at.path, "set strict: false there, or let it be the last",
			"%s with strict: true may hold back a slow worker until the fast ones go on, and these wait for it at the change: nobody would go on", e.Name)
		return
	}
	for j := range w.rows {
		others, _ := w.phasesOf(j)
		waits := slices.IndexFunc(others, func(ph Phase) bool {
			o, _ := scheme.Lookup(ph.Scheme)
			return o.NeverWaits == nil || !o.NeverWaits(ph.Params)
		})
		if j == i || waits < 0 && len(others) < 2 {
			continue
		}
		w.fatal(at.node, at.path, "set strict: false here, or take asp, softsync or vap there",
			"%s with strict: true may hold back a slow worker until the fast ones go on, and %s (%s) may make these wait for it: nobody would go on",
			e.Name, w.rows[j].prefix, others[max(0, waits)].Scheme)
		return
	}
}

// phasesOf lists the schemes of a rule, and the key that names them; none where the rule has a problem of its own.
func (w *walker) phasesOf(i int) (phases []Phase, at *leaf) {
	if i >= len(w.cfg.Sync) || w.cfg.Sync[i].Params == nil {
		return nil, nil
	}
	for _, l := range w.rows[i].leaves {
		if l.bad {
			return nil, nil
		}
		if name := lastName(l.path); name == "scheme" || name == "schemes" {
			at = l
		}
	}
	return w.cfg.Sync[i].Phases(), at
}
