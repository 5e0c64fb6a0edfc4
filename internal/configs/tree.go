package configs

import (
	"slices"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
)

// put follows the path of an override, makes missing nodes on the way, and replaces the value at its end.
func (w *walker) put(root *yaml.Node, v *override, value *yaml.Node) {
	node := root
	for i, s := range v.path {
		last := i == len(v.path)-1
		if s.key != "" {
			node = w.putKey(node, v, i, value, last)
		} else {
			node = w.putItem(node, v, i, value, last)
		}
		if node == nil {
			return
		}
	}
}

// openWords makes a mapping of a plain word that an override goes into: with baseline.keys=list, baseline: pslite becomes
// baseline: {name: pslite}.
func (w *walker) openWords(root *yaml.Node, v *override, sections []string) {
	if root.Kind != yaml.MappingNode || len(v.path) < 2 || !slices.Contains(sections, v.path[0].key) {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		word := diag.Deref(root.Content[i+1])
		if root.Content[i].Value != v.path[0].key || word.Kind != yaml.ScalarNode || diag.IsNull(word) {
			continue
		}
		name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: keys.WordName, Line: word.Line, Column: word.Column}
		open := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: word.Line, Column: word.Column, Content: []*yaml.Node{name, word}}
		if t := w.From[word]; t != nil {
			w.From[name], w.From[open] = t, t
		}
		root.Content[i+1] = open
	}
}

// become turns a missing value into an empty mapping or list; nil if there is a value of another kind.
func (w *walker) become(n *yaml.Node, kind yaml.Kind, v *override) *yaml.Node {
	if n.Kind == kind {
		return n
	}
	if !diag.IsNull(n) {
		return nil
	}
	*n = yaml.Node{Kind: kind, Line: 1, Column: 1}
	if v.at != nil {
		n.Line, n.Column = v.at.Line, v.at.Column
	}
	w.From[n] = v.key
	return n
}

// putKey goes to the value of a key, and makes it if it is missing. At the end of the path, putKey sets or removes the key.
func (w *walker) putKey(n *yaml.Node, v *override, i int, value *yaml.Node, last bool) *yaml.Node {
	s := v.path[i]
	was := diag.Describe(n)
	if n = w.become(n, yaml.MappingNode, v); n == nil {
		w.refuse(v, s.col, show(v.path[:i], false), "set the whole value instead", "has no keys: it is %s", was)
		return nil
	}
	at := -1
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Kind == yaml.ScalarNode && n.Content[k].Value == s.key {
			at = k
			break
		}
	}
	if last && diag.IsNull(value) {
		if at >= 0 {
			n.Content = slices.Delete(n.Content, at, at+2)
		}
		return nil
	}
	if at < 0 {
		at = len(n.Content)
		n.Content = append(n.Content,
			w.made(yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.key, Column: s.col}, v),
			w.made(yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Column: s.col}, v))
	}
	if last {
		n.Content[at] = w.made(yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.key, Column: s.col}, v)
		n.Content[at+1] = value
		return nil
	}
	n.Content[at+1] = w.own(n.Content[at+1])
	return n.Content[at+1]
}

// putItem goes to an item of a list; the index after the last adds one.
func (w *walker) putItem(n *yaml.Node, v *override, i int, value *yaml.Node, last bool) *yaml.Node {
	s := v.path[i]
	was := diag.Describe(n)
	if n = w.become(n, yaml.SequenceNode, v); n == nil {
		w.refuse(v, s.col, show(v.path[:i], false), "set the whole value instead", "has no items: it is %s", was)
		return nil
	}
	have := len(n.Content)
	if s.index > have || s.index == have && last && diag.IsNull(value) {
		w.refuse(v, s.col, show(v.path[:i+1], false), "count from 0; the index after the last one adds an item", "there are %d items", have)
		return nil
	}
	if last && diag.IsNull(value) {
		n.Content = slices.Delete(n.Content, s.index, s.index+1)
		return nil
	}
	if s.index == have {
		n.Content = append(n.Content, w.made(yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Column: s.col}, v))
	}
	if last {
		n.Content[s.index] = value
		return nil
	}
	n.Content[s.index] = w.own(n.Content[s.index])
	return n.Content[s.index]
}

// made returns a node of an override's path.
func (w *walker) made(n yaml.Node, v *override) *yaml.Node {
	n.Line = 1
	if v.at != nil {
		n.Line, n.Column = v.at.Line, v.at.Column
	}
	w.From[&n] = v.key
	return &n
}

// own replaces an alias by a copy of what it stands for, so that an override changes one use and not all. The
// copy keeps the places of the original; aliases inside it stay aliases.
func (w *walker) own(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.AliasNode {
		return n
	}
	return w.copied(diag.Deref(n))
}

// copied copies a value, and remembers for each part of the copy where the original comes from.
func (w *walker) copied(n *yaml.Node) *yaml.Node {
	c := *n
	if t := w.From[n]; t != nil {
		w.From[&c] = t
	}
	c.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		c.Content[i] = w.copied(n.Content[i])
	}
	return &c
}
