package configs

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/reading"
	"fluentps/internal/configs/settings"
)

// PointsMax is the limit on the runs of a sweep: one list too many multiplies them.
const PointsMax = 10000

// Point is one run of a sweep.
type Point struct {
	Set     []string // its settings, written as for --set, in the order of the file
	Config  *settings.Config
	Origins *diag.Origins
}

// Sweep reads the runs under sweep: all combinations of a mapping from paths to lists of values, where the first path
// varies slowest, or the items of a list of settings. It returns no points without a sweep. The settings of a point
// override those of o. The problems are those of the file, or else of the first point with problems.
func Sweep(name string, src []byte, o Options) ([]Point, diag.Diagnostics) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	file := diag.NewText(name, src)
	root, refused := diag.Parse(file, src)
	if refused != nil {
		return nil, diag.Diagnostics{refused.Printable()}
	}
	w := &walker{Reading: reading.New(file, root, diag.NewOrigins())}
	runs := w.takeSweep(root)
	if w.Diags.Failed() {
		return nil, w.Diags.Sorted()
	}
	points := make([]Point, len(runs))
	seen := map[diag.Diagnostic]bool{}
	for i, set := range runs {
		cfg, origins, ds := parsePoint(name, src, o, set)
		if ds.Failed() {
			return nil, inRun(ds, i, set, file.File)
		}
		for _, d := range ds { // points mostly share them
			if !seen[d] {
				seen[d] = true
				w.Add(d)
			}
		}
		points[i] = Point{Config: cfg, Origins: origins}
		for _, s := range set {
			points[i].Set = append(points[i].Set, s.text())
		}
	}
	w.equalRuns(points, runs)
	return points, w.Diags.Sorted()
}

// takeSweep removes the sweep from the tree and gives the settings of each of its points.
func (w *walker) takeSweep(root *yaml.Node) [][]setting {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], diag.Deref(root.Content[i+1])
		if key.Kind != yaml.ScalarNode || key.Value != keys.SweepKey {
			continue
		}
		root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
		switch {
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			return w.product(value)
		case value.Kind == yaml.SequenceNode && len(value.Content) > 0:
			return w.pointList(value)
		}
		w.Misshapen(key, keys.SweepKey, "write lists of values below it for all combinations, as in train.optimizer.lr: [0.1, "+
			"0.01], or a list of settings, as in {train.optimizer.lr: 0.1, seed: 1}",
			"want paths with lists of values, or a list of settings, got %s", filled(value))
		return nil
	}
	return nil
}

// filled describes a node, and says so where a list has no items.
func filled(n *yaml.Node) string {
	if len(n.Content) == 0 && n.Kind == yaml.SequenceNode {
		return "an empty list"
	}
	return diag.Describe(n)
}

// product lists all combinations; the first key varies slowest.
func (w *walker) product(n *yaml.Node) [][]setting {
	points := [][]setting{nil}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, values := n.Content[i], diag.Deref(n.Content[i+1])
		path, steps, ok := w.sweepPath(key)
		if !ok {
			continue
		}
		if values.Kind != yaml.SequenceNode || len(values.Content) == 0 {
			w.Misshapen(n.Content[i+1], diag.Join(keys.SweepKey, path), "write a list, as in "+path+
				": [VALUE, VALUE]; for settings that belong together make sweep a list", "want a list of values, got %s", filled(values))
			continue
		}
		if len(points)*len(values.Content) > PointsMax {
			w.Fatal(key, diag.Join(keys.SweepKey, path), "sweep fewer values", "more than %d runs", PointsMax)
			return nil
		}
		var next [][]setting
		for _, p := range points {
			for _, v := range values.Content {
				next = append(next, append(p[:len(p):len(p)], setting{path, steps, key, v}))
			}
		}
		points = next
	}
	return points
}

// pointList lists the points of a list of settings.
func (w *walker) pointList(n *yaml.Node) (points [][]setting) {
	if len(n.Content) > PointsMax {
		w.Fatal(n, keys.SweepKey, "sweep fewer values", "%d runs, at most %d", len(n.Content), PointsMax)
		return nil
	}
	for i, item := range n.Content {
		given := diag.Deref(item)
		if given.Kind != yaml.MappingNode || len(given.Content) == 0 {
			w.Misshapen(item, fmt.Sprintf("%s[%d]", keys.SweepKey, i), "write {train.optimizer.lr: 0.1, seed: 1}",
				"want settings, got %s", diag.Describe(given))
			continue
		}
		var set []setting
		for k := 0; k+1 < len(given.Content); k += 2 {
			if path, steps, ok := w.sweepPath(given.Content[k]); ok {
				set = append(set, setting{path, steps, given.Content[k], given.Content[k+1]})
			}
		}
		points = append(points, set)
	}
	return points
}

// sweepPath reads a key under sweep: a path as for --set.
func (w *walker) sweepPath(key *yaml.Node) (path string, steps []step, ok bool) {
	path = key.Value
	steps, _, err := parsePath(path)
	if key.Kind != yaml.ScalarNode || err != nil {
		w.Misshapen(key, keys.SweepKey, "write a path with dots, as in train.optimizer.lr", "want the path of a key, got %s", diag.Describe(key))
		return "", nil, false
	}
	known := &keys.KnownPaths{}
	known.Fill()
	if _, ok := known.IsText[show(steps, true)]; !ok {
		w.Misshapen(key, diag.Join(keys.SweepKey, path), w.nearPath(&override{name: path, path: steps}, known), "unknown key")
		return "", nil, false
	}
	return path, steps, true
}

// setting is one value of one run of a sweep, with its place in the file.
type setting struct {
	path       string
	steps      []step
	key, value *yaml.Node
}

// text writes a setting as --set takes it, on one line.
func (s setting) text() string {
	out, err := yaml.Marshal(inFlow(s.value))
	if err != nil {
		panic("configs: a value that was read cannot be written: " + err.Error())
	}
	return s.path + "=" + strings.TrimSuffix(string(out), "\n")
}

// inFlow copies a value without comments and aliases, in the form that fits on a line.
func inFlow(n *yaml.Node) *yaml.Node {
	n = diag.Deref(n)
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value}
	switch {
	case n.Kind != yaml.ScalarNode:
		c.Style = yaml.FlowStyle
	case n.ShortTag() == "!!str" && strings.ContainsAny(n.Value, "\n\r"):
		c.Style = yaml.DoubleQuotedStyle
	}
	for _, item := range n.Content {
		c.Content = append(c.Content, inFlow(item))
	}
	return c
}
