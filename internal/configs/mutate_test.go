package configs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/reading"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// mutator changes configurations at random.
type mutator struct {
	*rand.Rand
	*follower
	keys  []keys.Key
	words []string // all legal words of all keys
}

func newMutator(seed uint64) *mutator {
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, 38)), follower: newFollower(), keys: keys.All()}
	for _, e := range scheme.All {
		for _, p := range keys.BindParams(e.Params()) {
			m.keys = append(m.keys, keys.Key{Path: "sync[]." + p.Spec.Path, Type: keys.TypeName(p), Values: p.Values()})
		}
	}
	for _, k := range m.keys {
		m.words = append(m.words, k.Values...)
	}
	return m
}

func pick[T any](m *mutator, from []T) T { return from[m.IntN(len(from))] }

var oddValues = []string{"-1", "0", "1", "2", "3", "0.5", "1e39", "1e-300", "1e6", "99999999999999999999", ".nan",
	".inf", "true", `"0.1"`, "30", "10s", "4MiB", "2d", "1,5", "50%", "[]", "{}", "[1, 2]", "[0.5, 0.5]", "null", "none",
	"x", `"*"`, "{a: 1}", "07", "1.0", "{epochs: 1}", "{straggler: shows}", "1:30:00", "64k"}

// value draws a value for a key: mostly one that its type takes.
func (m *mutator) value(k keys.Key) string {
	switch {
	case m.IntN(5) == 0:
		return pick(m, oddValues)
	case len(k.Values) > 0 && m.IntN(8) > 0:
		return pick(m, k.Values)
	case len(k.Values) > 0:
		return pick(m, m.words)
	}
	switch k.Type {
	case "true or false":
		return pick(m, []string{"true", "false"})
	case "time":
		return pick(m, []string{"0s", "1s", "500ms", "10m", "2h"})
	case "size":
		return pick(m, []string{"0B", "4KiB", "1MiB", "100MB", "8GiB"})
	case "number":
		return pick(m, []string{"0", "0.1", "0.5", "0.9", "1", "2", "10", "0.001"})
	case "whole number":
		return pick(m, []string{"0", "1", "2", "3", "4", "7", "10", "100"})
	case "list":
		return pick(m, []string{"[1]", "[0, 1]", "[2, 3]", "[1, 28, 28]", "[0.5, 1]", "[csv]", `["*.bias"]`})
	}
	return pick(m, []string{"p", "x.npz", "fc1.*", "10Gbit", "2", "{fixed: 1ms}", "1ms"})
}

// typo is a word with a slip.
func (m *mutator) typo(word string) string {
	if len(word) < 2 {
		return word + "s"
	}
	at := m.IntN(len(word) - 1)
	switch m.IntN(5) {
	case 0:
		return word[:at] + word[at+1:]
	case 1:
		return word[:at] + word[at+1:at+2] + word[at:at+1] + word[at+2:]
	case 2:
		return word + "s"
	case 3:
		return pick(m, synonyms).words[0]
	}
	return strings.ToUpper(word)
}

// mappings lists the mappings of a tree.
func mappings(n *yaml.Node, list []*yaml.Node) []*yaml.Node {
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		list = append(list, n)
	}
	for _, c := range n.Content {
		list = mappings(c, list)
	}
	return list
}

// change makes one change of a tree.
func (m *mutator) change(root *yaml.Node) {
	all := mappings(root, nil)
	if len(all) == 0 {
		return
	}
	in := pick(m, all)
	at := 2 * m.IntN(len(in.Content)/2)
	scalar := func(text string) *yaml.Node {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
		}
		return doc.Content[0]
	}
	switch m.IntN(10) {
	case 0:
		in.Content = slices.Delete(slices.Clone(in.Content), at, at+2)
	case 1:
		in.Content[at] = &yaml.Node{Kind: yaml.ScalarNode, Value: m.typo(in.Content[at].Value)}
	case 2: // a typo in a value
		if v := in.Content[at+1]; v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" {
			in.Content[at+1] = &yaml.Node{Kind: yaml.ScalarNode, Value: m.typo(v.Value)}
		}
	case 3: // a key of another section
		k := pick(m, m.keys)
		in.Content = append(in.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: diag.LastName(k.Path)}, scalar(m.value(k)))
	case 4:
		in.Content[at+1] = scalar(pick(m, oddValues))
	default:
		k := pick(m, m.keys)
		w := &walker{Reading: reading.New(diag.NewText("x", nil), nil, diag.NewOrigins())}
		path := strings.ReplaceAll(k.Path, "[]", fmt.Sprintf("[%d]", m.IntN(2)))
		_ = putAt(w, root, path, scalar(m.value(k)), m.known.Words)
	}
}

// changed draws a source and changes it one to three times.
func (m *mutator) changed(all map[string][]byte, names []string) (name string, src []byte, ok bool) {
	name = pick(m, names)
	var doc yaml.Node
	if yaml.Unmarshal(all[name], &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return name, nil, false
	}
	for range 1 + m.IntN(3) {
		m.change(doc.Content[0])
	}
	src, err := yaml.Marshal(&doc)
	return name, src, err == nil
}

// problems are those of a configuration alone, or with what a run of four workers would know. They are what a user can see.
func problems(name string, src []byte) diag.Diagnostics {
	c, origins, ds := Parse(name, src, Options{})
	if c == nil {
		return ds
	}
	f := settings.Facts{Workers: 4, Computes: 4, Rows: 600}
	return slices.Concat(ds, idle.Misfit(c, origins, f), idle.More(c, origins, f)).Once()
}

func count(ds diag.Diagnostics, path, msg string) (n int) {
	for _, d := range ds {
		if d.Path == path && d.Msg == msg {
			n++
		}
	}
	return n
}

// refusals are the beginnings of messages about a key that does not exist in a configuration.
var refusals = []string{"unknown key", "this key", "belongs ", "is one for all"}

// judge follows an advice, and returns what is wrong with it; "" if nothing is. A key that is only mentioned gets a usual value, which need
// not be the one that is meant.
func (f *follower) judge(d diag.Diagnostic, a advice, mentioned bool, name string, src []byte, ds diag.Diagnostics) string {
	next, err := a.apply(f, d, src)
	switch {
	case err != nil && strings.Contains(err.Error(), "has no ") && len(ds.Errors()) > 1: // a section is none, which is told too
		return ""
	case err != nil:
		return "cannot be applied: " + err.Error()
	}
	now := problems(name, next)
	twice := slices.ContainsFunc(ds, func(o diag.Diagnostic) bool { // the second one shows then
		return o.Path == d.Path && strings.HasPrefix(o.Msg, "the key is here again")
	})
	if !mentioned && !twice && count(now, d.Path, d.Msg) >= count(ds, d.Path, d.Msg) {
		return "changes nothing"
	}
	for _, e := range now {
		refused := slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(e.Msg, r) })
		named := slices.ContainsFunc(a, func(x edit) bool {
			return (x.value != "" || x.rename != "") && (x.path == e.Path || x.rename == e.Path)
		})
		if refused && named && count(ds, e.Path, e.Msg) == 0 {
			return "names a key that is refused: " + e.Path + ": " + e.Msg
		}
	}
	return ""
}

// A hint can be followed: what it names in a form such as "set KEY: VALUE", "did you mean KEY?" or "remove it" is a key of the schema, the
// configuration does not refuse that key, and with the edit made the problem is gone; another may show. So it is in
// all files of testdata and examples, and in each of them changed at random; FLUENTPS_HINTS is how many of these.
func TestHintsCanBeFollowed(t *testing.T) {
	changed := 150
	if n, err := strconv.Atoi(os.Getenv("FLUENTPS_HINTS")); err == nil {
		changed = n
	}
	all := everySource(t)
	names := slices.Sorted(maps.Keys(all))
	m := newMutator(1)
	hints, followed, failed := 0, 0, map[string]bool{}
	try := func(name string, src []byte) {
		ds := problems(name, src)
		for _, d := range slices.Concat(ds.Errors(), ds.Warnings()) {
			hints++
			in := m.of(d)
			bad := ""
			if len(in.unclear) > 0 {
				bad = fmt.Sprintf("has %v in no form that the test can follow", in.unclear)
			}
			for i, a := range append(in.all, in.usual(m.follower)...) {
				followed++
				if what := m.judge(d, a, i >= len(in.all), name, src, ds); what != "" {
					bad = fmt.Sprintf("%v %s", a, what)
				}
			}
			if key := keys.Pattern(d.Path) + bad; bad != "" && !failed[key] && len(failed) < 20 {
				failed[key] = true
				t.Errorf("a hint that cannot be followed: %s\n%s\n%s", bad, d, src)
			}
		}
	}
	for _, name := range names {
		if diag.IsYAML(all[name]) {
			if _, bad := diag.Parse(diag.NewText(name, all[name]), all[name]); bad == nil {
				try(name, all[name])
			}
		}
	}
	tried := len(names)
	for range changed {
		if name, src, ok := m.changed(all, names); ok {
			try(name, src)
			tried++
		}
	}
	if followed < 3*tried {
		t.Errorf("only %d edits of %d configurations", followed, tried)
	}
	t.Logf("followed: %d edits that %d hints of %d configurations name", followed, hints, tried)
}
