package configs

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fluentps/ps/workload"

	"gopkg.in/yaml.v3"
)

// byteSize is an int64 whose YAML form carries a unit.
type byteSize int64

// workerIndex is an int whose YAML form for -1 is "*": every worker.
type workerIndex int

// itemsMax is the limit on the items of a list of plain values, rules or faults.
const itemsMax = 4096

// problem is the error of one value. The walker adds its place.
type problem struct {
	at   *yaml.Node // nil: the value itself
	msg  string
	hint string
	fine bool // the JSON Schema accepts the value, but its number or text is wrong
}

func problemf(hint, format string, args ...any) *problem {
	return &problem{msg: fmt.Sprintf(format, args...), hint: hint}
}

// ofFine marks a problem of a value that the JSON Schema accepts.
func ofFine(p *problem) *problem {
	p.fine = true
	return p
}

// read puts the value of the node into the leaf's destination, or returns all its problems.
func (l *leaf) read(n *yaml.Node, override bool) []*problem {
	var p *problem
	switch ptr := l.ptr.(type) {
	case *[]string, *[]int, *[]int64, *[]float64:
		return l.readList(n, override)
	case *string:
		p = l.readString(ptr, n, override)
	case *bool:
		p = readPlain(ptr, n, "!!bool", "true or false")
	case *int:
		p = readInt(l, ptr, n)
	case *int64:
		p = readInt(l, ptr, n)
	case *uint64:
		p = readInt(l, ptr, n)
	case *float64:
		p = readFloat(l, ptr, n)
	case *time.Duration:
		p = readDuration(l, ptr, n)
	case *byteSize:
		p = readSize(l, ptr, n)
	case *workerIndex:
		p = readWorker(ptr, n)
	case *Until:
		p = readUntil(ptr, n)
	case *workload.Cost:
		p = readCost(l, ptr, n)
	default:
		panic(fmt.Sprintf("configs: no reader for %T of %s", l.ptr, l.path))
	}
	if p == nil {
		return nil
	}
	return []*problem{p}
}

func readPlain[T any](ptr *T, n *yaml.Node, tag, want string) *problem {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || n.Decode(ptr) != nil {
		hint, _ := asText(n, tag)
		return problemf(hint, "want %s, got %s", want, describe(n))
	}
	return nil
}

func readInt[T int | int64 | uint64](l *leaf, ptr *T, n *yaml.Node) *problem {
	var v T
	if p := readPlain(&v, n, "!!int", "a whole number"); p != nil {
		if _, text := asText(n, "!!int"); !text && n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || wholeNumber.MatchString(n.Value)) {
			return ofFine(problemf("", "%s does not fit: %s", clip(n.Value), l.wantWhole()))
		}
		if hint := wholeHint(n); hint != "" {
			p.hint = hint
		}
		var float float64
		p.fine = n.ShortTag() == "!!float" && n.Decode(&float) == nil && float == math.Trunc(float) // JSON does not distinguish 1.0 from 1
		return p
	}
	if l.span.set && float64(v) > l.span.hi && laterNumber(l.pattern()) {
		return problemf("", "%d is not in this version; it has: %s", v, whole(l.span.hi))
	}
	if !l.span.has(float64(v)) {
		return problemf("", "%s, got %d", l.span.want(whole), v)
	}
	*ptr = v
	return nil
}

// wantWhole returns the text of the limits of a whole number: those of the key, or else those of the type.
func (l *leaf) wantWhole() string {
	if _, unsigned := l.ptr.(*uint64); unsigned && !l.span.set {
		return fmt.Sprintf("must be at least 0 and at most %d", uint64(math.MaxUint64))
	}
	if !l.span.set {
		return fmt.Sprintf("must be at least %d and at most %d", int64(math.MinInt64), int64(math.MaxInt64))
	}
	return l.span.want(whole)
}

var wholeNumber = regexp.MustCompile(`^[-+]?[0-9]+$`)

func readFloat(l *leaf, ptr *float64, n *yaml.Node) *problem {
	var v float64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!float" && n.ShortTag() != "!!int" || n.Decode(&v) != nil {
		hint, ok := asText(n, "!!float")
		if !ok {
			if hint, ok = asText(n, "!!int"); !ok {
				hint = numberHint(n)
			}
		}
		if _, err := strconv.ParseFloat(n.Value, 64); errors.Is(err, strconv.ErrRange) { // which YAML reads as a text
			if p := l.inSingle(math.Inf(1), n); p != nil {
				p.fine = false
				return p
			}
			return problemf("", "%s is more than float64 holds: %s", clip(n.Value), l.span.want(number))
		}
		return problemf(hint, "want a number, got %s", describe(n))
	}
	if !l.span.has(v) {
		p := problemf("", "%s, got %s", l.span.want(number), clip(n.Value))
		p.fine = math.IsNaN(v) || math.IsInf(v, 0) // JSON has no such numbers
		return p
	}
	if p := l.inSingle(v, n); p != nil {
		return p
	}
	if v == 0 {
		v = 0 // -0.0 is written as 0, and reads back equal
	}
	*ptr = v
	return nil
}

func (l *leaf) readString(ptr *string, n *yaml.Node, override bool) *problem {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") {
		return problemf(severalHint(l.spec.path, n), "want a word, got %s", describe(n))
	}
	text := tag == "!!str" || tag == "!!timestamp" || override
	if !text && len(l.values()) == 0 {
		return problemf(fmt.Sprintf("write %q if that is meant", n.Value), "want text, got %s", describe(n))
	}
	if p := l.allows(n.Value); p != nil {
		return p
	}
	*ptr = n.Value
	return nil
}

// allows checks a word against the legal words, or against the text form of the key.
func (l *leaf) allows(word string) *problem {
	if len(l.values()) > 0 {
		for _, v := range l.values() {
			if v == word {
				return nil
			}
		}
		if hint, ok := belongs(l.pattern(), word); ok {
			return problemf(hint, "%s is not a value of this key; its values are: %s", clip(strconv.Quote(word)), strings.Join(l.values(), ", "))
		}
		if laterValue(l.pattern(), word) {
			return problemf("", "%s is not in this version; it has: %s", clip(word), strings.Join(l.values(), ", "))
		}
		return problemf(didYouMean(word, l.values()), "%s is unknown", clip(strconv.Quote(word)))
	}
	if l.text != nil && !l.text.MatchString(word) {
		what, hint, _ := strings.Cut(l.text.refusal(word), "; ")
		return problemf(hint, "%s", what)
	}
	return nil
}

func readDuration(l *leaf, ptr *time.Duration, n *yaml.Node) *problem {
	const units = "write a unit, as in 30s, 10m or 1h30m"
	if n.Kind != yaml.ScalarNode {
		return problemf(units, "want a time, got %s", describe(n))
	}
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		return problemf(units, "%s is a time without a unit", clip(n.Value))
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		return problemf(timeHint(n.Value), "want a time, got %s", describe(n))
	}
	if !l.span.has(d.Seconds()) {
		return ofFine(problemf("", "%s, got %s", l.span.want(func(s float64) string { return number(s) + "s" }), clip(n.Value)))
	}
	*ptr = d
	return nil
}

var sizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(B|KB|MB|GB|KiB|MiB|GiB)$`)

var sizeUnits = map[string]float64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

func parseSize(text string) (int64, error) {
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("no size")
	}
	v, err := strconv.ParseFloat(m[1], 64)
	bytes := v * sizeUnits[m[2]]
	whole := math.Round(bytes)
	if rounding := 1e-15 * bytes; err == nil && math.Abs(bytes-whole) <= rounding && whole < 1<<53 { // 2.07 GB is not exact in binary
		return int64(whole), nil
	}
	return 0, errors.New("not a whole number of bytes")
}

func readSize(l *leaf, ptr *byteSize, n *yaml.Node) *problem {
	const units = "write a unit, as in 64KiB, 4MiB or 1MB"
	if n.Kind != yaml.ScalarNode {
		return problemf(units, "want a size, got %s", describe(n))
	}
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		return problemf(units, "%s is a size without a unit", clip(n.Value))
	}
	v, err := parseSize(n.Value)
	if err != nil {
		p := problemf(sizeHint(n.Value), "want a size of whole bytes, got %s", describe(n))
		p.fine = sizeForm.MatchString(n.Value)
		return p
	}
	if !l.span.has(float64(v)) {
		return ofFine(problemf("", "%s, got %s", l.span.want(func(b float64) string { return FormatSize(int64(b)) }), clip(n.Value)))
	}
	*ptr = byteSize(v)
	return nil
}

func readWorker(ptr *workerIndex, n *yaml.Node) *problem {
	if n.Kind == yaml.ScalarNode && n.Value == "*" {
		*ptr = -1
		return nil
	}
	var v int
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < 0 {
		return problemf(`write a number from 0, or "*" for every worker`, "want a worker, got %s", describe(n))
	}
	*ptr = workerIndex(v)
	return nil
}

func (l *leaf) readList(n *yaml.Node, override bool) []*problem {
	if n.Kind != yaml.SequenceNode {
		return []*problem{problemf(listHint(n), "want a list, got %s", describe(n))}
	}
	if len(n.Content) > itemsMax {
		return []*problem{problemf("shorten the list", "%d items, more than the %d allowed", len(n.Content), itemsMax)}
	}
	if len(n.Content) < l.items {
		return []*problem{problemf("", "the list is empty")}
	}
	var ps []*problem
	seen := map[string]bool{}
	item := func(dst any, n *yaml.Node) bool {
		n = deref(n)
		one := leaf{spec: l.spec, ptr: dst, path: l.path}
		found := one.read(n, override)
		if len(found) == 0 && len(l.values()) > 0 && seen[n.Value] {
			found = []*problem{problemf("remove one of them", "%s is listed twice", n.Value)}
		}
		seen[n.Value] = true
		for _, p := range found {
			p.at = n
			ps = append(ps, p)
		}
		return len(found) == 0
	}
	switch ptr := l.ptr.(type) {
	case *[]string:
		*ptr = readItems[string](n.Content, item)
	case *[]int:
		*ptr = readItems[int](n.Content, item)
	case *[]int64:
		*ptr = readItems[int64](n.Content, item)
	case *[]float64:
		*ptr = readItems[float64](n.Content, item)
	}
	return ps
}

func readItems[T any](nodes []*yaml.Node, item func(any, *yaml.Node) bool) []T {
	out := make([]T, 0, len(nodes))
	for _, n := range nodes {
		var v T
		if item(&v, n) {
			out = append(out, v)
		}
	}
	return out
}

func listHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		word := n.Value
		if n.ShortTag() == "!!str" {
			var items []string
			for _, item := range strings.Split(word, ",") { // as in --set model.layers=256,128
				items = append(items, formatItem(strings.TrimSpace(item)))
			}
			word = strings.Join(items, ", ")
		}
		return "write [" + clip(word) + "]"
	}
	return ""
}

// deref follows an alias to what it stands for.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// describe says what a node is, for a message that says what it should be.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return "nothing"
	case "!!str":
		return clip(strconv.Quote(n.Value))
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return "the truth value " + clip(n.Value)
	case "!!timestamp":
		return "the date " + clip(n.Value)
	default:
		return "a value with the tag " + clip(tag)
	}
}

// clip keeps a value in a message short.
func clip(s string) string { return clipTo(s, 40) }

func clipTo(s string, runes int) string {
	if len(s) <= runes { // as bytes, so surely as runes
		return s
	}
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-3]) + "..."
	}
	return s
}
