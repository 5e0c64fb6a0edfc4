package configs

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

// textAt is the text of a value in the file, before it was checked; "" where it is not given, or is no text.
func (w *walker) textAt(path string) string {
	steps, _, err := parsePath(path)
	if err != nil || w.Tree == nil {
		return ""
	}
	n := w.Tree
	for _, s := range steps {
		switch n = diag.Deref(n); {
		case s.key != "" && n.Kind == yaml.MappingNode:
			n = diag.Child(n, s.key)
		case s.key == "" && n.Kind == yaml.SequenceNode && s.index < len(n.Content):
			n = n.Content[s.index]
		default:
			return ""
		}
		if n == nil {
			return ""
		}
	}
	if n = diag.Deref(n); n.Kind == yaml.MappingNode { // baseline: {name: pslite}
		return diag.ValueOf(n, keys.WordName)
	}
	return n.Value
}

// needs says with which value of another key a key exists: "KEY: VALUE", and what that needs in turn, if the file lacks that, too. It is ""
// where the file has such a value, or a wrong one: advice names keys that the configuration takes, and the test that follows hints reads
// their paths.
func (w *walker) needs(t *keys.Table, l *keys.Leaf) string {
	if l == nil || l.Only == nil {
		return ""
	}
	by := t.ByPath[l.Only.Path]
	have := w.textAt(by.Path)
	if have == "" {
		have = by.Def
	}
	if slices.Contains(l.Only.Words(), have) || have != "" && by.Values() != nil && !slices.Contains(by.Values(), have) {
		return ""
	}
	need := by.Path + ": " + l.Only.Words()[0]
	if deeper := w.needs(t, by); deeper != "" {
		need += "; that needs " + deeper
	}
	return need
}

// meantOf words the question whether one of these keys was meant. Keys that the configuration would refuse are left out, or if there are no
// others, stand with what they need. shown are the names of the keys.
func (w *walker) meantOf(t *keys.Table, leaves []*keys.Leaf, shown []string) string {
	var may, all []string
	for i, l := range leaves {
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
	return "did you mean " + diag.OrList(all) + "?"
}

// meantPaths is meantOf for paths of the whole file.
func (w *walker) meantPaths(paths, shown []string) string {
	top := keys.Bind("", keys.TopKeys, &settings.Config{})
	leaves := make([]*keys.Leaf, len(paths))
	for i, path := range paths {
		leaves[i] = top.ByPath[strings.TrimSuffix(path, "[]")]
	}
	return w.meantOf(top, leaves, shown)
}
