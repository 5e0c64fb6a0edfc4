package configs

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

const faultExample = "{worker: 3, slow: {factor: 5}}"

// faults reads the list of faults. It reports whether none has a problem.
func (w *walker) faults(ptr *[]settings.Fault, l *keys.Leaf, n *yaml.Node) bool {
	items, ok := w.items(l, n, "["+faultExample+"]")
	if !ok {
		return false
	}
	*ptr = make([]settings.Fault, len(items))
	before := len(w.Diags)
	for i := 0; i < len(items) && !w.Full; i++ {
		path, item := fmt.Sprintf("%s[%d]", l.Path, i), diag.Deref(items[i])
		if item.Kind != yaml.MappingNode {
			w.Misshapen(item, path, "write "+faultExample, "want a fault, got %s", diag.Describe(item))
			continue
		}
		t := keys.Bind(path, keys.FaultKeys, &(*ptr)[i])
		w.mapping(t, "", item, w.unknownKey)
		w.finish(t, item)
		w.crossFault(t, &(*ptr)[i], item)
	}
	return len(w.Diags) == before
}

// crossFault checks that a fault is either slowness or a pause, and that its keys go together.
func (w *walker) crossFault(t *keys.Table, f *settings.Fault, n *yaml.Node) {
	at, length := t.ByPath["pause.at"], t.ByPath["pause.for"]
	if at.Key == nil && length.Key == nil {
		w.crossSlow(t, f, n)
		return
	}
	if length.Key == nil {
		w.Fatal(w.SectionOf(t, length, n), length.Path, "write pause: {at: 10s, for: 5s}", "is missing")
	}
	for _, l := range t.Leaves {
		if strings.HasPrefix(l.Spec.Path, "slow.") && l.Key != nil {
			w.Fatal(l.Key, l.Path, "make it a fault of its own", "is set as well as pause (%s)", w.Where(w.SectionOf(t, at, n)))
			return
		}
	}
}

// crossSlow checks the keys of a slowness.
func (w *walker) crossSlow(t *keys.Table, f *settings.Fault, n *yaml.Node) {
	kind, sleep := t.ByPath["slow.kind"], t.ByPath["slow.sleep"]
	if kind.Bad {
		return
	}
	switch s := &f.Slow; s.Kind {
	case "trace":
	case "fluentps":
		if sleep.Key == nil {
			w.Fatal(w.SectionOf(t, sleep, n), sleep.Path, "write sleep: 20ms", "is missing: the mean sleep of kind fluentps")
		}
		if every := t.ByPath["slow.every"]; !every.Bad && f.Worker > 0 && f.Worker%s.Every != 0 {
			w.Fatal(nodeOf(every, kind), every.Path, `write worker: "*", or an index that is a multiple`,
				"worker %d is not slowed: %d is not a multiple of every, %d", f.Worker, f.Worker, s.Every)
		}
	case "dbs":
		w.notAbove(t, "slow.sleep_min", "slow.sleep_max", s.SleepMin > s.SleepMax)
		w.notAbove(t, "slow.epochs_min", "slow.epochs_max", s.EpochsMin > s.EpochsMax)
	default:
		w.ExactlyOne(t, n, "slow.factor", "slow.sleep")
	}
	from, until := t.ByPath["slow.from"], t.ByPath["slow.until"]
	if lo, hi := f.Slow.From, f.Slow.Until; !from.Bad && !until.Bad && hi != 0 && hi <= lo {
		w.Fatal(until.Node, until.Path, "0 means to the end", "iteration %d is not after slow.from (%d)", hi, lo)
	}
}

// nodeOf is the value of a key, or else that of another.
func nodeOf(l, other *keys.Leaf) *yaml.Node {
	if l.Node != nil {
		return l.Node
	}
	return other.Node
}

// notAbove reports that the first of two keys is above the second.
func (w *walker) notAbove(t *keys.Table, low, high string, above bool) {
	lo, hi := t.ByPath[low], t.ByPath[high]
	if above && !lo.Bad && !hi.Bad {
		at := lo
		if at.Key == nil {
			at = hi
		}
		w.Fatal(at.Node, at.Path, "let it not exceed "+diag.LastName(high), "%s is %s, above %s, %s", diag.LastName(low),
			keys.Format(lo.Ptr), diag.LastName(high), keys.Format(hi.Ptr))
	}
}
