package configs

import (
	"fmt"
	"slices"

	"fluentps/ps/scheme"
)

// crossSchemes checks what the schemes of the rules need from the optimizer and from each other.
func (w *walker) crossSchemes(t *table) {
	name, decay, l1 := t.byPath["train.optimizer.name"], t.byPath["train.optimizer.weight_decay"], t.byPath["train.optimizer.l1"]
	for i := range w.rows {
		phases, at := w.phasesOf(i)
		for k, ph := range phases {
			e, _ := scheme.All.Lookup(ph.Scheme)
			switch o := w.cfg.Train.Optimizer; {
			case !e.OwnUpdate || w.cfg.Sync[i].Update == UpdateAdd:
			case !name.bad && o.Name != "sgd":
				w.fatal(at.node, at.path, "set train.optimizer.name: sgd, or "+w.delta(i),
					"%s bounds what each push changes, but under %s a push moves the parameters again with later ones", e.Name, o.Name)
			case !decay.bad && o.WeightDecay > 0:
				w.fatal(at.node, at.path, "set train.optimizer.weight_decay: 0, or "+w.delta(i),
					"%s bounds what each push changes, but weight_decay (%s) changes the parameters too", e.Name, format(&o.WeightDecay))
			case !l1.bad && o.L1 > 0:
				w.fatal(at.node, at.path, "set train.optimizer.l1: 0",
					"%s bounds what each push changes, but l1 (%s) changes the parameters too", e.Name, format(&o.L1))
			}
			if e.Alone != nil && e.Alone(ph.Params) {
				w.crossAlone(i, k, e)
			}
			w.crossWhole(i, k, e)
		}
	}
}

// crossWhole warns if the k-th scheme of rule i adds deltas with weight 1 by default: a user who thinks of gradients
// does not expect the sum of N steps. There is no warning if the rule sets the weight.
func (w *walker) crossWhole(i, k int, e scheme.Entry) {
	phases, at := w.phasesOf(i)
	if w.cfg.Local.IsSet() || e.Weight != scheme.DeltaWhole || w.cfg.Sync[i].Push != PushDelta || phases[k].Common.Fold == scheme.FoldRank {
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
	w.report(Warning, at.node, at.path, "divide train.optimizer.lr by the number of workers and write weight: 1, or "+
		"write another weight, such as 1/N as a number",
		"%s adds the deltas of N workers with weight 1 (as Bösen does), so an iteration moves the parameters N times as "+
			"far as the step of one worker", e.Name)
}

// crossAlone looks for a rule under which a worker may wait for slower ones. The k-th scheme of rule i would deadlock with such a rule. A
// change of scheme is such a wait too, also in rule i itself.
func (w *walker) crossAlone(i, k int, e scheme.Entry) {
	phases, at := w.phasesOf(i)
	if k < len(phases)-1 || phases[k].Until != (Until{}) {
		w.fatal(at.node, at.path, "set "+w.inScheme(i, k, "strict")+": false, or make it the last scheme, without until",
			"%s with strict: true may hold back a slow worker until the fast ones continue, but these wait for it at the change: a deadlock", e.Name)
		return
	}
	for j := range w.rows {
		others, _ := w.phasesOf(j)
		waits := slices.IndexFunc(others, func(ph Phase) bool {
			o, _ := scheme.All.Lookup(ph.Scheme)
			return o.NeverWaits == nil || !o.NeverWaits(ph.Params)
		})
		if j == i || waits < 0 && len(others) < 2 {
			continue
		}
		w.fatal(at.node, at.path, fmt.Sprintf("set %s: false, or %s: asp", w.inScheme(i, k, "strict"), w.inScheme(j, max(0, waits), "scheme")),
			"%s with strict: true may hold back a slow worker until the fast ones continue, but %s (%s) may make these wait for it: a deadlock",
			e.Name, w.rows[j].prefix, others[max(0, waits)].Scheme)
		return
	}
}

// phasesOf returns the schemes of a rule, and the key that names them. It returns none if the rule has a problem already.
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
