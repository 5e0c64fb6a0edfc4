package configs

// crossLARS checks that each shard is a layer, because lars takes the norms of layers, and that servers take the step, because a worker
// makes its deltas piece by piece.
func (w *walker) crossLARS(t *table) {
	name, slice := t.byPath["train.optimizer.name"], t.byPath["shards.slice"]
	if name.bad || w.cfg.Train.Optimizer.Name != "lars" {
		return
	}
	switch {
	case w.cfg.Baseline == BaselinePSLite:
		w.fatal(name.node, name.path, "set another optimizer, or baseline: none",
			"lars takes the norms of whole layers, but the keys of %s are single tensors or scalars", BaselinePSLite)
	case !slice.bad && w.cfg.Shards.Slice != "layer":
		w.fatal(name.node, name.path, "set shards.slice: layer",
			"lars takes the norms of whole layers, but with shards.slice %s a shard is not a layer", w.cfg.Shards.Slice)
	}
	if r := w.deltaRule(t); r != nil && !w.cfg.Local.IsSet() { // crossLocal refuses it there
		w.fatal(name.node, name.path, "set another optimizer, or a scheme that pushes gradients in that rule",
			"lars takes the norms of whole layers on the servers, but under match %q (%s) each worker takes the step itself "+
				"and pushes deltas", r.Match, r.Scheme)
	}
}
