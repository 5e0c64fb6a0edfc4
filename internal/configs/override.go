package configs

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"fluentps/ps/scheme"
)

const (
	setName   = "--set"
	envName   = "env " // the name of the variable follows
	envPrefix = "FLUENTPS_"
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
	key   *text      // for nodes of the path
	val   *text      // for nodes of the value
	node  *yaml.Node // the value in the file, for a setting of sweep; nil: value is parsed
	at    *yaml.Node // the key of node; nil without node
}

// overrideAll changes the tree before the walk, so that overrides meet the same checks as the file.
func (w *walker) overrideAll(root *yaml.Node, o Options) {
	known := &knownPaths{}
	env := slices.Clone(o.Env)
	slices.Sort(env) // a variable that sets a whole section comes before those that set its keys
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, envPrefix) || isNotKey(name) {
			continue
		}
		v := newOverride(envName+name, e, 1, len(name)+1, value)
		v.name, v.path = name, envPath(name)
		if value == "" { // an empty variable counts as unset
			w.noteNoKey(v, known)
			continue
		}
		w.apply(root, v, known)
	}
	for i, s := range o.Set {
		path, value, ok := strings.Cut(s, "=")
		v := newOverride(setName, s, i+1, utf8.RuneCountInString(path)+1, value)
		v.name = path
		if !ok {
			w.refuse(v, 1, "", "write key=value, as in train.stop.epochs=3", "%s has no =", clip(strconv.Quote(s)))
			continue
		}
		steps, col, err := parsePath(path)
		if err != nil {
			w.refuse(v, col, "", "write a.b[2].c=value", "%s in the path %s", err, clip(strconv.Quote(path)))
			continue
		}
		v.path = steps
		w.apply(root, v, known)
	}
}

// noteNoKey adds a note about an empty variable that would be refused if it had a value.
func (w *walker) noteNoKey(v *override, known *knownPaths) {
	known.fill()
	if _, is := known.isText[show(v.path, true)]; is {
		return
	}
	d := v.key.at(1, 1, "no key has this name; the variable is ignored because it is empty", w.nearPath(v, known))
	d.Severity = Note
	w.add(d)
}

func newOverride(file, src string, line, col int, value string) *override {
	shown := []string{strings.ToValidUTF8(strings.ReplaceAll(src, "\n", " "), "\uFFFD")}
	return &override{
		value: value,
		key:   &text{file: file, origin: file, lines: shown, line: line},
		val:   &text{file: file, origin: file, lines: shown, line: line, col: col},
	}
}

func isNotKey(name string) bool {
	return slices.ContainsFunc(notKeys, func(n string) bool {
		prefix, star := strings.CutSuffix(n, "*")
		return name == n || star && strings.HasPrefix(name, prefix)
	})
}

func (w *walker) refuse(v *override, col int, path, hint, format string, args ...any) {
	line := v.key.line
	if v.at != nil {
		line, col = v.at.Line, v.at.Column
	}
	d := v.key.at(line, col, fmt.Sprintf(format, args...), hint)
	d.Path = path
	w.add(d)
}

// envPath reads the path in the name of a variable, such as TRAIN__STOP__EPOCHS or SYNC__0__SCHEME after the prefix.
func envPath(name string) []step {
	var steps []step
	for _, part := range strings.Split(strings.TrimPrefix(name, envPrefix), "__") {
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

// knownPaths are the paths that an override may name. isText is true if the value at the path is a text.
type knownPaths struct {
	isText map[string]bool
	words  []string // sections that may be plain words
}

func (k *knownPaths) fill() {
	if k.isText != nil {
		return
	}
	k.isText = map[string]bool{}
	list := func(prefix string, leaves []*leaf) {
		for _, l := range leaves {
			path := join(prefix, l.spec.path)
			_, k.isText[path] = l.ptr.(*string)
			for i, c := range path {
				if (c == '.' || c == '[') && !k.isText[path[:i]] {
					k.isText[path[:i]] = false
				}
			}
		}
	}
	top := bind("", topKeys, &Config{})
	list("", top.leaves)
	for section := range top.sections {
		if top.hasWord(section) { // a word or a mapping, so that it is read as YAML
			k.isText[section], k.isText[join(section, wordName)] = false, true
			k.words = append(k.words, section)
		}
	}
	list("sync[]", bind("", ruleKeys, &Rule{}).leaves)
	list("sync[]", bindPhased("", &Rule{}, &[]Phase{}).leaves[1:2])
	list("sync[].schemes[]", bind("", phaseKeys, &Phase{}).leaves)
	list("faults[]", bind("", faultKeys, &Fault{}).leaves)
	for _, e := range scheme.All {
		list("sync[]", paramsOf(e.Params()))
		list("sync[].schemes[]", paramsOf(e.Params()))
	}
	for path, l := range bind("", topKeys, &Config{}).byPath {
		if typeName(l) == "list" {
			k.isText[path+"[]"] = false
		}
	}
}

func (k *knownPaths) all() []string { return slices.Sorted(maps.Keys(k.isText)) }

// nearPath returns the hint for an unknown path.
func (w *walker) nearPath(v *override, known *knownPaths) string {
	pattern := show(v.path, true)
	if hint, moved := movedKey(pattern); moved {
		return hint
	}
	if s, ok := synonymOf(lastName(pattern)); ok && len(Nearest(pattern, known.all())) == 0 && !strings.Contains(pattern, "[]") {
		return w.meant(s, v.value)
	}
	return w.near(v, known)
}

// near returns a hint with the nearest paths, in the spelling of the override.
func (w *walker) near(v *override, k *knownPaths) string {
	pattern, legal := show(v.path, true), append(k.all(), sweepKey)
	found := Nearest(pattern, legal)
	if len(found) == 0 {
		for _, path := range legal {
			if lastName(path) == lastName(pattern) {
				found = append(found, path)
			}
		}
	}
	if len(found) == 0 {
		name := lastName(pattern)
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
			path = envPrefix + strings.ToUpper(strings.NewReplacer(".", "__", "[", "__", "]", "").Replace(path))
		}
		shown[i] = path
	}
	return w.meantPaths(found, shown)
}

// apply puts one override into the tree. The value null removes the key, so that its default applies.
func (w *walker) apply(root *yaml.Node, v *override, known *knownPaths) {
	known.fill()
	path, pattern := show(v.path, false), show(v.path, true)
	isText, ok := known.isText[pattern]
	if !ok {
		if v.path[0].key == sweepKey {
			w.refuse(v, 1, path, "change one run with another path, or edit the file", "only a file can have a sweep")
			return
		}
		if hint, later := laterKey(pattern); later {
			w.refuse(v, 1, path, hint, "this key is not in this version")
			return
		}
		w.refuse(v, 1, path, w.nearPath(v, known), "unknown key")
		return
	}
	value, msg := v.parse(isText)
	if msg != "" {
		w.refuse(v, v.val.col+1, path, "write the value as in the file", "%s", msg)
		return
	}
	w.mark(value, v.val)
	w.openWords(root, v, known.words)
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
	isNothing := err == nil && (doc.Kind == 0 || isNull(doc.Content[0]))
	switch {
	case isNothing:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1, Column: 1}, ""
	case isText && !quoted || v.value == "*":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.value, Line: 1, Column: 1}, ""
	case err != nil:
		return nil, "the value is not YAML: " + yamlWhere.ReplaceAllString(err.Error(), "")
	case tooDeep(doc.Content[0], 1) != nil:
		return nil, fmt.Sprintf("the value is nested more than %d deep", depthMax)
	}
	return doc.Content[0], ""
}

func (w *walker) mark(n *yaml.Node, t *text) {
	w.from[n] = t
	for _, c := range n.Content {
		w.mark(c, t)
	}
}
