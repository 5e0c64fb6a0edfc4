package configs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics/timings"
)

// Fault is a straggler to order, for experiments. Exactly one of Slow and Pause is set.
type Fault struct {
	Worker int            `yaml:"worker,required" unit:"worker" doc:"index of the worker from 0; \"*\" for all"`
	Slow   straggler.Spec `yaml:"slow"`
	Pause  FaultPause     `yaml:"pause"`
}

// FaultPause stops the computing of a worker once. Its messages travel on.
type FaultPause struct {
	At  time.Duration `yaml:"at,omitempty" min:"0" doc:"training time at which the worker pauses"`
	For time.Duration `yaml:"for,omitempty" above:"0" doc:"how long it computes nothing"`
}

func newFault() Fault { return Fault{Slow: straggler.Defaults()} }

// Paused reports whether a fault is a pause.
func (f *Fault) Paused() bool { return f.Pause.For > 0 }

// bindFault makes the table of a fault that has been read: a pause has no slowness.
func bindFault(prefix string, f *Fault) *table {
	t := bind(prefix, faultKeys, f)
	if f.Paused() {
		t.leaves = slices.DeleteFunc(t.leaves, func(l *leaf) bool { return strings.HasPrefix(l.spec.path, "slow.") })
	}
	return t
}

// YAML writes a fault as an item of faults:, without what is a default: {worker: 3, slow: {factor: 5}}.
func (f *Fault) YAML() string {
	parts := map[string][]string{}
	for _, l := range bindFault("", f).leaves {
		section, name, in := strings.Cut(l.spec.path, ".")
		if in && bindFault("", f).met(l) && !isZero(l.ptr) && !l.isDefault() {
			parts[section] = append(parts[section], name+": "+format(l.ptr))
		}
	}
	who := workerIndex(f.Worker)
	text := "{worker: " + format(&who)
	for _, section := range []string{"slow", "pause"} {
		if of := parts[section]; of != nil {
			text += fmt.Sprintf(", %s: {%s}", section, strings.Join(of, ", "))
		}
	}
	return text + "}"
}

// of reports whether a fault is one of a worker.
func (f *Fault) of(worker int) bool { return f.Worker == worker || f.Worker < 0 }

// Traces are the recorded iterations that faults replay: for each path those of every worker.
type Traces map[string][]straggler.Trace

// ReadTraces reads the files that faults of kind trace name. It fails if a file does not have the iterations of that many workers.
func (c *Config) ReadTraces(computing int) (Traces, error) {
	all := Traces{}
	for i, f := range c.Faults {
		path := f.Slow.Path
		if f.Slow.Kind != "trace" || f.Paused() || all[path] != nil {
			continue
		}
		iterations, err := timings.Read(path)
		if err != nil {
			return nil, fmt.Errorf("faults[%d].slow.path: %w", i, err)
		}
		all[path] = timings.Traces(iterations)
	}
	return all, c.CheckTraces(all, computing)
}

// CheckTraces fails if traces lack iterations of one of that many workers.
func (c *Config) CheckTraces(all Traces, computing int) error {
	for i, f := range c.Faults {
		if f.Slow.Kind != "trace" || f.Paused() {
			continue
		}
		of := all[f.Slow.Path]
		if len(of) != computing {
			return fmt.Errorf("faults[%d].slow.path: %s has the times of %d workers, but %d compute; take %d, or another "+
				"kind of slowness (simulate --calibrate: --fitted)",
				i, f.Slow.Path, len(of), computing, len(of))
		}
		for w, t := range of {
			if len(t) == 0 && f.of(w) {
				return fmt.Errorf("faults[%d].slow.path: %s has no iteration of worker %d", i, f.Slow.Path, w)
			}
		}
	}
	return nil
}

// CheckFaults fails for a fault of a worker that is not one of those that compute.
func (c *Config) CheckFaults(computing int) error {
	for i, f := range c.Faults {
		if f.Worker >= computing {
			return fmt.Errorf("faults[%d].worker is %d, but the workers are 0 to %d", i, f.Worker, computing-1)
		}
	}
	return nil
}

// Stragglers returns the slowness of a worker, of so many that compute, and its pauses in order of their times. rows is the size of the
// training set. The configuration, and the traces for it, have been checked.
func (c *Config) Stragglers(worker, computing, rows int, traces Traces) (slow straggler.Worker, pauses []FaultPause, err error) {
	for place, f := range c.Faults {
		if !f.of(worker) {
			continue
		}
		if f.Paused() {
			pauses = append(pauses, f.Pause)
			continue
		}
		e := straggler.Env{Seed: c.Seed, Place: place, Worker: worker, PerEpoch: c.EpochIterations(computing, rows)}
		if f.Slow.Kind == "trace" {
			e.Trace = traces[f.Slow.Path][worker]
		}
		if err := slow.Add(f.Slow, e); err != nil {
			return slow, nil, err
		}
	}
	slices.SortStableFunc(pauses, func(a, b FaultPause) int { return int(a.At - b.At) })
	return slow, pauses, nil
}

const faultExample = "{worker: 3, slow: {factor: 5}}"

func (w *walker) faults(ptr *[]Fault, l *leaf, n *yaml.Node) bool {
	items, ok := w.items(l, n, "["+faultExample+"]")
	if !ok {
		return false
	}
	*ptr = make([]Fault, len(items))
	before := len(w.diags)
	for i := 0; i < len(items) && !w.more; i++ {
		path, item := fmt.Sprintf("%s[%d]", l.path, i), deref(items[i])
		if item.Kind != yaml.MappingNode {
			w.misshapen(item, path, "write "+faultExample, "want a fault, got %s", describe(item))
			continue
		}
		t := bind(path, faultKeys, &(*ptr)[i])
		w.mapping(t, "", item, w.unknownKey)
		w.finish(t, item)
		w.crossFault(t, &(*ptr)[i], item)
	}
	return len(w.diags) == before
}

// crossFault checks that a fault is either slowness or a pause, and that its keys go together.
func (w *walker) crossFault(t *table, f *Fault, n *yaml.Node) {
	at, length := t.byPath["pause.at"], t.byPath["pause.for"]
	if at.key == nil && length.key == nil {
		w.crossSlow(t, f, n)
		return
	}
	if length.key == nil {
		w.fatal(w.sectionOf(t, length, n), length.path, "write pause: {at: 10s, for: 5s}", "is missing")
	}
	for _, l := range t.leaves {
		if strings.HasPrefix(l.spec.path, "slow.") && l.key != nil {
			w.fatal(l.key, l.path, "make it a fault of its own", "is set as well as pause (%s)", w.where(w.sectionOf(t, at, n)))
			return
		}
	}
}

// crossSlow checks the keys of a slowness.
func (w *walker) crossSlow(t *table, f *Fault, n *yaml.Node) {
	kind, sleep := t.byPath["slow.kind"], t.byPath["slow.sleep"]
	if kind.bad {
		return
	}
	switch s := &f.Slow; s.Kind {
	case "trace":
	case "fluentps":
		if sleep.key == nil {
			w.fatal(w.sectionOf(t, sleep, n), sleep.path, "write sleep: 20ms", "is missing: the mean sleep of kind fluentps")
		}
		if every := t.byPath["slow.every"]; !every.bad && f.Worker > 0 && f.Worker%s.Every != 0 {
			w.fatal(every.orKey(kind), every.path, `write worker: "*", or an index that is a multiple`,
				"worker %d is not slowed: %d is not a multiple of every, %d", f.Worker, f.Worker, s.Every)
		}
	case "dbs":
		w.notAbove(t, "slow.sleep_min", "slow.sleep_max", s.SleepMin > s.SleepMax)
		w.notAbove(t, "slow.epochs_min", "slow.epochs_max", s.EpochsMin > s.EpochsMax)
	default:
		w.exactlyOne(t, n, "slow.factor", "slow.sleep")
	}
	from, until := t.byPath["slow.from"], t.byPath["slow.until"]
	if lo, hi := f.Slow.From, f.Slow.Until; !from.bad && !until.bad && hi != 0 && hi <= lo {
		w.fatal(until.node, until.path, "0 means to the end", "iteration %d is not after slow.from (%d)", hi, lo)
	}
}

// notAbove reports that the first of two keys is above the second.
func (w *walker) notAbove(t *table, low, high string, above bool) {
	lo, hi := t.byPath[low], t.byPath[high]
	if above && !lo.bad && !hi.bad {
		at := lo
		if at.key == nil {
			at = hi
		}
		w.fatal(at.node, at.path, "let it not exceed "+lastName(high), "%s is %s, above %s, %s", lastName(low),
			format(lo.ptr), lastName(high), format(hi.ptr))
	}
}

// orKey is the place of the value of a leaf, or else that of another.
func (l *leaf) orKey(other *leaf) *yaml.Node {
	if l.node != nil {
		return l.node
	}
	return other.node
}
