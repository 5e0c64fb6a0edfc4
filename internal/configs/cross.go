package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// cross checks combinations of keys. A check reports nothing if one of its keys has a problem already.
func (w *walker) cross(t *table, root *yaml.Node) {
	w.exactlyOne(t, root, "train.batch_per_worker", "train.batch_global")
	w.crossStop(t, root)
	if w.cfg.Train.Schedule.Name == "step" {
		w.exactlyOne(t, root, "train.schedule.every", "train.schedule.at")
	}
	at, classes := t.byPath["train.schedule.at"], t.byPath["data.classes"]
	if strings.HasSuffix(w.cfg.Model.Name, "logistic") && w.cfg.Data.Set == "generated" && !classes.bad && w.cfg.Data.Classes != 2 {
		w.fatal(w.nodeOf(t, classes, root), classes.path, "set 2, or model.name: softmax",
			"model %s needs 2 classes, not %d", w.cfg.Model.Name, w.cfg.Data.Classes)
	}
	w.crossImages(t)
	w.crossRatings(t)
	if !at.bad && !increasing(w.cfg.Train.Schedule.At) {
		w.fatal(at.node, at.path, "sort them, each once", "the iterations do not increase")
	}
	w.crossAugment(t)
	abort, warn := t.byPath["stall.abort"], t.byPath["stall.warn"]
	if s := w.cfg.Stall; !abort.bad && !warn.bad && s.Abort > 0 && s.Abort <= s.Warn {
		w.fatal(w.nodeOf(t, abort, root), abort.path, "change one of them: a wait must be explained before it ends the run",
			"%s is not longer than stall.warn (%s)", formatDuration(s.Abort), formatDuration(s.Warn))
	}
	if peer, limit := t.byPath["stall.peer"], w.cfg.Stall.Peer; !peer.bad && limit > 0 && limit < PeerMin {
		w.fatal(w.nodeOf(t, peer, root), peer.path, "set 1m, or 0s for never",
			"%s is shorter than the time between two heartbeats; the least is %s", formatDuration(limit), formatDuration(PeerMin))
	}
	if lo, hi, tune := t.byPath["send.tune.min"], t.byPath["send.tune.max"], w.cfg.Send.Tune; !lo.bad && !hi.bad &&
		tune.Max > 0 && tune.Min > tune.Max {
		w.fatal(w.nodeOf(t, lo, root), lo.path, "swap them: the search goes from min to max",
			"%s is above send.tune.max (%s)", FormatSize(tune.Min), FormatSize(tune.Max))
	}
	if sync := t.byPath["sync"]; !sync.bad || len(w.rows) > 0 {
		w.crossSync(sync, root)
		w.crossAwaits()
	}
	h := w.newHolder(t)
	h.schemes()
	w.crossMixed(t)
	w.crossLARS(t)
	w.crossDevice(t)
	w.crossL1(t)
	w.crossNonzeros(t, root)
	if !t.byPath["baseline"].bad && !t.byPath["sync"].bad {
		w.crossBaseline(t)
	}
	h.policies()
	w.crossNumbers(t)
	w.crossCost(t)
	if !t.byPath["sync"].bad {
		w.crossRotations()
		w.crossCheckpoint(t)
		w.crossSynthetic(t)
	}
}

// crossAugment refuses a crop that may leave nothing of an image, and a model that never sees the changed pixels. It checks the crop only
// for sets of known image size: for other sets, only the files have the size.
func (w *walker) crossAugment(t *table) {
	crop, flip, set, name := t.byPath["data.augment.crop"], t.byPath["data.augment.flip"], t.byPath["data.set"], t.byPath["model.name"]
	image, augment := dataset.ImageOf(w.cfg.Data.Set), w.cfg.Data.Augment
	if limit := min(image.Height, image.Width) - 1; !crop.bad && !set.bad && limit >= 0 && augment.Crop > limit {
		w.fatal(crop.node, crop.path, fmt.Sprintf("set 0 to %d", limit),
			"%d leaves nothing of some images of %s, which have %d x %d pixels", augment.Crop, w.cfg.Data.Set, image.Height, image.Width)
	}
	at := crop
	if augment.Crop == 0 {
		at = flip
	}
	if !crop.bad && !flip.bad && !name.bad && augment != (dataset.Augment{}) && workload.TakesSparse(w.cfg.Model.Name) {
		w.fatal(at.node, at.path, "remove augment, or set model.name: logistic",
			"changes the pixels of images, but %s takes the entries of sparse rows", w.cfg.Model.Name)
	}
}

// crossSynthetic refuses deltas with model synthetic: a worker turns its gradients into deltas in place, and synthetic writes its gradients
// only once. Where workers take steps of their own, deltas have memory of their own.
func (w *walker) crossSynthetic(t *table) {
	name := t.byPath["model.name"]
	if name.bad || w.cfg.Model.Name != "synthetic" || w.cfg.Local.IsSet() {
		return
	}
	if r := w.deltaRule(t); r != nil {
		w.fatal(name.node, name.path, "choose a model that learns, or a scheme that pushes gradients",
			"synthetic writes its gradients only once, but match %q (%s) would turn them into deltas in place", r.Match, r.Scheme)
	}
}

// deltaRule returns the first rule that pushes deltas; nil if there is none, or if sync has a problem already.
func (w *walker) deltaRule(t *table) *Rule {
	if t.byPath["sync"].bad {
		return nil
	}
	for i := range w.cfg.Sync {
		if r := &w.cfg.Sync[i]; r.Push == PushDelta {
			return r
		}
	}
	return nil
}

// nodeOf returns the best place for a problem with a key: its value, or else its section.
func (w *walker) nodeOf(t *table, l *leaf, root *yaml.Node) *yaml.Node {
	if l.node != nil {
		return l.node
	}
	return w.sectionOf(t, l, root)
}

// exactlyOne reports a problem unless exactly one of two keys is set.
func (w *walker) exactlyOne(t *table, n *yaml.Node, a, b string) {
	la, lb := t.byPath[a], t.byPath[b]
	if la.bad || lb.bad {
		return
	}
	switch name := lastName(b); {
	case la.key != nil && lb.key != nil:
		w.fatal(lb.key, lb.path, "keep exactly one of the two", "is set as well as %s (%s)", lastName(a), w.where(la.key))
	case la.key == nil && lb.key == nil:
		w.fatal(w.sectionOf(t, la, n), la.path, "set exactly one of "+lastName(a)+" and "+name, "is missing, and so is %s", name)
	}
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func increasing(at []int64) bool {
	for i := 1; i < len(at); i++ {
		if at[i] <= at[i-1] {
			return false
		}
	}
	return true
}

// crossStop checks that the run ends, and that its target can be evaluated.
func (w *walker) crossStop(t *table, root *yaml.Node) {
	var names []string
	any := false
	for _, l := range t.leaves {
		if name, ok := strings.CutPrefix(l.spec.path, "train.stop."); ok {
			names = append(names, name)
			any = any || l.key != nil || l.bad
		}
	}
	if !any {
		w.fatal(w.sectionOf(t, t.byPath["train.stop.epochs"], root), "train.stop", "set at least one of "+
			strings.Join(names, ", "), "is missing: the run would never end")
	}
	target, where, every, samples := t.byPath["train.stop.target"], t.byPath["evaluate.where"],
		t.byPath["evaluate.every_epochs"], t.byPath["evaluate.every_samples"]
	if e := w.cfg.Evaluate; !every.bad && !samples.bad && e.EveryEpochs > 0 && e.EverySamples > 0 {
		w.fatal(samples.key, samples.path, "keep one of the two, or set the other to 0",
			"is set as well as every_epochs (%s)", w.where(every.key))
	}
	if target.key == nil || target.bad {
		return
	}
	if !where.bad && w.cfg.Evaluate.Where != "online" {
		w.fatal(target.key, target.path, "set evaluate.where: online",
			"needs evaluations during training, but evaluate.where is %s", w.cfg.Evaluate.Where)
	}
	if !every.bad && !samples.bad && w.cfg.Evaluate.EveryEpochs == 0 && w.cfg.Evaluate.EverySamples == 0 {
		w.fatal(target.key, target.path, "set evaluate.every_epochs or every_samples above 0",
			"needs evaluations during training, but evaluate.every_epochs is 0: only at the end")
	}
}

// crossSync looks for parameters without a rule, and for rules without a parameter.
func (w *walker) crossSync(sync *leaf, root *yaml.Node) {
	var earlier []*table
	whole, unclear := false, false
	var everything []int // servers on which some rule takes all parameters
	for _, t := range w.rows {
		match, servers := t.byPath["match"], t.byPath["servers"]
		if match.bad || servers.bad || !w.crossServers(servers) {
			unclear = true
			continue
		}
		glob, on := *match.ptr.(*string), *servers.ptr.(*[]int)
		for _, e := range earlier {
			if first := *e.byPath["match"].ptr.(*string); covers(first, glob) && w.within(on, *e.byPath["servers"].ptr.(*[]int)) {
				w.report(Warning, match.node, match.path, "move it above that rule, or remove it",
					"can never match: %s takes %s first", e.prefix, formatString(first))
				break
			}
		}
		earlier = append(earlier, t)
		if all(glob) {
			whole = whole || on == nil
			everything = append(everything, on...)
		}
	}
	whole = whole || w.servesAll(everything)
	if !whole && !unclear && !(sync.bad && len(w.rows) == 0) {
		at := sync.key
		if at == nil {
			at = root
		}
		what, hint := "no rule takes every parameter", `add a last rule: {match: "*", scheme: bsp}`
		if len(everything) > 0 {
			what, hint = what+" on every server", hint+", without servers"
		}
		w.fatal(at, sync.path, hint, "%s", what)
	}
}

// crossServers checks that the servers of a rule exist. With mixed placement all workers serve too, so their number is known only when
// the run starts.
func (w *walker) crossServers(l *leaf) bool {
	list, most := *l.ptr.(*[]int), w.cfg.Cluster.Servers
	for i, m := range list {
		switch {
		case most < 1: // which is told already
			return false
		case m >= most && w.cfg.Cluster.Placement != "mixed":
			w.fatal(l.node, l.path, fmt.Sprintf("name servers from 0 to %d, or raise cluster.servers", most-1),
				"there is no server %d: cluster.servers is %d", m, most)
			return false
		case slices.Contains(list[:i], m):
			w.fatal(l.node, l.path, "name each server once", "server %d is listed twice", m)
			return false
		}
	}
	return true
}

// within reports whether servers is a subset of others; nil stands for all servers.
func (w *walker) within(servers, others []int) bool {
	switch {
	case others == nil:
		return true
	case servers == nil:
		return w.servesAll(others)
	}
	return !slices.ContainsFunc(servers, func(m int) bool { return !slices.Contains(others, m) })
}

// servesAll reports whether the list has every server.
func (w *walker) servesAll(list []int) bool {
	for m := range w.cfg.Cluster.Servers {
		if !slices.Contains(list, m) {
			return false
		}
	}
	return w.cfg.Cluster.Servers > 0 && w.cfg.Cluster.Placement != "mixed"
}

// crossRotations refuses two rules of a scheme that decides for a whole server if their keys differ: the server has one rotation for the
// shards of both rules.
func (w *walker) crossRotations() {
	first := map[string]int{}
	for i, r := range w.cfg.Sync {
		if e, ok := scheme.All.Lookup(r.Scheme); !ok || e.Scope != scheme.PerServer {
			continue
		}
		k, seen := first[r.Scheme]
		if !seen {
			first[r.Scheme] = i
			continue
		}
		if other := w.cfg.Sync[k]; r.Common != other.Common || !reflect.DeepEqual(r.Params, other.Params) {
			l := w.rows[i].byPath["scheme"]
			w.fatal(l.node, l.path, "give both rules the same keys",
				"%s has other keys than in sync[%d], but a server has one rotation for all its %s shards", r.Scheme, k, r.Scheme)
		}
	}
}

// covers reports whether the first glob fits every name that the second fits. It does if it fits the text of the second, provided that no
// question mark of the first matches a star of the second. covers returns false for all such pairs.
func covers(first, second string) bool {
	return shard.Match(first, second) && !(strings.Contains(first, "?") && strings.Contains(second, "*"))
}
