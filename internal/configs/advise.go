package configs

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Advice names keys by paths that the configuration takes: the test that follows hints reads these.

// inScheme is the path of a key of the k-th scheme of rule i.
func (w *walker) inScheme(i, k int, key string) string {
	if i < len(w.cfg.Sync) && len(w.cfg.Sync[i].Then) > 0 {
		return fmt.Sprintf("%s.schemes[%d].%s", w.rows[i].prefix, k, key)
	}
	return w.rows[i].prefix + "." + key
}

// pulling is the advice after which the workers of rule i pull before every iteration.
func (w *walker) pulling(i int) string {
	if w.rows[i].byPath["cache"] != nil {
		return "set " + w.rows[i].prefix + ".cache: false"
	}
	return "set " + w.rows[i].prefix + ".scheme: ssp"
}

// delta is the advice after which the workers of rule i push deltas.
func (w *walker) delta(i int) string {
	path := w.rows[i].prefix
	if update := w.rows[i].byPath["update"]; update.key != nil {
		return path + ".push: delta with " + update.path + ": add"
	}
	return path + ".push: delta"
}

// textAt is the text of a value in the file, before it was checked; "" where it is not given, or is no text.
func (w *walker) textAt(path string) string {
	steps, _, err := parsePath(path)
	if err != nil || w.tree == nil {
		return ""
	}
	n := w.tree
	for _, s := range steps {
		switch n = deref(n); {
		case s.key != "" && n.Kind == yaml.MappingNode:
			n = child(n, s.key)
		case s.key == "" && n.Kind == yaml.SequenceNode && s.index < len(n.Content):
			n = n.Content[s.index]
		default:
			return ""
		}
		if n == nil {
			return ""
		}
	}
	if n = deref(n); n.Kind == yaml.MappingNode { // baseline: {name: pslite}
		return valueOf(n, wordName)
	}
	return n.Value
}

// needs says with which value of another key a key exists: "KEY: VALUE". It is "" where the file has such a value, or a wrong one.
func (w *walker) needs(t *table, l *leaf) string {
	if l == nil || l.only == nil {
		return ""
	}
	by := t.byPath[l.only.path]
	have := w.textAt(by.path)
	if have == "" {
		have = by.def
	}
	if slices.Contains(l.only.words(), have) || have != "" && by.values() != nil && !slices.Contains(by.values(), have) {
		return ""
	}
	return by.path + ": " + l.only.words()[0]
}

// meantOf words the question whether one of these keys was meant. Keys that the configuration would refuse are left out, or if there are no
// others, stand with what they need. shown are the names of the keys.
func (w *walker) meantOf(t *table, keys []*leaf, shown []string) string {
	var may, all []string
	for i, l := range keys {
		need := w.needs(t, l)
		if need == "" {
			may = append(may, shown[i])
			continue
		}
		all = append(all, fmt.Sprintf("%s (which needs %s)", shown[i], need))
	}
	if len(may) > 0 {
		all = may
	}
	return "did you mean " + orList(all) + "?"
}

// meantPaths is meantOf for paths of the whole file.
func (w *walker) meantPaths(paths, shown []string) string {
	top := bind("", topKeys, &Config{})
	keys := make([]*leaf, len(paths))
	for i, path := range paths {
		keys[i] = top.byPath[strings.TrimSuffix(path, "[]")]
	}
	return w.meantOf(top, keys, shown)
}
