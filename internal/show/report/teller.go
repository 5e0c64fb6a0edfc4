package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/report/plot"
)

// teller names runs by their settings.
type teller struct {
	runs     []*Run
	places   []map[string]int // of the keys that a run's user wrote
	keys     []string         // that differ and that a user wrote, in the order of a name
	spare    []string         // further keys that differ: for runs that are not told apart otherwise
	selected map[string]bool  // keys beside a key that differs and decides what they mean, as a scheme does with its staleness
}

// Keys that no user set.
const (
	serversKey = "servers of the run"
	workersKey = "workers of the run"
)

func newTeller(runs []*Run, how naming) *teller {
	t := &teller{runs: runs, selected: map[string]bool{}}
	place := map[string]int{} // of a key, as users wrote them
	for _, r := range runs {
		own := map[string]int{}
		for i, key := range r.Chosen {
			own[key] = i
			if _, seen := place[key]; !seen {
				place[key] = len(place)
			}
		}
		t.places = append(t.places, own)
	}
	unknown := slices.ContainsFunc(runs, func(r *Run) bool { return r.Settings != nil && r.Chosen == nil })
	seeds := false
	for _, key := range differing(runs) {
		switch at, chosen := placeOf(key, place); {
		case key == "name":
		case key == seedKey:
			seeds = how.list
		case chosen || unknown:
			t.keys, place[key] = append(t.keys, key), at
		default:
			t.spare = append(t.spare, key)
		}
	}
	slices.SortStableFunc(t.keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(rule(a), rule(b)), later(selector(b))-later(selector(a)),
			cmp.Compare(place[a], place[b]))
	})
	for _, key := range t.keys {
		for _, by := range t.keys {
			t.selected[key] = t.selected[key] || key != by && selector(by) && strings.HasPrefix(key, scope(by))
		}
	}
	if t.spare = append(t.spare, serversKey, workersKey); seeds {
		t.keys = append(t.keys, seedKey)
	}
	return t
}

// placeOf finds a key, or a section that has it, among those that users wrote.
func placeOf(key string, place map[string]int) (at int, found bool) {
	for end := len(key); end > 0; end = strings.LastIndexAny(key[:end], ".[") {
		if at, found = place[key[:end]]; found {
			return at, true
		}
	}
	return len(place), false
}

// order is the part of a name that a key stands in: the schemes, the baseline, all others.
func order(key string) int {
	switch {
	case rule(key) != "":
		return 0
	case key == "baseline":
		return 1
	}
	return 2
}

func later(yes bool) int { return map[bool]int{true: 1}[yes] }

// rule is the part of a key that names its rule of sync; "": it is no key of one.
func rule(key string) string {
	if end := strings.IndexByte(key, ']'); end > 0 && strings.HasPrefix(key, "sync[") {
		return key[:end+1]
	}
	return ""
}

// selector says whether a key chooses one of several things, each of which has further keys.
func selector(key string) bool {
	return slices.Contains([]string{"scheme", "policy", "name", "set", "baseline"}, last(key))
}

// scope is how the keys begin that a selector decides about.
func scope(key string) string {
	if key == "baseline" {
		return "sync["
	}
	return strings.TrimSuffix(key, last(key))
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// tell gives each run the text of its settings. Names that are too wide show only what tells runs apart.
func (t *teller) tell() []string {
	texts := t.texts(false)
	if slices.ContainsFunc(texts, func(text string) bool { return plot.TextWidth(text) > plot.NameWidth }) {
		texts = t.texts(true)
	}
	return texts
}

func (t *teller) texts(needed bool) []string {
	parts, weak := make([][]string, len(t.runs)), make([][]string, len(t.runs)) // weak are shown where nothing else is
	told := make([]string, len(t.runs))                                         // the values that the names tell so far
	for k, key := range append(t.keys[:len(t.keys):len(t.keys)], t.spare...) {
		split := t.splits(key, told)
		for i, r := range t.runs {
			value, there := setting(r, key)
			wanted := k < len(t.keys) && !needed && (!t.selected[key] || t.swept(i, key) || t.isBare(i, key))
			switch {
			case !there || !split[told[i]] && !wanted:
			case isWeak(value) && !t.swept(i, key):
				weak[i] = append(weak[i], t.part(key, value))
			default:
				parts[i] = append(parts[i], t.part(key, value))
			}
		}
		for i, r := range t.runs {
			if split[told[i]] {
				told[i] += fmt.Sprintf("%q=%s ", key, valueText(r, key))
			}
		}
	}
	texts := make([]string, len(t.runs))
	for i := range parts {
		if parts[i] == nil {
			parts[i] = weak[i]
		}
		if texts[i] = strings.Join(strings.Fields(strings.Join(parts[i], " ")), " "); texts[i] == "" {
			texts[i] = t.lacking(i)
		}
	}
	return texts
}

// lacking names a run that has none of the keys that others have; "" if there is nothing that it lacks.
func (t *teller) lacking(i int) string {
	for _, key := range t.keys {
		if _, there := t.runs[i].Settings[key]; !there && t.runs[i].Settings != nil {
			return "without " + foreign.Text(key[:strings.IndexAny(key+".", ".[")])
		}
	}
	return ""
}

// splits are the texts of runs that a key tells apart.
func (t *teller) splits(key string, told []string) map[string]bool {
	first, out := map[string]string{}, map[string]bool{}
	for i, r := range t.runs {
		if !known(r, key) {
			continue
		}
		value := valueText(r, key)
		if was, seen := first[told[i]]; seen && was != value {
			out[told[i]] = true
		} else if !seen {
			first[told[i]] = value
		}
	}
	return out
}

// swept says whether a run's sweep sets a key.
func (t *teller) swept(i int, key string) bool {
	at, chosen := t.places[i][key]
	return chosen && at < t.runs[i].Swept || key == seedKey
}

// bare are the parameters that everybody writes behind the name of their scheme, without a key.
var bare = []string{"staleness", "tau", "required"}

// follows says whether a name shows a key as the number of the scheme before it.
func (t *teller) follows(key string) bool {
	return rule(key) != "" && slices.Contains(bare, last(key)) && slices.Contains(t.keys, scope(key)+"scheme")
}

// isBare says whether a run's user wrote the number that belongs to the scheme in the name.
func (t *teller) isBare(i int, key string) bool {
	_, chosen := placeOf(key, t.places[i])
	return chosen && t.follows(key)
}

// isWeak says of a value that it chooses nothing.
func isWeak(value string) bool { return value == "none" || value == "fixed" }

// part is a setting as a name shows it.
func (t *teller) part(key, value string) string {
	switch key {
	case serversKey:
		return value + " servers"
	case workersKey:
		return value + " workers"
	}
	short, alike := last(key), 0
	for _, k := range t.keys {
		alike += later(last(k) == short)
	}
	value = foreign.Text(value)
	switch {
	case t.follows(key), selector(key) && !isWeak(value) && alike == 1:
		return value
	case selector(key) && key != "baseline":
		return foreign.Text(strings.TrimSuffix(scope(key), ".")) + "=" + value
	case alike > 1:
		return foreign.Text(key) + "=" + value
	}
	return foreign.Text(short) + "=" + value
}

// known says whether it is known what a run has for a key. The keys of a simulation mean nothing to other runs.
func known(r *Run, key string) bool {
	switch {
	case key == serversKey || key == workersKey:
		return r.Summary != nil
	case strings.HasPrefix(key, "simulate."):
		return r.Settings != nil && r.Simulated()
	}
	return r.Settings != nil
}

// setting is the value of a key, if the run has it.
func setting(r *Run, key string) (value string, there bool) {
	switch {
	case !known(r, key):
		return "", false
	case key == serversKey:
		return fmt.Sprint(r.Summary.Servers), true
	case key == workersKey:
		return fmt.Sprint(r.Summary.Workers), true
	}
	value, there = r.Settings[key]
	return value, there
}

// valueText is equal for runs in which a key is the same.
func valueText(r *Run, key string) string {
	value, there := setting(r, key)
	return fmt.Sprintf("%q %v", value, there)
}

// differing are the keys whose values are not the same in all runs whose settings are known, in order.
func differing(runs []*Run) (keys []string) {
	all := map[string]bool{}
	for _, r := range runs {
		for k := range r.Settings {
			all[k] = true
		}
	}
	for k := range all {
		first := ""
		if slices.ContainsFunc(runs, func(r *Run) bool {
			if known(r, k) && first == "" {
				first = valueText(r, k)
			}
			return known(r, k) && valueText(r, k) != first
		}) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
