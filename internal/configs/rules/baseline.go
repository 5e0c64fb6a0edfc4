package rules

import (
	"reflect"

	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// crossBaseline refuses rules that a baseline cannot follow. It accepts all other keys about our servers and shards, which a baseline
// ignores: so a user compares a configuration with a baseline by setting this one key. plan shows which keys are ignored.
func (w *checks) crossBaseline(t *keys.Table) {
	if w.Config.Baseline == settings.BaselineNone {
		return
	}
	if at := t.ByPath["cluster.hierarchy"]; !at.Bad && w.Config.Cluster.Hierarchy != settings.HierarchyNone {
		w.Fatal(at.Node, at.Path, "set cluster.hierarchy: none, or baseline: none",
			"%s has no hierarchy: each rank exchanges its own gradients", w.Config.Baseline)
	}
	if p := w.Config.Payload; p.Lossy() {
		w.Fatal(t.ByPath["baseline"].Key, "baseline", "compare without: --set 'payload={push: float32, pull: float32}'",
			"%s sends float32, but payload has push %s and pull %s", w.Config.Baseline, p.Push, p.Pull)
	}
	w.crossKeys(t)
	bsp, _ := scheme.All.Lookup("bsp")
	for i := range w.Config.Sync {
		r := &w.Config.Sync[i]
		if r.Scheme != bsp.Name || len(r.Then) > 0 || r.Push != settings.PushGradient && !w.Config.Local.IsSet() ||
			r.Common.Fold != bsp.Fold || !reflect.DeepEqual(r.Params, bsp.Params()) {
			w.Fatal(t.ByPath["baseline"].Key, "baseline", `compare with bsp: --set 'sync=[{match: "*", scheme: bsp}]'`,
				"%s is bulk synchronous, like bsp with its defaults, but %s is different", w.Config.Baseline, w.RuleTables[i].Prefix)
			return
		}
	}
}

// crossKeys checks the slicing for messages with a list of keys: such a message has everything that a server holds, one range of the
// parameters.
func (w *checks) crossKeys(t *keys.Table) {
	at, form := t.ByPath["shards.slice"], w.Config.BaselineKeys
	if at.Bad || form != shard.KeysList && form != shard.KeysScalar {
		return
	}
	if slice := w.Config.Shards.Slice; slice != "range" && slice != "even" {
		w.Fatal(at.Node, at.Path, "set range (PS-Lite's own) or even, or baseline.keys: tensor",
			"keys: %s sends one message to each server, but slice: %s puts several shards on one server", form, slice)
	}
}
