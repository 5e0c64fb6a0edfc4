package configs

import (
	"reflect"

	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// crossBaseline refuses rules that a baseline cannot follow. It accepts all other keys about our servers and shards, which a baseline
// ignores: so a user compares a configuration with a baseline by setting this one key. plan shows which keys are ignored.
func (w *walker) crossBaseline(t *table) {
	if w.cfg.Baseline == BaselineNone {
		return
	}
	if at := t.byPath["cluster.hierarchy"]; !at.bad && w.cfg.Cluster.Hierarchy != HierarchyNone {
		w.fatal(at.node, at.path, "set cluster.hierarchy: none, or baseline: none",
			"%s has no hierarchy: each rank exchanges its own gradients", w.cfg.Baseline)
	}
	if p := w.cfg.Payload; p.Lossy() {
		w.fatal(t.byPath["baseline"].key, "baseline", "compare without: --set 'payload={push: float32, pull: float32}'",
			"%s sends float32, but payload has push %s and pull %s", w.cfg.Baseline, p.Push, p.Pull)
	}
	w.crossKeys(t)
	bsp, _ := scheme.All.Lookup("bsp")
	for i := range w.cfg.Sync {
		r := &w.cfg.Sync[i]
		if r.Scheme != bsp.Name || len(r.Then) > 0 || r.Push != PushGradient && !w.cfg.Local.IsSet() ||
			r.Common.Fold != bsp.Fold || !reflect.DeepEqual(r.Params, bsp.Params()) {
			w.fatal(t.byPath["baseline"].key, "baseline", `compare with bsp: --set 'sync=[{match: "*", scheme: bsp}]'`,
				"%s is bulk synchronous, like bsp with its defaults, but %s is different", w.cfg.Baseline, w.rows[i].prefix)
			return
		}
	}
}

// crossKeys checks the slicing for messages with a list of keys: such a message has everything that a server holds, one range of the
// parameters.
func (w *walker) crossKeys(t *table) {
	at, keys := t.byPath["shards.slice"], w.cfg.BaselineKeys
	if at.bad || keys != shard.KeysList && keys != shard.KeysScalar {
		return
	}
	if slice := w.cfg.Shards.Slice; slice != "range" && slice != "even" {
		w.fatal(at.node, at.path, "set range (PS-Lite's own) or even, or baseline.keys: tensor",
			"keys: %s sends one message to each server, but slice: %s puts several shards on one server", keys, slice)
	}
}
