package rules

import (
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

// crossLARS checks that each shard is a layer, because lars takes the norms of layers, and that servers take the step, because a worker
// makes its deltas piece by piece.
func (w *checks) crossLARS(t *keys.Table) {
	name, slice := t.ByPath["train.optimizer.name"], t.ByPath["shards.slice"]
	if name.Bad || w.Config.Train.Optimizer.Name != "lars" {
		return
	}
	switch {
	case w.Config.Baseline == settings.BaselinePSLite:
		w.Fatal(name.Node, name.Path, "set another optimizer, or baseline: none",
			"lars takes the norms of whole layers, but the keys of %s are single tensors or scalars", settings.BaselinePSLite)
	case !slice.Bad && w.Config.Shards.Slice != "layer":
		w.Fatal(name.Node, name.Path, "set shards.slice: layer",
			"lars takes the norms of whole layers, but with shards.slice %s a shard is not a layer", w.Config.Shards.Slice)
	}
	if r := w.deltaRule(t); r != nil && !w.Config.Local.IsSet() { // a term of local.policy refuses it there
		w.Fatal(name.Node, name.Path, "set another optimizer, or a scheme that pushes gradients in that rule",
			"lars takes the norms of whole layers on the servers, but under match %q (%s) each worker takes the step itself "+
				"and pushes deltas", r.Match, r.Scheme)
	}
}

// crossL1 checks that servers take the steps: a parameter that is 0 in the step of each worker is not 0 after the sum of their deltas.
func (w *checks) crossL1(t *keys.Table) {
	l1 := t.ByPath["train.optimizer.l1"]
	if l1.Bad || w.Config.Train.Optimizer.L1 == 0 {
		return
	}
	if r := w.deltaRule(t); r != nil {
		w.Fatal(l1.Node, l1.Path, "remove it, or use a scheme that pushes gradients in that rule",
			"l1 makes parameters exactly 0 in the step of a server, but under match %q (%s) each worker takes the step "+
				"itself and pushes deltas", r.Match, r.Scheme)
	}
}
