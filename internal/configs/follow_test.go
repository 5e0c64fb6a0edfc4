package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/reading"
	"fluentps/ps/scheme"
)

// edit is one change of a configuration that a hint asks for.
type edit struct {
	path   string // in the form of Diagnostic.Path
	value  string // as YAML; "": the key is removed
	rename string // the key gets this name instead, or this path if it has a dot
	add    bool   // the value is a further item of the list
	it     bool   // it is about the place that the diagnostic names
}

// advice is a list of edits to be made together.
type advice []edit

// The forms in which hints name what to do. A hint that names a key in another form fails the test that follows hints. So what users
// read is what is tried, and nothing beside it can grow stale.
var (
	meantForm   = regexp.MustCompile(`did you mean ([^?]+)\?`)
	oneOfForm   = regexp.MustCompile(`it is one of: ([^;]+)`)
	ownKeysForm = regexp.MustCompile(`its keys are: ([^;]+)`)
	addForm     = regexp.MustCompile(`add a last rule: (\{[^}]+\})`)
	settingForm = regexp.MustCompile(`--set '([^'=]+)=([^']+)'`)
	needsForm   = regexp.MustCompile(`^(\S+) \(which needs (\S+): ([^)]+)\)$`)
	listForm    = regexp.MustCompile(`, or |, | or `)
	keyForm     = regexp.MustCompile(`^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*|\[[0-9]+\])*$`)
	literalForm = regexp.MustCompile(`^[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?[A-Za-zµ]*$|^[0-9]+h[0-9]+m$|^[0-9]+m[0-9]+s$|^true$|^false$|^["{\[]`)
	verbs       = []string{"set", "write", "add", "use", "choose", "take", "remove", "leave", "raise", "lower", "change",
		"check", "give", "let", "move"}
)

// follower finds the advice in hints.
type follower struct {
	known   *keys.KnownPaths
	legal   map[string][]string // by pattern: the words of a key
	usualOf map[string]string   // by pattern: a value that the key takes, where it exists
	last    map[string]bool     // the last names of all keys
}

func newFollower() *follower {
	f := &follower{known: &keys.KnownPaths{}, legal: map[string][]string{}, usualOf: map[string]string{}, last: map[string]bool{}}
	f.known.Fill()
	list := keys.All()
	for _, e := range scheme.All {
		for _, p := range keys.BindParams(e.Params()) {
			for _, prefix := range []string{"sync[].", "sync[].schemes[]."} {
				list = append(list, keys.Key{Path: prefix + p.Spec.Path, Values: p.Values(), Default: p.Def})
			}
		}
	}
	for _, k := range list {
		f.legal[k.Path] = k.Values
		f.last[diag.LastName(k.Path)] = true
		if f.usualOf[k.Path] = k.Default; k.Default == "" {
			f.usualOf[k.Path] = "1"
		}
	}
	return f
}

// is says whether a path is a key of the schema.
func (f *follower) is(path string) bool {
	steps, _, err := parsePath(path)
	if err != nil {
		return false
	}
	_, known := f.known.IsText[show(steps, true)]
	return known
}

// resolve finds the key that a hint about the path at names: a whole path, or a name in a section around it.
func (f *follower) resolve(at, name string) (path string, ok bool) {
	at = strings.TrimPrefix(at, keys.SweepKey+".")
	for section := at; section != ""; {
		section = section[:max(0, strings.LastIndexByte(section, '.'))]
		if full := diag.Join(section, name); f.is(full) {
			return full, true
		}
	}
	return name, f.is(name)
}

func (f *follower) values(path string) []string {
	return f.legal[keys.Pattern(strings.TrimPrefix(path, keys.SweepKey+"."))]
}

// found is what a hint names.
type found struct {
	all      []advice // alternatives
	mentions []string // keys without a value
	unclear  []string // what looks like a key, but is none, or has no form
}

// usual gives keys that are only mentioned a value that they take.
func (in found) usual(f *follower) (all []advice) {
	for _, path := range in.mentions {
		all = append(all, advice{{path: path, value: f.usualOf[keys.Pattern(path)]}})
	}
	return all
}

// of reads the hint of a diagnostic.
func (f *follower) of(d diag.Diagnostic) (in found) {
	hint := d.Hint
	if about := diag.LastName(d.Path) + ": "; strings.HasPrefix(hint, about) && !f.is(d.Path+"."+diag.LastName(d.Path)) &&
		!strings.HasPrefix(hint, "schemes: [") {
		return in // what the key is for
	}
	if d.Msg == "is missing" && strings.HasPrefix(hint, "set it: ") {
		return in
	}
	unknown := strings.HasPrefix(d.Msg, "unknown key") || strings.HasPrefix(d.Msg, "this key")
	for _, form := range []*regexp.Regexp{meantForm, oneOfForm} {
		m := form.FindStringSubmatchIndex(hint)
		if m == nil {
			continue
		}
		for _, word := range listForm.Split(hint[m[2]:m[3]], -1) {
			a := advice{{path: d.Path, value: keys.FormatItem(word), it: true}}
			if unknown {
				a = advice{{path: d.Path, rename: word, it: true}}
			}
			if n := needsForm.FindStringSubmatch(word); n != nil {
				a = advice{{path: d.Path, rename: n[1], it: true}}
				for _, need := range strings.Split(n[2]+": "+n[3], "; that needs ") {
					key, value, _ := strings.Cut(need, ": ")
					a = append(advice{{path: key, value: listForm.Split(value, -1)[0]}}, a...)
				}
			}
			in.all = append(in.all, a)
		}
		hint = hint[:m[0]] + hint[m[1]:]
	}
	if m := ownKeysForm.FindStringSubmatch(hint); m != nil {
		for _, word := range listForm.Split(m[1], -1) {
			if !f.is(diag.Join(d.Path, word)) {
				in.unclear = append(in.unclear, word)
			}
		}
		hint = strings.Replace(hint, m[0], "", 1)
	}
	if m := settingForm.FindStringSubmatch(hint); m != nil {
		in.all = append(in.all, advice{{path: m[1], value: m[2]}})
		hint = strings.Replace(hint, m[0], "", 1)
	}
	if m := addForm.FindStringSubmatch(hint); m != nil {
		in.all = append(in.all, advice{{path: "sync", value: m[1], add: true}})
		hint = strings.Replace(hint, m[0], "", 1)
	}
	r := reader{follower: f, d: d, words: tokens(hint), unknown: unknown, found: &in}
	r.read()
	return in
}

// reader reads the clauses of a hint: "set KEY: VALUE with KEY: VALUE, or write VALUE, or remove it".
type reader struct {
	*follower
	*found
	d       diag.Diagnostic
	words   []string
	unknown bool   // the diagnostic is about a key that is none
	verb    string // of the clause
	joined  bool   // the next edit goes with the one before
	skipped bool   // an example is being read
	before  string // the word before
}

func (r *reader) edit(e edit) {
	switch {
	case r.joined && len(r.all) > 0:
		r.all[len(r.all)-1] = append(r.all[len(r.all)-1], e)
	case r.unknown && !e.it: // what is written instead
		r.all = append(r.all, advice{{path: r.d.Path, it: true}, e})
	default:
		r.all = append(r.all, advice{e})
	}
	r.joined = false
}

func (r *reader) read() {
	for i := 0; i < len(r.words); i++ {
		raw := r.words[i]
		word := strings.TrimRight(raw, ",;.?")
		next := ""
		if i+1 < len(r.words) {
			next = strings.TrimRight(r.words[i+1], ",;.?")
		}
		isVerb := slices.Contains(verbs, word)
		if isVerb || word == "or" && slices.Contains(verbs, next) {
			r.skipped = false
		}
		switch {
		case r.skipped:
			r.skipped = !strings.HasSuffix(raw, ";")
			if _, key := r.resolve(r.d.Path, strings.TrimSuffix(next, ":")); word == "or" && key && strings.HasSuffix(next, ":") {
				r.skipped = false
			}
		case isVerb:
			r.verb, r.joined = word, false
			i += r.object(next)
		case word == "or":
			r.joined = false
		case word == "and" || word == "with":
			r.joined = true
		case word == "in" && next == "place" && i+3 < len(r.words):
			if path, ok := r.resolve(r.d.Path, strings.TrimRight(r.words[i+3], ",;.?")); ok && len(r.all) > 0 {
				r.joined = true
				r.edit(edit{path: path})
			}
			i += 3
		case word == "as" && next == "in" || word == "such" && next == "as":
			i += r.example(i)
			r.skipped = true
		default:
			if i > 0 {
				r.before = r.words[i-1]
			}
			i += r.word(word, next, raw)
		}
		if strings.HasSuffix(raw, ";") {
			r.verb = ""
		}
	}
}

// object reads what "remove", "leave", "change" and "use --set" act on. It returns how many words it took.
func (r *reader) object(next string) int {
	path, ok := r.resolve(r.d.Path, next)
	switch {
	case (r.verb == "remove" || r.verb == "leave" || r.verb == "move") && next == "it":
		r.edit(edit{path: r.d.Path, it: true})
		return 1
	case (r.verb == "remove" || r.verb == "leave") && ok:
		r.edit(edit{path: path})
		return 1
	case r.verb == "change" && ok: // to what the message says
		m := regexp.MustCompile(regexp.QuoteMeta(next) + `: (.+), not `).FindStringSubmatch(r.d.Msg)
		if m == nil {
			r.mentions = append(r.mentions, path)
			return 1
		}
		for _, value := range listForm.Split(m[1], -1) {
			r.edit(edit{path: path, value: value})
		}
		return 1
	case ok && slices.Contains([]string{"raise", "lower", "check"}, r.verb):
		r.mentions = append(r.mentions, path)
		return 1
	}
	return 0
}

// example reads "such as VALUE" behind a key, which is then set to it.
func (r *reader) example(i int) int {
	if r.words[i] != "such" || i == 0 || i+2 >= len(r.words) || r.verb != "set" {
		return 1
	}
	if path, ok := r.resolve(r.d.Path, strings.TrimRight(r.words[i-1], ",")); ok {
		r.mentions = slices.DeleteFunc(r.mentions, func(m string) bool { return m == path })
		r.edit(edit{path: path, value: strings.TrimRight(r.words[i+2], ",;")})
		return 2
	}
	return 1
}

// word reads KEY: VALUE, or a value alone, or a key that is only mentioned.
func (r *reader) word(word, next, raw string) int {
	if key, colon := strings.CutSuffix(word, ":"); colon && keyForm.MatchString(key) {
		path, ok := r.resolve(r.d.Path, key)
		switch {
		case ok && next != "" && slices.Contains([]string{"set", "write", "add", "use", "choose", "take", "let"}, r.verb):
			r.edit(edit{path: path, value: next})
			return 1
		case next != "" && r.verb != "" && r.last[key] || strings.ContainsAny(key, "._"):
			r.unclear = append(r.unclear, word)
		}
		return 0
	}
	limit := r.before == "above" || r.before == "below" || next == "more"
	if n, err := strconv.Atoi(word); r.before == "below" && err == nil && n > 1 { // set it below 7
		word, limit = strconv.Itoa(n-1), false
	}
	literal := (literalForm.MatchString(word) || slices.Contains(r.values(r.d.Path), strings.TrimSuffix(word, ":"))) && !limit
	word = strings.TrimSuffix(word, ":")
	switch {
	case literal && slices.Contains([]string{"set", "write", "use", "choose", "take"}, r.verb) && strings.HasPrefix(r.d.Msg, "unknown key"):
	case literal && slices.Contains([]string{"set", "write", "use", "choose", "take"}, r.verb) && !strings.HasSuffix(raw, ")"):
		r.edit(edit{path: r.d.Path, value: word, it: true})
		r.verb = map[bool]string{true: "", false: r.verb}[next == "samples"]
	case keyForm.MatchString(word) && strings.ContainsAny(word, "._"):
		path, ok := r.resolve(r.d.Path, word)
		top, _, _ := strings.Cut(strings.ReplaceAll(keys.Pattern(word), "[]", ""), ".")
		switch {
		case ok:
			r.mentions = append(r.mentions, path)
		case r.is(top):
			r.unclear = append(r.unclear, word)
		}
	}
	return 0
}

// tokens cuts a hint at blanks, but not within brackets or quotes. What stands in parentheses is an explanation.
func tokens(text string) (words []string) {
	depth, quoted, from := 0, false, 0
	text = regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(text, "")
	for i, c := range text + " " {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ' ' && depth <= 0:
			if i > from {
				words = append(words, text[from:i])
			}
			from = i + 1
		}
	}
	return words
}

// apply makes the edits in a copy of the source; it fails where the tree has no such place.
func (a advice) apply(f *follower, d diag.Diagnostic, src []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	in, at := nodeAt(root, d.Line, d.Col)
	w := &walker{Reading: reading.New(diag.NewText("x", nil), nil, diag.NewOrigins())}
	for _, e := range a {
		value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		if e.value != "" {
			var text yaml.Node
			if err := yaml.Unmarshal([]byte(e.value), &text); err != nil {
				return nil, err
			}
			value = text.Content[0]
		}
		var err error
		switch own := e.it && in != nil; {
		case e.add:
			err = putAt(w, root, fmt.Sprintf("%s[%d]", e.path, len(listAt(root, e.path))), value, f.known.Words)
		case own && e.rename != "":
			err = rename(w, root, in, at, e.rename, f)
		case own && at >= len(in.Content):
			err = fmt.Errorf("the edits %v take each other's place", a)
		case own && in.Kind == yaml.SequenceNode && e.value != "":
			in.Content[at] = value
		case own && e.value == "" && in.Kind == yaml.MappingNode && !f.is(e.path):
			in.Content = slices.Delete(in.Content, at&^1, at&^1+2)
		default:
			err = putAt(w, root, strings.TrimPrefix(e.path, keys.SweepKey+"."), value, f.known.Words)
		}
		if err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(&doc)
}

func listAt(root *yaml.Node, key string) []*yaml.Node {
	if n := diag.Child(root, key); n != nil && n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return nil
}

// nodeAt finds a key, a value or an item by its place.
func nodeAt(n *yaml.Node, line, col int) (in *yaml.Node, at int) {
	for i, c := range n.Content {
		if in, at := nodeAt(c, line, col); in != nil { // a mapping begins where its first key does
			return in, at
		}
		if c.Line == line && c.Column == col && (n.Kind == yaml.MappingNode || c.Kind == yaml.ScalarNode) {
			return n, i
		}
	}
	return nil, 0
}

// rename gives a key another name, or moves it to another path.
func rename(w *walker, root, in *yaml.Node, at int, name string, f *follower) error {
	value := in.Content[at|1]
	if strings.Contains(in.Content[at&^1].Value, ".") || !strings.Contains(name, ".") {
		in.Content[at&^1] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
		return nil
	}
	in.Content = slices.Delete(in.Content, at&^1, at&^1+2)
	return putAt(w, root, name, value, f.known.Words)
}

func putAt(w *walker, root *yaml.Node, path string, value *yaml.Node, words []string) error {
	steps, _, err := parsePath(path)
	if err != nil {
		return err
	}
	t := &diag.Text{File: "x", Origin: "x", Line: 1}
	v := &override{name: path, path: steps, key: t, val: t, node: value}
	w.openWords(root, v, words)
	before := len(w.Diags)
	w.put(root, v, value)
	if len(w.Diags) > before {
		return fmt.Errorf("%s", w.Diags[before])
	}
	return nil
}
