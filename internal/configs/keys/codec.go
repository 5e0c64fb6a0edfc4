package keys

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset/csv"
)

// ByteSize is an int64 whose YAML form carries a unit.
type ByteSize int64

// WorkerIndex is an int whose YAML form for -1 is "*": every worker.
type WorkerIndex int

// ItemsMax is the limit on the items of a list of plain values, rules or faults.
const ItemsMax = 4096

// Problem is the error of one value. The reader of the file adds its place.
type Problem struct {
	At   *yaml.Node // nil: the value itself
	Msg  string
	Hint string
	Fine bool // the JSON Schema accepts the value, but its number or text is wrong
}

func problemf(hint, format string, args ...any) *Problem {
	return &Problem{Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// ofFine marks a problem of a value that the JSON Schema accepts.
func ofFine(p *Problem) *Problem {
	p.Fine = true
	return p
}

// Read puts the value of the node into the leaf's destination, or returns all its problems. override says that the value comes from an
// override, whose texts need no quotes.
func (l *Leaf) Read(n *yaml.Node, override bool) []*Problem {
	var p *Problem
	switch ptr := l.Ptr.(type) {
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
	case *ByteSize:
		p = readSize(l, ptr, n)
	case *WorkerIndex:
		p = readWorker(ptr, n)
	case *settings.Until:
		p = readUntil(ptr, n)
	case *workload.Cost:
		p = readCost(l, ptr, n)
	case *csv.Columns:
		p = readColumns(ptr, n)
	default:
		panic(fmt.Sprintf("configs: no reader for %T of %s", l.Ptr, l.Path))
	}
	if p == nil {
		return nil
	}
	return []*Problem{p}
}

func readPlain[T any](ptr *T, n *yaml.Node, tag, want string) *Problem {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || n.Decode(ptr) != nil {
		hint, _ := asText(n, tag)
		return problemf(hint, "want %s, got %s", want, diag.Describe(n))
	}
	return nil
}

func readInt[T int | int64 | uint64](l *Leaf, ptr *T, n *yaml.Node) *Problem {
	var v T
	if p := readPlain(&v, n, "!!int", "a whole number"); p != nil {
		if _, text := asText(n, "!!int"); !text && n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || wholeNumber.MatchString(n.Value)) {
			return ofFine(problemf("", "%s does not fit: %s", diag.Clip(n.Value), l.wantWhole()))
		}
		if hint := wholeHint(n); hint != "" {
			p.Hint = hint
		}
		var float float64
		p.Fine = n.ShortTag() == "!!float" && n.Decode(&float) == nil && float == math.Trunc(float) // JSON does not distinguish 1.0 from 1
		return p
	}
	if l.Span.Set && float64(v) > l.Span.Hi && laterNumber(l.pattern()) {
		return problemf("", "%d is not in this version; it has: %s", v, diag.FormatWhole(l.Span.Hi))
	}
	if !l.Span.Has(float64(v)) {
		return problemf("", "%s, got %d", l.Span.want(diag.FormatWhole), v)
	}
	*ptr = v
	return nil
}

// wantWhole returns the text of the limits of a whole number: those of the key, or else those of the type.
func (l *Leaf) wantWhole() string {
	if _, unsigned := l.Ptr.(*uint64); unsigned && !l.Span.Set {
		return fmt.Sprintf("must be at least 0 and at most %d", uint64(math.MaxUint64))
	}
	if !l.Span.Set {
		return fmt.Sprintf("must be at least %d and at most %d", int64(math.MinInt64), int64(math.MaxInt64))
	}
	return l.Span.want(diag.FormatWhole)
}

var wholeNumber = regexp.MustCompile(`^[-+]?[0-9]+$`)

func readFloat(l *Leaf, ptr *float64, n *yaml.Node) *Problem {
	var v float64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!float" && n.ShortTag() != "!!int" || n.Decode(&v) != nil {
		hint, ok := asText(n, "!!float")
		if !ok {
			if hint, ok = asText(n, "!!int"); !ok {
				hint = numberHint(n)
			}
		}
		if _, err := strconv.ParseFloat(n.Value, 64); errors.Is(err, strconv.ErrRange) { // which YAML reads as a text
			if p := l.InSingle(math.Inf(1), n); p != nil {
				p.Fine = false
				return p
			}
			return problemf("", "%s is more than float64 holds: %s", diag.Clip(n.Value), l.Span.want(diag.FormatNumber))
		}
		return problemf(hint, "want a number, got %s", diag.Describe(n))
	}
	if !l.Span.Has(v) {
		p := problemf("", "%s, got %s", l.Span.want(diag.FormatNumber), diag.Clip(n.Value))
		p.Fine = math.IsNaN(v) || math.IsInf(v, 0) // JSON has no such numbers
		return p
	}
	if p := l.InSingle(v, n); p != nil {
		return p
	}
	if v == 0 {
		v = 0 // -0.0 is written as 0, and reads back equal
	}
	*ptr = v
	return nil
}

func (l *Leaf) readString(ptr *string, n *yaml.Node, override bool) *Problem {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") {
		return problemf(severalHint(l.Spec.Path, n), "want a word, got %s", diag.Describe(n))
	}
	text := tag == "!!str" || tag == "!!timestamp" || override || l.Text != nil && l.Text.Whole && tag == "!!int"
	if !text && len(l.Values()) == 0 {
		return problemf(fmt.Sprintf("write %q if that is meant", n.Value), "want text, got %s", diag.Describe(n))
	}
	if p := l.allows(n.Value); p != nil {
		return p
	}
	*ptr = n.Value
	return nil
}

// allows checks a word against the legal words, or against the text form of the key.
func (l *Leaf) allows(word string) *Problem {
	if len(l.Values()) > 0 {
		for _, v := range l.Values() {
			if v == word {
				return nil
			}
		}
		if hint, ok := belongs(l.pattern(), word); ok {
			return problemf(hint, "%s is not a value of this key; its values are: %s", diag.Clip(strconv.Quote(word)),
				strings.Join(l.Values(), ", "))
		}
		if laterValue(l.pattern(), word) {
			return problemf("", "%s is not in this version; it has: %s", diag.Clip(word), strings.Join(l.Values(), ", "))
		}
		return problemf(diag.DidYouMean(word, l.Values()), "%s is unknown", diag.Clip(strconv.Quote(word)))
	}
	if l.Text != nil && !l.Text.MatchString(word) {
		what, hint, _ := strings.Cut(l.Text.refusal(word), "; ")
		return problemf(hint, "%s", what)
	}
	return nil
}

func readDuration(l *Leaf, ptr *time.Duration, n *yaml.Node) *Problem {
	const units = "write a unit, as in 30s, 10m or 1h30m"
	if n.Kind != yaml.ScalarNode {
		return problemf(units, "want a time, got %s", diag.Describe(n))
	}
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		return problemf(units, "%s is a time without a unit", diag.Clip(n.Value))
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		return problemf(timeHint(n.Value), "want a time, got %s", diag.Describe(n))
	}
	if !l.Span.Has(d.Seconds()) {
		return ofFine(problemf("", "%s, got %s", l.Span.want(func(s float64) string { return diag.FormatNumber(s) + "s" }), diag.Clip(n.Value)))
	}
	*ptr = d
	return nil
}

// SizeForm is what a size looks like.
var SizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(B|KB|MB|GB|KiB|MiB|GiB)$`)

var sizeUnits = map[string]float64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

func parseSize(text string) (int64, error) {
	m := SizeForm.FindStringSubmatch(text)
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

func readSize(l *Leaf, ptr *ByteSize, n *yaml.Node) *Problem {
	const units = "write a unit, as in 64KiB, 4MiB or 1MB"
	if n.Kind != yaml.ScalarNode {
		return problemf(units, "want a size, got %s", diag.Describe(n))
	}
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		return problemf(units, "%s is a size without a unit", diag.Clip(n.Value))
	}
	v, err := parseSize(n.Value)
	if err != nil {
		p := problemf(sizeHint(n.Value), "want a size of whole bytes, got %s", diag.Describe(n))
		p.Fine = SizeForm.MatchString(n.Value)
		return p
	}
	if !l.Span.Has(float64(v)) {
		return ofFine(problemf("", "%s, got %s", l.Span.want(func(b float64) string { return diag.FormatSize(int64(b)) }), diag.Clip(n.Value)))
	}
	*ptr = ByteSize(v)
	return nil
}

func readWorker(ptr *WorkerIndex, n *yaml.Node) *Problem {
	if n.Kind == yaml.ScalarNode && n.Value == "*" {
		*ptr = -1
		return nil
	}
	var v int
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < 0 {
		return problemf(`write a number from 0, or "*" for every worker`, "want a worker, got %s", diag.Describe(n))
	}
	*ptr = WorkerIndex(v)
	return nil
}

func (l *Leaf) readList(n *yaml.Node, override bool) []*Problem {
	if n.Kind != yaml.SequenceNode {
		return []*Problem{problemf(listHint(n), "want a list, got %s", diag.Describe(n))}
	}
	if len(n.Content) > ItemsMax {
		return []*Problem{problemf("shorten the list", "%d items, more than the %d allowed", len(n.Content), ItemsMax)}
	}
	if len(n.Content) < l.Items {
		return []*Problem{problemf("", "the list is empty")}
	}
	var ps []*Problem
	seen := map[string]bool{}
	item := func(dst any, n *yaml.Node) bool {
		n = diag.Deref(n)
		one := Leaf{Spec: l.Spec, Ptr: dst, Path: l.Path}
		found := one.Read(n, override)
		if len(found) == 0 && len(l.Values()) > 0 && seen[n.Value] {
			found = []*Problem{problemf("remove one of them", "%s is listed twice", n.Value)}
		}
		seen[n.Value] = true
		for _, p := range found {
			p.At = n
			ps = append(ps, p)
		}
		return len(found) == 0
	}
	switch ptr := l.Ptr.(type) {
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
				items = append(items, FormatItem(strings.TrimSpace(item)))
			}
			word = strings.Join(items, ", ")
		}
		return "write [" + diag.Clip(word) + "]"
	}
	return ""
}
