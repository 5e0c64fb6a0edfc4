package configs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
)

// notKeys are the variables with our prefix that do not stand for keys. A star stands for any ending.
var notKeys = []string{"FLUENTPS_LOG", "FLUENTPS_TEST_*", "FLUENTPS_KERNELS_ISA", "FLUENTPS_KERNELS_LIBRARY"}

// step is one part of a path: a key, or an index if key is empty.
type step struct {
	key   string
	index int
	col   int // of the part in the override's text, from 1
}

// override is one --set or one variable.
type override struct {
	name  string // its name in messages: the path, or the variable
	path  []step
	value string
	key   *diag.Text // for nodes of the path
	val   *diag.Text // for nodes of the value
	node  *yaml.Node // the value in the file, for a setting of sweep; nil: value is parsed
	at    *yaml.Node // the key of node; nil without node
}

// overrideAll changes the tree before the walk, so that overrides meet the same checks as the file.
func (w *walker) overrideAll(root *yaml.Node, o Options) {
	known := &keys.KnownPaths{}
	env := slices.Clone(o.Env)
	slices.Sort(env) // a variable that sets a whole section comes before those that set its keys
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, diag.EnvPrefix) || isNotKey(name) {
			continue
		}
		v := newOverride(diag.EnvName+name, e, 1, len(name)+1, value)
		v.name, v.path = name, envPath(name)
		if value == "" { // an empty variable counts as unset
			w.noteNoKey(v, known)
			continue
		}
		w.apply(root, v, known)
	}
	for i, s := range o.Set {
		path, value, ok := strings.Cut(s, "=")
		v := newOverride(diag.SetName, s, i+1, utf8.RuneCountInString(path)+1, value)
		v.name = path
		if !ok {
			w.refuse(v, 1, "", "write key=value, as in train.stop.epochs=3", "%s has no =", diag.Clip(strconv.Quote(s)))
			continue
		}
		steps, col, err := parsePath(path)
		if err != nil {
			w.refuse(v, col, "", "write a.b[2].c=value", "%s in the path %s", err, diag.Clip(strconv.Quote(path)))
			continue
		}
		v.path = steps
		w.apply(root, v, known)
	}
}

// noteNoKey adds a note about an empty variable that would be refused if it had a value.
func (w *walker) noteNoKey(v *override, known *keys.KnownPaths) {
	known.Fill()
	if _, is := known.IsText[show(v.path, true)]; is {
		return
	}
	d := v.key.At(1, 1, "no key has this name; the variable is ignored because it is empty", w.nearPath(v, known))
	d.Severity = diag.Note
	w.Add(d)
}

// newOverride makes an override whose text is src. Its place is a line and, for the value, the column before it.
func newOverride(file, src string, line, col int, value string) *override {
	shown := []string{strings.ToValidUTF8(strings.ReplaceAll(src, "\n", " "), "\uFFFD")}
	return &override{
		value: value,
		key:   &diag.Text{File: file, Origin: file, Lines: shown, Line: line},
		val:   &diag.Text{File: file, Origin: file, Lines: shown, Line: line, Col: col},
	}
}

// isNotKey reports whether a variable is one of notKeys.
func isNotKey(name string) bool {
	return slices.ContainsFunc(notKeys, func(n string) bool {
		prefix, star := strings.CutSuffix(n, "*")
		return name == n || star && strings.HasPrefix(name, prefix)
	})
}

// refuse adds a problem with an override, at a column of its text, or at its key in a sweep.
func (w *walker) refuse(v *override, col int, path, hint, format string, args ...any) {
	line := v.key.Line
	if v.at != nil {
		line, col = v.at.Line, v.at.Column
	}
	d := v.key.At(line, col, fmt.Sprintf(format, args...), hint)
	d.Path = path
	w.Add(d)
}

// envPath reads the path in the name of a variable, such as TRAIN__STOP__EPOCHS or SYNC__0__SCHEME after the prefix.
func envPath(name string) []step {
	var steps []step
	for _, part := range strings.Split(strings.TrimPrefix(name, diag.EnvPrefix), "__") {
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && len(steps) > 0 {
			steps = append(steps, step{index: i, col: 1})
		} else {
			steps = append(steps, step{key: strings.ToLower(part), col: 1})
		}
	}
	return steps
}

var pathPart = regexp.MustCompile(`^(?:([A-Za-z0-9_-]+)|\[([0-9]{1,9})\])`)

// parsePath reads a path such as a.b[2].c. With an error, col is the column of the error.
func parsePath(s string) (steps []step, col int, err error) {
	for at := 0; at < len(s) || at == 0; {
		if at > 0 && s[at] == '.' {
			at++
		} else if at > 0 && s[at] != '[' {
			return nil, at + 1, fmt.Errorf("unexpected %q", s[at])
		}
		m := pathPart.FindStringSubmatch(s[at:])
		if m == nil || m[1] == "" && (at == 0 || s[at-1] == '.') {
			return nil, at + 1, errors.New("a key is missing")
		}
		st := step{key: m[1], col: at + 1}
		if m[2] != "" {
			st.index, _ = strconv.Atoi(m[2]) // at most nine digits
		}
		steps = append(steps, st)
		at += len(m[0])
	}
	return steps, 0, nil
}

// show writes the path. With plain, every index is [].
func show(steps []step, plain bool) string {
	var b strings.Builder
	for i, s := range steps {
		switch {
		case s.key == "" && plain:
			b.WriteString("[]")
		case s.key == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// nearPath returns the hint for an unknown path.
func (w *walker) nearPath(v *override, known *keys.KnownPaths) string {
	pattern := show(v.path, true)
	if hint, moved := keys.MovedKey(pattern); moved {
		return hint
	}
	if s, ok := synonymOf(diag.LastName(pattern)); ok && len(diag.Nearest(pattern, known.All())) == 0 && !strings.Contains(pattern, "[]") {
		return w.meant(s, v.value)
	}
	return w.near(v, known)
}

// near returns a hint with the nearest paths, in the spelling of the override.
func (w *walker) near(v *override, k *keys.KnownPaths) string {
	pattern, legal := show(v.path, true), append(k.All(), keys.SweepKey)
	found := diag.Nearest(pattern, legal)
	if len(found) == 0 {
		for _, path := range legal {
			if diag.LastName(path) == diag.LastName(pattern) {
				found = append(found, path)
			}
		}
	}
	if len(found) == 0 {
		name := diag.LastName(pattern)
		for _, path := range legal {
			if rest, in := strings.CutPrefix(path, strings.TrimSuffix(pattern, name)); in &&
				!strings.ContainsAny(rest, ".[") && len(begun(name, []string{rest})) > 0 {
				found = append(found, path)
			}
		}
	}
	if len(found) == 0 {
		return v.noKey()
	}
	found = withoutPhases(found)
	shown := slices.Clone(found)
	for i, path := range found {
		for _, s := range v.path {
			if s.key == "" {
				path = strings.Replace(path, "[]", fmt.Sprintf("[%d]", s.index), 1)
			}
		}
		path = strings.ReplaceAll(path, "[]", "[0]") // without a given index, propose the first item
		if v.name != show(v.path, false) {           // a variable
			path = diag.EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "__", "[", "__", "]", "").Replace(path))
		}
		shown[i] = path
	}
	return w.meantPaths(found, shown)
}

// apply puts one override into the tree. The value null removes the key, so that its default applies.
func (w *walker) apply(root *yaml.Node, v *override, known *keys.KnownPaths) {
	known.Fill()
	path, pattern := show(v.path, false), show(v.path, true)
	isText, ok := known.IsText[pattern]
	if !ok {
		if v.path[0].key == keys.SweepKey {
			w.refuse(v, 1, path, "change one run with another path, or edit the file", "only a file can have a sweep")
			return
		}
		if hint, later := keys.LaterKey(pattern); later {
			w.refuse(v, 1, path, hint, "this key is not in this version")
			return
		}
		w.refuse(v, 1, path, w.nearPath(v, known), "unknown key")
		return
	}
	value, msg := v.parse(isText)
	if msg != "" {
		w.refuse(v, v.val.Col+1, path, "write the value as in the file", "%s", msg)
		return
	}
	w.mark(value, v.val)
	w.openWords(root, v, known.Words)
	old := schemeAt(root, v.path)
	w.put(root, v, value)
	w.leaveOut(root, v, old)
}

// parse reads the value as YAML. For a key with a text, it takes the value literally, so that match=* and name=7 need no second pair of
// quotes.
func (v *override) parse(isText bool) (value *yaml.Node, msg string) {
	if v.node != nil {
		return v.node, ""
	}
	if !utf8.ValidString(v.value) {
		return nil, "the value is not UTF-8 text"
	}
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(v.value), &doc)
	quoted := strings.HasPrefix(v.value, `"`) || strings.HasPrefix(v.value, "'")
	isNothing := err == nil && (doc.Kind == 0 || diag.IsNull(doc.Content[0]))
	switch {
	case isNothing:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1, Column: 1}, ""
	case isText && !quoted || v.value == "*":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.value, Line: 1, Column: 1}, ""
	case err != nil:
		return nil, "the value is not YAML: " + diag.YAMLWhere.ReplaceAllString(err.Error(), "")
	case diag.TooDeep(doc.Content[0], 1) != nil:
		return nil, fmt.Sprintf("the value is nested more than %d deep", diag.DepthMax)
	}
	return doc.Content[0], ""
}

// mark remembers that a value, and everything in it, comes from an override.
func (w *walker) mark(n *yaml.Node, t *diag.Text) {
	w.From[n] = t
	for _, c := range n.Content {
		w.mark(c, t)
	}
}
