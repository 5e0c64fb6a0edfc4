package configs

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
)

// applyPoint puts the settings of one run of a sweep into the tree, as --set does, but where they stand in the file.
func (w *walker) applyPoint(root *yaml.Node, point []setting) {
	known := &keys.KnownPaths{}
	for _, s := range point {
		t := *w.File
		t.Origin = fmt.Sprintf("%s:%d", t.File, s.value.Line)
		w.apply(root, &override{name: s.path, path: s.steps, key: &t, val: &t, node: placed(s.value), at: s.key}, known)
	}
}

// placed copies a value without its aliases, each part where it stands, or where what it stands for does.
func placed(n *yaml.Node) *yaml.Node {
	n = diag.Deref(n)
	c := *n
	c.Anchor, c.Content = "", nil
	for _, item := range n.Content {
		c.Content = append(c.Content, placed(item))
	}
	return &c
}

// inRun adds the number of the run to problems outside the sweep, because the file without the sweep may not have them.
func inRun(ds diag.Diagnostics, i int, set []setting, file string) diag.Diagnostics {
	var words []string
	own := map[int]bool{} // lines of the settings
	for _, s := range set {
		words = append(words, s.text())
		own[s.key.Line], own[s.value.Line] = true, true
	}
	for k := range ds {
		if d := &ds[k]; d.File != file || !own[d.Line] {
			d.Msg += diag.Visible(fmt.Sprintf(" (in run %d of the sweep: %s)", i, diag.ClipTo(strings.Join(words, " "), 200)))
		}
	}
	return ds
}

// equalRuns warns of runs that equal earlier ones, once for each value that causes this.
func (w *walker) equalRuns(points []Point, settings [][]setting) {
	first, told := map[string]int{}, map[*yaml.Node]bool{}
	for i, p := range points {
		hash := keys.Hash(p.Config)
		k, seen := first[hash]
		if !seen {
			first[hash] = i
			continue
		}
		at := settings[i][0]
		for n, s := range settings[i] {
			if n < len(settings[k]) && settings[k][n].value != s.value {
				at = s
				break
			}
		}
		if told[at.value] {
			continue
		}
		told[at.value] = true
		w.Report(diag.Warning, at.value, diag.Join(keys.SweepKey, at.path),
			"remove one of them, or give each run a seed of its own, as in seed: [1, 2, 3]",
			"run %d has the configuration of run %d: the same run twice", i, k)
	}
}
