// Package reading keeps what has been read of a configuration so far, and adds problems to it at the places of nodes and keys. The reader
// in package configs fills it in; package rules checks what it holds.
package reading

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

// Reading is what has been read of a configuration so far, and the problems that were found.
type Reading struct {
	File       *diag.Text
	From       map[*yaml.Node]*diag.Text // nodes that come from an override
	Tree       *yaml.Node                // the root, with the overrides
	Config     *settings.Config          // what has been read into it
	Origins    *diag.Origins
	RuleTables []*keys.Table // of the rules of sync, in order, for the checks across them
	Diags      diag.Diagnostics
	Full       bool // Diags has as many problems as it may have: reading can end
}

// New begins to read a file, whose root is tree.
func New(file *diag.Text, tree *yaml.Node, origins *diag.Origins) *Reading {
	return &Reading{File: file, From: map[*yaml.Node]*diag.Text{}, Origins: origins, Config: &settings.Config{}, Tree: tree}
}

// TextOf returns the text that a node comes from.
func (r *Reading) TextOf(n *yaml.Node) *diag.Text {
	if t := r.From[n]; t != nil {
		return t
	}
	return r.File
}

// Report adds a problem of that severity at a node.
func (r *Reading) Report(s diag.Severity, n *yaml.Node, path, hint, format string, args ...any) {
	d := r.Problem(n, path, hint, fmt.Sprintf(format, args...))
	d.Severity = s
	r.Add(d)
}

// Problem makes a problem at a node, and does not add it.
func (r *Reading) Problem(n *yaml.Node, path, hint, msg string) diag.Diagnostic {
	t := r.TextOf(n)
	line, col := t.Place(n)
	d := t.At(line, col, msg, hint)
	d.Path = path
	return d
}

// Add adds a problem to the list. The first that the list has no room for says so in its own place, and the others are left out.
func (r *Reading) Add(d diag.Diagnostic) {
	d = d.Printable()
	if len(r.Diags) < diag.ProblemsMax {
		r.Diags = append(r.Diags, d)
	} else if !r.Full {
		r.Full = true
		d.Path, d.Msg, d.Hint, d.Severity = "", fmt.Sprintf("more than %d problems", diag.ProblemsMax), "solve those above first", diag.Fatal
		r.Diags = append(r.Diags, d)
	}
}

// Fatal adds a problem that refuses the configuration.
func (r *Reading) Fatal(n *yaml.Node, path, hint, format string, args ...any) {
	r.Report(diag.Fatal, n, path, hint, format, args...)
}

// Misshapen is Fatal for a problem that the JSON Schema also refuses.
func (r *Reading) Misshapen(n *yaml.Node, path, hint, format string, args ...any) {
	d := r.Problem(n, path, hint, fmt.Sprintf(format, args...))
	d.Shape = true
	r.Add(d)
}

// Where returns file:line of a node, for messages about two places.
func (r *Reading) Where(n *yaml.Node) string {
	t := r.TextOf(n)
	line, _ := t.Place(n)
	return fmt.Sprintf("%s:%d", t.File, line)
}

// SectionOf returns the place of a missing key: its innermost section that is given, or else the whole mapping.
func (r *Reading) SectionOf(t *keys.Table, l *keys.Leaf, n *yaml.Node) *yaml.Node {
	path := l.Spec.Path
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if key := t.Sections[path[:i]]; key != nil {
			return key
		}
	}
	return n
}

// NodeOf returns the best place for a problem with a key: its value, or else its section.
func (r *Reading) NodeOf(t *keys.Table, l *keys.Leaf, root *yaml.Node) *yaml.Node {
	if l.Node != nil {
		return l.Node
	}
	return r.SectionOf(t, l, root)
}

// ExactlyOne reports a problem unless exactly one of two keys is set.
func (r *Reading) ExactlyOne(t *keys.Table, n *yaml.Node, a, b string) {
	la, lb := t.ByPath[a], t.ByPath[b]
	if la.Bad || lb.Bad {
		return
	}
	switch name := diag.LastName(b); {
	case la.Key != nil && lb.Key != nil:
		r.Fatal(lb.Key, lb.Path, "keep exactly one of the two", "is set as well as %s (%s)", diag.LastName(a), r.Where(la.Key))
	case la.Key == nil && lb.Key == nil:
		r.Fatal(r.SectionOf(t, la, n), la.Path, "set exactly one of "+diag.LastName(a)+" and "+name, "is missing, and so is %s", name)
	}
}

// PhasesOf returns the schemes of a rule, and the key that names them. It returns none if the rule has a problem already.
func (r *Reading) PhasesOf(i int) (phases []settings.Phase, at *keys.Leaf) {
	if i >= len(r.Config.Sync) || r.Config.Sync[i].Params == nil {
		return nil, nil
	}
	for _, l := range r.RuleTables[i].Leaves {
		if l.Bad {
			return nil, nil
		}
		if name := diag.LastName(l.Path); name == "scheme" || name == "schemes" {
			at = l
		}
	}
	return r.Config.Sync[i].Phases(), at
}
