// Package idle warns of values that do nothing in the run that a configuration describes. What it knows of the run beyond the configuration
// is in settings.Facts.
package idle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/ps/workload"
)

// idler looks for values that can never act in a run with the known facts. It never reports a default: the user has not asked for it.
type idler struct {
	c   *settings.Config
	o   *diag.Origins
	f   settings.Facts
	n   settings.Length
	top *keys.Table
	out diag.Diagnostics
}

// More warns of values that can never act in a run with these facts. It leaves out the keys about which Parse warns without the facts.
func More(c *settings.Config, o *diag.Origins, f settings.Facts) (more diag.Diagnostics) {
	told := map[string]bool{}
	for _, d := range Warnings(c, o, settings.FactsOf(c)) {
		told[d.Path] = true
	}
	for _, d := range Warnings(c, o, f) {
		if !told[d.Path] {
			more = append(more, d.Printable())
		}
	}
	return more.Sorted()
}

// Warnings lists the values that can never act in a run with these facts.
func Warnings(c *settings.Config, o *diag.Origins, f settings.Facts) diag.Diagnostics {
	w := &idler{c: c, o: o, f: f, n: c.Length(f), top: keys.Bind("", keys.TopKeys, c)}
	w.stop()
	w.batch()
	w.schedule()
	w.optimizer()
	w.ownSteps()
	w.rhythms()
	w.faults()
	w.roles()
	w.device()
	w.simulated()
	w.profile()
	w.steps()
	w.rules()
	return w.out
}

// warn adds a warning at the value of a key, unless the value is the default.
func (w *idler) warn(l *keys.Leaf, hint, what string, args ...any) {
	if !l.IsDefault() {
		w.at(l.Path, hint, what, args...)
	}
}

// at adds a warning at a path.
func (w *idler) at(path, hint, what string, args ...any) {
	d := w.o.Place(path)
	d.Path, d.Severity, d.Hint, d.Msg = path, diag.Warning, hint, fmt.Sprintf(what, args...)
	w.out = append(w.out, d)
}

func (w *idler) leaf(path string) *keys.Leaf { return w.top.ByPath[path] }

// Budgets above these never end a run: a billion samples or a million versions per second would take weeks.
const (
	samplesNever = 1e15
	updatesNever = 1e12
	timeNever    = 366 * 24 * time.Hour
)

// stop looks for budgets that no run can reach.
func (w *idler) stop() {
	s := w.c.Train.Stop
	const hint = "set a smaller budget; train.stop.time and Ctrl-C end a run too"
	if rows := float64(max(1, w.f.Rows)); s.Epochs*rows > samplesNever {
		w.at("train.stop.epochs", hint, "%s epochs of %s rows never end", diag.FormatNumber(s.Epochs), rowsText(w.f.Rows))
	}
	if float64(s.Samples) > samplesNever {
		w.at("train.stop.samples", hint, "a run with %d samples never ends", s.Samples)
	}
	if float64(s.Updates) > updatesNever {
		w.at("train.stop.updates", hint, "a run with %d versions never ends", s.Updates)
	}
	if s.Time > timeNever {
		w.at("train.stop.time", hint, "%s is longer than a year", diag.FormatDuration(s.Time))
	}
}

func rowsText(rows int) string {
	if rows == 0 {
		return "any number of"
	}
	return fmt.Sprint(rows)
}

// batch looks for iterations of more samples than there are rows.
func (w *idler) batch() {
	rows := int64(w.f.Rows)
	if rows == 0 || w.n.PerStep <= rows {
		return
	}
	of := "an iteration"
	if w.c.Local.IsSet() {
		of = "a step"
	}
	what := of + " uses some of them more than once"
	if w.c.DealsEpochs() {
		what = fmt.Sprintf("work.policy %s computes each row once an epoch, so an iteration has %d samples", w.c.Work.Policy, rows)
	}
	if w.c.Train.BatchGlobal > 0 {
		w.at("train.batch_global", fmt.Sprintf("set it to %d or less", rows),
			"%d samples in %s, but the training set has %d rows: %s", w.n.PerStep, of, rows, what)
		return
	}
	workers, who := max(1, w.f.Computes), ""
	if workers > 1 {
		who = fmt.Sprintf(" of %d workers", workers)
	}
	w.at("train.batch_per_worker", fmt.Sprintf("set it to %d or less", max(1, rows/int64(workers))),
		"%d samples%s in %s, but the training set has %d rows: %s", w.n.PerStep, who, of, rows, what)
}

// schedule looks for drops and warm-ups of the learning rate that the run does not reach. Where workers take steps of
// their own, the schedule counts these.
func (w *idler) schedule() {
	s, end, noun, run := w.c.Train.Schedule, w.n.Steps, "iterations", w.n.StepsText()
	if w.c.Local.IsSet() {
		noun = "steps"
	}
	if s.Name == "step" {
		if float64(s.Every) >= end {
			w.at("train.schedule.every", "lower it, or set schedule.name: constant",
				"%d %s to the first drop, but the run has %s: the rate never drops", s.Every, noun, run)
		}
		for i, at := range s.At {
			if float64(at) >= end {
				w.at(fmt.Sprintf("train.schedule.at[%d]", i), fmt.Sprintf("set it below %s, or remove it", diag.FormatWhole(end)),
					"the run has %s: the rate never drops at %d", run, at)
			}
		}
		l := w.leaf("train.schedule.factor")
		if s.Factor > 1 {
			w.warn(l, "set it below 1, such as 0.1",
				"%s makes the learning rate grow at each drop, to %s times lr after two drops", diag.FormatNumber(s.Factor),
				diag.FormatNumber(s.Factor*s.Factor))
		} else if s.Factor == 1 {
			w.warn(l, "set it below 1, such as 0.1, or schedule.name: constant", "1 does not change the learning rate")
		}
	}
	w.decay(noun)
	if float64(s.WarmUp) > end {
		w.warn(w.leaf("train.schedule.warm_up"), fmt.Sprintf("set it to %s or less", diag.FormatWhole(end)),
			"%d %s of warm-up, but the run has %s: the rate never reaches lr", s.WarmUp, noun, run)
	}
}

// decay looks for a rate that is far from its floor when the run ends, or that is 0 long before. Both are easily made: over is in
// iterations, and other libraries count epochs, or steps of all workers. A tenth of the run is no mistake.
func (w *idler) decay(noun string) {
	s, end := w.c.Train.Schedule, w.n.Steps
	if !s.Falls() || !w.n.Exact || math.IsInf(end, 1) || float64(s.WarmUp) >= end {
		return
	}
	const path, slack = "train.schedule.over", 0.1
	fits := max(1, end-float64(s.WarmUp))
	hint := fmt.Sprintf("set it to %s", diag.FormatWhole(fits))
	switch over := float64(s.Over); {
	case over > fits+slack*end:
		w.at(path, hint, "%d %s until the floor, but the run has %s: the rate ends at %s of lr", s.Over, noun, w.n.StepsText(),
			diag.FormatNumber(math.Round(1000*s.Scale(end))/1000))
	case over < fits-slack*end && s.Floor == 0:
		w.at(path, hint+", or a floor above 0", "the rate is 0 after %d %s, but the run has %s: nothing is learnt then",
			s.Over+s.WarmUp, noun, w.n.StepsText())
	}
}

// ownSteps looks for rounds, phases and intervals that the run does not reach, and for workers that together pull the
// servers' parameters past where they are. EASGD's authors let N times pull be 0.9 (recalled).
func (w *idler) ownSteps() {
	l, n := &w.c.Local, float64(w.f.Workers)
	if !l.IsSet() {
		return
	}
	has := func(path string) bool { return w.top.Met(w.leaf(path)) }
	if steps := l.Constant() * w.n.Turns; steps > 1 && float64(steps) > w.n.Steps {
		w.at("local.steps", fmt.Sprintf("set it to a fraction of %s", diag.FormatWhole(w.n.Steps)),
			"%d steps between two exchanges, but the run has %s: workers exchange what they learn once, at the end", steps, w.n.StepsText())
	}
	if has("local.switch") && float64(l.Switch) >= w.n.Steps {
		w.at("local.switch", fmt.Sprintf("set it below %s, or local.policy: none", diag.FormatWhole(w.n.Steps)),
			"every step is an exchange up to step %d, but the run has %s", l.Switch, w.n.StepsText())
	}
	if has("local.period.interval") && float64(l.Period.Interval) >= w.n.Iterations {
		w.at("local.period.interval", fmt.Sprintf("set it below %s", diag.FormatWhole(w.n.Iterations)),
			"the period changes after %s, but the run has %s: it never does", diag.FormatCount(float64(l.Period.Interval), "exchange"), w.n.Text())
	}
	if has("local.period.warm") && float64(l.Period.Warm) >= w.n.Steps {
		w.at("local.period.warm", fmt.Sprintf("set it below %s, or local.policy: none", diag.FormatWhole(w.n.Steps)),
			"each of the first %s is an exchange, but the run has %s: workers never vote", diag.FormatCount(float64(l.Period.Warm), "step"),
			w.n.StepsText())
	}
	if has("local.pull") && n*l.Pull > 1 {
		w.at("local.pull", fmt.Sprintf("set it to %s, which is 0.9 / N, or less", diag.FormatNumber(math.Round(900/n)/1000)),
			"%s: %s move the servers' parameters %s of the way to their mean, and so past it", diag.FormatNumber(l.Pull),
			diag.FormatCount(n, "worker"), diag.FormatNumber(n*l.Pull))
	}
}

// optimizer looks for patterns that fit no parameter.
func (w *idler) optimizer() {
	w.patterns("train.optimizer.no_decay", w.c.Train.Optimizer.NoDecay)
	w.patterns("train.optimizer.others.match", w.c.Train.Optimizer.Others.Match)
}

func (w *idler) patterns(path string, globs []string) {
	l := w.leaf(path)
	names := w.names()
	if l.IsDefault() || names == nil {
		return
	}
	for i, glob := range globs {
		if !matchesAny(glob, names) {
			w.at(fmt.Sprintf("%s[%d]", l.Path, i), "remove it, or use one of these names: "+namesText(names),
				"%s fits no parameter of %s", diag.FormatString(glob), w.c.Model.Name)
		}
	}
}

// rhythms looks for intervals that are longer than the run, and for checkpoints without a pause.
func (w *idler) rhythms() {
	s, k, e := w.c.Train.Stop, w.c.Checkpoint, w.c.Evaluate
	const every = "checkpoint.every"
	switch {
	case s.Time > 0 && k.Every >= s.Time:
		w.at(every, fmt.Sprintf("set it below train.stop.time (%s), or 0s: the end of the run always writes one",
			diag.FormatDuration(s.Time)), "%s is not below the %s that the run takes at most", diag.FormatDuration(k.Every),
			diag.FormatDuration(s.Time))
	case k.Every > 0 && k.Every < checkpointLeast:
		w.at(every, "set seconds or minutes, such as 10m",
			"%s is shorter than writing a checkpoint takes: the run writes one checkpoint after the other", diag.FormatDuration(k.Every))
	}
	if versions := w.versions(); float64(k.EveryUpdates) >= versions {
		w.warn(w.leaf("checkpoint.every_updates"), fmt.Sprintf("set it below %s, or 0: the end of the run always writes one",
			diag.FormatWhole(versions)),
			"%d versions between two checkpoints, but the run makes %s%s", k.EveryUpdates, settings.AtMostUnless(w.n.Exact),
			diag.FormatCount(versions, "version"))
	}
	const atEnd = "0 means the same: the run always evaluates at its end"
	if s.Epochs > 0 && e.EveryEpochs > s.Epochs {
		w.warn(w.leaf("evaluate.every_epochs"), fmt.Sprintf("set it below %s; %s", diag.FormatNumber(s.Epochs), atEnd),
			"%s epochs between two evaluations, but the run ends after %s", diag.FormatNumber(e.EveryEpochs), diag.FormatNumber(s.Epochs))
	}
	if float64(e.EverySamples) > w.n.Samples {
		w.warn(w.leaf("evaluate.every_samples"), fmt.Sprintf("set it below %s; %s", diag.FormatWhole(w.n.Samples), atEnd),
			"%d samples between two evaluations, but the run ends after %s", e.EverySamples, diag.FormatWhole(w.n.Samples))
	}
	if i := w.c.Metrics.Interval; s.Time > 0 && i > s.Time {
		w.warn(w.leaf("metrics.interval"), fmt.Sprintf("set it below train.stop.time (%s)", diag.FormatDuration(s.Time)),
			"%s between two progress lines, but the run ends after %s", diag.FormatDuration(i), diag.FormatDuration(s.Time))
	}
}

// checkpointLeast is the shortest sensible time between two checkpoints.
const checkpointLeast = 100 * time.Millisecond

// versions returns how many versions the lead shard makes at most.
func (w *idler) versions() (most float64) {
	for _, ph := range w.c.LeadPhases(w.f) {
		most = max(most, ph.Versions(w.n, w.f.Workers))
	}
	if u := w.c.Train.Stop.Updates; u > 0 {
		most = min(most, float64(u))
	}
	return most
}

// faults looks for slowness that begins after the run has ended.
func (w *idler) faults() {
	end, noun, run := w.n.Pushes, "iteration", w.n.Text() // one worker may do the work of all
	switch {
	case w.c.InStep() && !w.n.Varies:
		end = w.n.Steps
	case w.c.Local.IsSet():
		end = math.Ceil(w.n.Samples / float64(w.c.LeastStep(w.f)))
	}
	if w.c.Local.IsSet() {
		noun, run = "step", w.n.StepsText()
	}
	for i, f := range w.c.Faults {
		if float64(f.Slow.From) >= end {
			w.at(fmt.Sprintf("faults[%d].slow.from", i), fmt.Sprintf("set it below %s", diag.FormatWhole(end)),
				"the run has only %s, so it slows no %s from %d on", run, noun, f.Slow.From)
		}
	}
}

// roles looks for more servers than workers.
func (w *idler) roles() {
	servers, workers := w.f.Servers, w.f.Computes
	if p := w.c.Cluster.Placement; workers == 0 || servers <= workers || p != "spread" && p != "pack" {
		return
	}
	ranks := servers + workers
	rest := diag.FormatCount(float64(workers), "worker") + " are left"
	if workers == 1 {
		rest = "1 worker is left: nothing is computed in parallel"
	}
	w.warn(w.leaf("cluster.servers"), fmt.Sprintf("set it to %d or less, or cluster.placement: colocate, where all "+
		"ranks work", max(1, ranks/3)),
		"%d of %d ranks serve, and %s", servers, ranks, rest)
}

// device looks for a GPU that no rank of this binary can use, and for TF32 in models whose work is not in the
// products that cuBLAS computes.
func (w *idler) device() {
	if name := w.c.Model.Name; w.c.Device.Kind == "cuda" && w.c.Device.Math == "tf32" && workload.NeedsImages(name) {
		w.at("device.math", "set float32, or a model of dense layers alone, such as mlp",
			"tf32 acts on the dense layers of %s alone, which cuBLAS multiplies; our own kernels compute its convolutions, "+
				"and so most of its work, in float32", name)
	}
	if w.f.NoGPU != "" && w.c.Device.Kind == "cuda" {
		w.at("device.kind", "set cpu, or auto: a GPU if there is one", "cuda, but %s", w.f.NoGPU)
	}
}

// simulated looks for batches that differ in a model where each takes equally long.
func (w *idler) simulated() {
	if !w.f.Simulated || !w.c.BatchesDiffer() || w.c.Simulate.Compute.PerSample > 0 {
		return
	}
	path, who := "work.policy", w.c.Work.Policy+" deals batches"
	if !w.c.DealsBatches() {
		path, who = "work.shares", "the batches of ranks differ"
	}
	w.at(path, "set simulate.compute: {fixed: 1ms, per_sample: 0.1ms} to the times of your machines",
		"%s, but simulate.compute is %s whatever the batch: a smaller batch is not faster", who, keys.FormatCost(w.c.Simulate.Compute))
}

// names returns the names of the model's parameters.
func (w *idler) names() []string { return workload.ParamNames(w.c.ModelSpec()) }

func namesText(names []string) string {
	const shown = 8
	if n := len(names); n > shown {
		names = append(slices.Clone(names[:shown]), fmt.Sprintf("and %d more", n-shown))
	}
	return strings.Join(names, ", ")
}
