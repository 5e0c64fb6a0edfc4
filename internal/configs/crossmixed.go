package configs

// crossMixed refuses every slicing except even, the only one that can give servers unequal parts.
func (w *walker) crossMixed(t *table) {
	at, slice := t.byPath["cluster.placement"], t.byPath["shards.slice"]
	if at.bad || slice.bad || w.cfg.Cluster.Placement != "mixed" || w.cfg.Baseline == BaselineAllreduce || w.cfg.Shards.Slice == "even" {
		return
	}
	w.fatal(at.node, at.path, "set shards.slice: even, or another placement",
		"mixed gives a smaller part to a server that also works than to one that only serves; shards.slice %s cannot do that", w.cfg.Shards.Slice)
}
