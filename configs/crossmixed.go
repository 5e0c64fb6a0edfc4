package configs

// crossMixed demands the slicing that can give servers unequal parts.
func (w *walker) crossMixed(t *table) {
	at, slice := t.byPath["cluster.placement"], t.byPath["shards.slice"]
	if at.bad || slice.bad || w.cfg.Cluster.Placement != "mixed" || w.cfg.Baseline == BaselineAllreduce || w.cfg.Shards.Slice == "even" {
		return
	}
	w.fatal(at.node, at.path, "set shards.slice: even, or another placement",
		"mixed gives a server that works too a smaller part than one that only serves, which shards.slice %s cannot", w.cfg.Shards.Slice)
}
