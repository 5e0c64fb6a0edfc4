// Package rules checks combinations of keys, after all keys have been read. What a scheme or a policy does not go with, it states itself as
// terms, and this package holds the configuration to them.
package rules

import (
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/reading"
	"fluentps/internal/configs/settings"
)

// checks adds the checks across keys to what has been read.
type checks struct{ *reading.Reading }

// Check adds a problem to r for each combination of keys that does not work. t is the table of the whole file, and root its mapping.
func Check(r *reading.Reading, t *keys.Table, root *yaml.Node) { (&checks{r}).cross(t, root) }

// cross checks combinations of keys. A check reports nothing if one of its keys has a problem already.
func (w *checks) cross(t *keys.Table, root *yaml.Node) {
	w.ExactlyOne(t, root, "train.batch_per_worker", "train.batch_global")
	w.crossStop(t, root)
	if w.Config.Train.Schedule.Name == "step" {
		w.ExactlyOne(t, root, "train.schedule.every", "train.schedule.at")
	}
	at, classes := t.ByPath["train.schedule.at"], t.ByPath["data.classes"]
	if strings.HasSuffix(w.Config.Model.Name, "logistic") && w.Config.Data.Set == "generated" && !classes.Bad && w.Config.Data.Classes != 2 {
		w.Fatal(w.NodeOf(t, classes, root), classes.Path, "set 2, or model.name: softmax",
			"model %s needs 2 classes, not %d", w.Config.Model.Name, w.Config.Data.Classes)
	}
	w.crossTest(t, root)
	w.crossSkew(t)
	w.crossImages(t)
	w.crossRatings(t)
	w.crossTask(t)
	w.crossPictures(t)
	w.crossExternal(t)
	if !at.Bad && !increasing(w.Config.Train.Schedule.At) {
		w.Fatal(at.Node, at.Path, "sort them, each once", "the iterations do not increase")
	}
	w.crossAugment(t)
	abort, warn := t.ByPath["stall.abort"], t.ByPath["stall.warn"]
	if s := w.Config.Stall; !abort.Bad && !warn.Bad && s.Abort > 0 && s.Abort <= s.Warn {
		w.Fatal(w.NodeOf(t, abort, root), abort.Path, "change one of them: a wait must be explained before it ends the run",
			"%s is not longer than stall.warn (%s)", diag.FormatDuration(s.Abort), diag.FormatDuration(s.Warn))
	}
	if peer, limit := t.ByPath["stall.peer"], w.Config.Stall.Peer; !peer.Bad && limit > 0 && limit < settings.PeerMin {
		w.Fatal(w.NodeOf(t, peer, root), peer.Path, "set 1m, or 0s for never",
			"%s is shorter than the time between two heartbeats; the least is %s", diag.FormatDuration(limit), diag.FormatDuration(settings.PeerMin))
	}
	if lo, hi, tune := t.ByPath["send.tune.min"], t.ByPath["send.tune.max"], w.Config.Send.Tune; !lo.Bad && !hi.Bad &&
		tune.Max > 0 && tune.Min > tune.Max {
		w.Fatal(w.NodeOf(t, lo, root), lo.Path, "swap them: the search goes from min to max",
			"%s is above send.tune.max (%s)", diag.FormatSize(tune.Min), diag.FormatSize(tune.Max))
	}
	if sync := t.ByPath["sync"]; !sync.Bad || len(w.RuleTables) > 0 {
		w.crossSync(sync, root)
		w.crossAwaits()
	}
	h := w.newHolder(t)
	h.schemes()
	w.crossMixed(t)
	w.crossLARS(t)
	w.crossClip(t)
	w.crossDevice(t)
	w.crossL1(t)
	w.crossNonzeros(t, root)
	if !t.ByPath["baseline"].Bad && !t.ByPath["sync"].Bad {
		w.crossBaseline(t)
	}
	h.policies()
	w.crossNumbers(t)
	w.crossCost(t)
	if !t.ByPath["sync"].Bad {
		w.crossRotations()
		w.crossCheckpoint(t)
	}
}

// deltaRule returns the first rule that pushes deltas; nil if there is none, or if sync has a problem already.
func (w *checks) deltaRule(t *keys.Table) *settings.Rule {
	if t.ByPath["sync"].Bad {
		return nil
	}
	for i := range w.Config.Sync {
		if r := &w.Config.Sync[i]; r.Push == settings.PushDelta {
			return r
		}
	}
	return nil
}

func increasing(at []int64) bool {
	for i := 1; i < len(at); i++ {
		if at[i] <= at[i-1] {
			return false
		}
	}
	return true
}

// crossStop checks that the run ends, and that its target can be evaluated.
func (w *checks) crossStop(t *keys.Table, root *yaml.Node) {
	var names []string
	any := false
	for _, l := range t.Leaves {
		if name, ok := strings.CutPrefix(l.Spec.Path, "train.stop."); ok {
			names = append(names, name)
			any = any || l.Key != nil || l.Bad
		}
	}
	if !any {
		w.Fatal(w.SectionOf(t, t.ByPath["train.stop.epochs"], root), "train.stop", "set at least one of "+
			strings.Join(names, ", "), "is missing: the run would never end")
	}
	target, where, every, samples := t.ByPath["train.stop.target"], t.ByPath["evaluate.where"],
		t.ByPath["evaluate.every_epochs"], t.ByPath["evaluate.every_samples"]
	if e := w.Config.Evaluate; !every.Bad && !samples.Bad && e.EveryEpochs > 0 && e.EverySamples > 0 {
		w.Fatal(samples.Key, samples.Path, "keep one of the two, or set the other to 0",
			"is set as well as every_epochs (%s)", w.Where(every.Key))
	}
	if target.Key == nil || target.Bad {
		return
	}
	if !where.Bad && w.Config.Evaluate.Where != "online" {
		w.Fatal(target.Key, target.Path, "set evaluate.where: online",
			"needs evaluations during training, but evaluate.where is %s", w.Config.Evaluate.Where)
	}
	if !every.Bad && !samples.Bad && w.Config.Evaluate.EveryEpochs == 0 && w.Config.Evaluate.EverySamples == 0 {
		w.Fatal(target.Key, target.Path, "set evaluate.every_epochs or every_samples above 0",
			"needs evaluations during training, but evaluate.every_epochs is 0: only at the end")
	}
}
