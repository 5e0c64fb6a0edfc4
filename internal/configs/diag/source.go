package diag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// The limits on a file.
const (
	BytesMax = 1 << 20 // its size
	DepthMax = 32      // its nesting
	// searchBytesMax bounds the work of finding the line of a syntax error.
	searchBytesMax = 8 << 20
)

// Text is the text that a node comes from: the file, or one override.
type Text struct {
	File   string // name in diagnostics
	Origin string // name in the resolved form; for a file the line is added
	Lines  []string
	Line   int // overrides: the number of the setting; 0: nodes carry their own line
	Col    int // overrides: columns before the value
}

// NewText takes the text of a file; name stands for the file in diagnostics.
func NewText(name string, src []byte) *Text {
	lines := strings.Split(string(src), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return &Text{File: name, Origin: name, Lines: lines}
}

// Place is the line and column of a node in the text.
func (t *Text) Place(n *yaml.Node) (line, col int) {
	line, col = max(n.Line, 1), max(n.Column, 1)
	if t.Line == 0 {
		return line, col
	}
	if line > 1 { // an override is shown as one line
		col = 1
	}
	return t.Line, t.Col + col
}

// source is the text of a line.
func (t *Text) source(line int) string {
	if t.Line > 0 {
		line = 1
	}
	if line < 1 || line > len(t.Lines) {
		return ""
	}
	return t.Lines[line-1]
}

// At makes a diagnostic at a place of the text.
func (t *Text) At(line, col int, msg, hint string) Diagnostic {
	return Diagnostic{File: t.File, Line: line, Col: col, Msg: msg, Hint: hint, Source: t.source(line)}
}

// Parse turns the source into the root mapping, or says why it cannot be read at all.
func Parse(t *Text, src []byte) (*yaml.Node, *Diagnostic) {
	refuse := func(line, col int, msg, hint string) (*yaml.Node, *Diagnostic) {
		d := t.At(line, col, msg, hint)
		return nil, &d
	}
	if len(src) > BytesMax {
		return refuse(1, 1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(src), BytesMax), "name the configuration, not the data")
	}
	if !utf8.Valid(src) {
		line, col := firstInvalid(src)
		return refuse(line, col, "not UTF-8 text", "save the file as UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		err = dec.Decode(&next)
	}
	switch {
	case err == nil:
		return refuse(max(next.Line, 1), max(next.Column, 1),
			"a second document starts here, but a file holds one experiment", "remove the line --- or split the file")
	case !errors.Is(err, io.EOF):
		return refuse(syntaxError(t, src, err))
	}
	if doc.Kind != yaml.DocumentNode || IsNull(doc.Content[0]) {
		return refuse(1, 1, "the file is empty", "start from one of the examples")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d := t.At(root.Line, root.Column, "want keys and values at the top, got "+Describe(Deref(root)), "write key: value, as in name: first")
		d.Shape = true
		return nil, &d
	}
	if deep := TooDeep(root, 1); deep != nil {
		return refuse(deep.Line, deep.Column, fmt.Sprintf("nested more than %d deep", DepthMax), "no key needs that")
	}
	return root, nil
}

// TooDeep returns the first node below the limit. Aliases are not followed: the tables of keys bound how deep the reader goes.
func TooDeep(n *yaml.Node, depth int) *yaml.Node {
	if depth > DepthMax {
		return n
	}
	for _, c := range n.Content {
		if deep := TooDeep(c, depth+1); deep != nil {
			return deep
		}
	}
	return nil
}

func firstInvalid(src []byte) (line, col int) {
	line, col = 1, 1
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r == utf8.RuneError && n == 1 {
			break
		}
		col++
		if r == '\n' {
			line, col = line+1, 1
		}
		src = src[n:]
	}
	return line, col
}

// YAMLWhere is the place at the beginning of an error of the YAML parser.
var YAMLWhere = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// syntaxError finds the place of an error of the YAML parser. The parser names the line on which the
// unfinished block began, or none; the line that breaks is the one after the longest start of the file that is
// still YAML.
func syntaxError(t *Text, src []byte, err error) (line, col int, msg, hint string) {
	msg = "not YAML: " + YAMLWhere.ReplaceAllString(err.Error(), "")
	line = 1
	if m := YAMLWhere.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		if _, err := fmt.Sscan(m[1], &line); err != nil {
			line = 1
		}
	}
	ends := []int{0}
	for i, c := range src {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	for n, budget := len(ends)-1, searchBytesMax; n >= 0; n-- {
		if budget -= ends[n]; budget < 0 {
			break
		}
		if IsYAML(src[:ends[n]]) {
			line = n + 1
			break
		}
	}
	line = min(max(line, 1), len(t.Lines))
	broken := t.source(line)
	indent := broken[:len(broken)-len(strings.TrimLeft(broken, " \t"))]
	col = utf8.RuneCountInString(indent) + 1
	if tab := strings.IndexByte(indent, '\t'); tab >= 0 {
		return line, tab + 1, "a tab in the indentation", "YAML needs spaces"
	}
	if at, key, found := bracketKey(src, err); found {
		line = 1 + bytes.Count(src[:at], []byte("\n"))
		col = 1 + utf8.RuneCount(src[bytes.LastIndexByte(src[:at], '\n')+1:at])
		return line, col, "not YAML: within braces a key with brackets needs quotes", fmt.Sprintf("write %q", key)
	}
	return line, col, msg, syntaxHint(msg)
}

var plainBracketKey = regexp.MustCompile(`[{,][ \t\r\n]*([A-Za-z_][A-Za-z0-9_.]*\[[0-9]*\][A-Za-z0-9_.\[\]]*)[ \t]*:`)

// bracketKey finds a path such as sync[0].scheme that is a key within braces without quotes, where YAML takes the bracket for a list. It
// is the cause only if quotes change the error err of the parser.
func bracketKey(src []byte, err error) (at int, key string, found bool) {
	var quoted bytes.Buffer
	from := 0
	for _, m := range plainBracketKey.FindAllSubmatchIndex(src, -1) {
		if line := src[bytes.LastIndexByte(src[:m[2]], '\n')+1 : m[2]]; bytes.IndexByte(line, '#') >= 0 { // perhaps a comment
			continue
		}
		if !found {
			at, key, found = m[2], string(src[m[2]:m[3]]), true
		}
		fmt.Fprintf(&quoted, "%s\"%s\"", src[from:m[2]], src[m[2]:m[3]])
		from = m[3]
	}
	if !found {
		return 0, "", false
	}
	quoted.Write(src[from:])
	var doc yaml.Node
	now := yaml.Unmarshal(quoted.Bytes(), &doc)
	return at, key, now == nil || now.Error() != err.Error()
}

// IsYAML says whether every document of the text parses.
func IsYAML(src []byte) bool {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func syntaxHint(msg string) string {
	switch {
	case strings.Contains(msg, "mapping values are not allowed"):
		return "check the indentation, and quote a value that holds a colon"
	case strings.Contains(msg, "expected key"), strings.Contains(msg, "expected '-'"):
		return "check the indentation against the lines above"
	case strings.Contains(msg, "expected alphabetic"), strings.Contains(msg, "unknown anchor"):
		return `a value that starts with * or & needs quotes, as in match: "*"`
	case strings.Contains(msg, "',' or"), strings.Contains(msg, "unexpected end of stream"),
		strings.Contains(msg, "found unexpected document indicator"):
		return "close the bracket or the quote that is opened here"
	case strings.Contains(msg, "cannot start any token"):
		return "quote the value"
	case strings.Contains(msg, "could not find expected ':'"):
		return "write key: value, with a blank after the colon"
	case strings.Contains(msg, "control characters"):
		return "remove the character: a YAML file is plain UTF-8 text"
	}
	return "compare this line with those around it: indentation, colons, quotes and brackets"
}
