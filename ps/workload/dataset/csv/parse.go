package csv

import (
	"bytes"
	"math"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/text"
)

// fault is a mistake in a record.
type fault struct {
	line   int // from 0, in the block
	column int // in bytes, from 1; 0: the whole line
	err    error
}

// fresh is a text that a parser has seen for the first time.
type fresh struct {
	text string
	fault
}

// chunk is what the records of a block hold. Texts have the numbers that their parser gave them.
type chunk struct {
	rows, lines, comments  int
	missing                int
	x                      []float32 // rows x kept columns; NaN: a missing number, -1: a missing text
	wide                   []float64 // rows x columns of opWide
	y                      []int32
	group                  []int32   // rows, if a column groups them
	news                   [][]fresh // by text column, and at last those of the class
	firstText, firstNumber *fresh    // the first class of that kind; nil: none
	err                    *fault
}

// parser reads blocks one after the other.
type parser struct {
	*Options
	*scheme
	sep, point byte
	skip       int // so many records are still to be skipped: the first ones of the file
	isFirst    bool
	line       int                  // of the block, from 0, with which the record begins that is being read the long way
	seen       []classes.Dictionary // the texts of columns, and at last those of the class

	out *chunk
}

func newParser(o *Options, s *scheme, d *dialect) *parser {
	return &parser{Options: o, scheme: s, sep: d.sep, point: d.point, seen: make([]classes.Dictionary, len(s.texts)+1)}
}

// parse reads the records of a block, which are whole.
func (p *parser) parse(b []byte, out *chunk) {
	p.out = out
	*out = chunk{x: out.x[:0], wide: out.wide[:0], y: out.y[:0], group: out.group[:0], news: make([][]fresh, len(p.seen))}
	for at := 0; at < len(b); {
		if p.skip == 0 {
			x, wide, group, missing := len(out.x), len(out.wide), len(out.group), out.missing
			if next := p.plain(b, at); next > 0 {
				at, p.isFirst = next, false
				out.rows++
				out.lines++
				continue
			}
			out.x, out.wide, out.group, out.missing = out.x[:x], out.wide[:wide], out.group[:group], missing
		}
		next, err := p.record(b[at:])
		if err != nil {
			out.err = err
			return
		}
		at += next
	}
}

// plain reads a record at b[at:] on the short way: numbers as most files have them, and texts of ASCII. It returns where the next record
// begins; 0: another way must read the record, and p.out.x and p.out.wide may be too long.
func (p *parser) plain(b []byte, at int) (next int) {
	c := p.out
	if b[at] == '#' {
		return 0
	}
	texts, y := 0, int32(0)
	for i, op := range p.ops {
		at = p.blanks(b, at)
		switch op {
		case opNumber, opWide:
			if at = p.plainNumber(b, at, op == opWide); at == 0 {
				return 0
			}
		case opTarget:
			v, n, isExact := text.Scan(b[at:], p.point)
			target, ok := text.Single(v, isExact)
			if n == 0 || !ok {
				return 0
			}
			at, y = at+n, int32(math.Float32bits(target))
		default:
			field, end := p.plainText(b, at)
			if end == 0 {
				return 0
			}
			at = end
			switch op {
			case opText, opGroup:
				number, ok := p.seen[texts].Number[string(field)]
				if !ok { // also if it is missing
					return 0
				}
				if op == opGroup {
					c.group = append(c.group, number)
				} else {
					c.x = append(c.x, float32(number))
				}
				texts++
			case opLabel:
				var ok bool
				if y, ok = p.plainLabel(field); !ok {
					return 0
				}
			}
		}
		at = p.blanks(b, at)
		if i+1 == len(p.ops) {
			break
		}
		if at >= len(b) || b[at] != p.sep && !(p.sep == ' ' && b[at-1] <= ' ' && b[at] > ' ') {
			return 0
		}
		if p.sep != ' ' {
			at++
		}
	}
	switch {
	case at == len(b):
	case b[at] == '\n':
		at++
	case b[at] == '\r':
		if at++; at < len(b) && b[at] == '\n' {
			at++
		}
	default:
		return 0
	}
	c.y = append(c.y, y)
	return at
}

// plainNumber appends the number at b[at:], and returns where it ends; 0: it is not plain.
func (p *parser) plainNumber(b []byte, at int, wide bool) (end int) {
	c := p.out
	v, n, isExact := text.Scan(b[at:], p.point)
	if p.Scale != 0 {
		v /= p.Scale
	}
	switch f, ok := text.Single(v, isExact); {
	case n == 0:
	case wide && isExact:
		c.x, c.wide = append(c.x, 0), append(c.wide, v)
		return at + n
	case !wide && ok:
		c.x = append(c.x, f)
		return at + n
	}
	field, end := p.plainText(b, at) // strconv knows it
	if end == 0 || p.number(string(field), wide) != nil {
		return 0
	}
	return end
}

// blanks skips the white space around fields.
func (p *parser) blanks(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' && p.sep != '\t') {
		at++
	}
	return at
}

// plainText returns a field, and where it ends; 0: it is not plain.
func (p *parser) plainText(b []byte, at int) (field []byte, end int) {
	from := at
	if at < len(b) && b[at] == '"' {
		n := bytes.IndexByte(b[at+1:], '"')
		if n < 0 {
			return nil, 0
		}
		field = b[at+1 : at+1+n]
		if end = at + n + 2; end < len(b) && b[end] == '"' {
			return nil, 0
		}
		for _, c := range field {
			if c < ' ' || c >= 0x7f {
				return nil, 0
			}
		}
		return bytes.TrimSpace(field), end
	}
	for ; at < len(b); at++ {
		switch c := b[at]; {
		case c == p.sep || c == '\n' || c == '\r' || p.sep == ' ' && c == '\t':
			return bytes.TrimRight(b[from:at], " \t"), at
		case c == '"' || c < ' ' && c != '\t' || c >= 0x7f:
			return nil, 0
		}
	}
	return bytes.TrimRight(b[from:at], " \t"), at
}

// plainLabel is the number of a class that has been seen before, if it is a text, or that is written with few digits. The first class of
// each kind is no such class.
func (p *parser) plainLabel(field []byte) (y int32, ok bool) {
	if p.out.firstNumber != nil && len(field) > 0 && len(field) < 6 {
		for _, c := range field {
			if c -= '0'; c > 9 {
				return 0, false
			}
			y = 10*y + int32(c&15)
		}
		return y, p.Classes == 0 || int(y) < p.Classes
	}
	if p.out.firstText != nil {
		y, ok = p.seen[len(p.texts)].Number[string(field)]
	}
	return y, ok
}
