// Package numpy reads arrays as NumPy writes them: a file .npy with one array, or an archive .npz with several. Arrays that are neither
// packed nor in Fortran order are mapped, not loaded: so a file may be larger than memory, and all processes of a host share its pages.
//
// The formats are those of NumPy's NEP 1 and of its documentation of numpy.lib.format, versions 1.0 to 3.0. Objects are not read: Python
// pickles them, and unpickling runs code.
package numpy

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of the elements of an array.
type Type struct {
	Kind byte // 'b' bool, 'i' signed, 'u' unsigned, 'f' float
	Size int  // bytes: 1, 2, 4 or 8
}

// String is NumPy's name of a type.
func (t Type) String() string {
	if t.Kind == 'b' {
		return "bool"
	}
	return map[byte]string{'i': "int", 'u': "uint", 'f': "float"}[t.Kind] + strconv.Itoa(8*t.Size)
}

// header is what stands before the elements.
type header struct {
	typ     Type
	big     bool // big-endian
	fortran bool // the first index changes fastest
	shape   []int
	bytes   int64 // of the header itself
}

const (
	magic     = "\x93NUMPY"
	headerMax = 1 << 16 // NumPy itself refuses headers above 10,000 bytes
	dimsMax   = 64      // of NumPy 2
)

// elements is the number of elements. shape was checked.
func (h *header) elements() int64 {
	n := int64(1)
	for _, d := range h.shape {
		n *= int64(d)
	}
	return n
}

// parseHeader reads a header from the first bytes of an array, of which there may be more.
func parseHeader(b []byte) (h header, err error) {
	if len(b) < 12 || string(b[:6]) != magic {
		return h, fmt.Errorf("the first bytes are %q, and those of NumPy are %q: is it an .npy file?", b[:min(len(b), 6)], magic)
	}
	at, length := 10, int(binary.LittleEndian.Uint16(b[8:]))
	switch version := b[6]; version {
	case 1:
	case 2, 3:
		if at = 12; binary.LittleEndian.Uint32(b[8:]) > headerMax {
			return h, fmt.Errorf("the header has %d bytes, at most %d: the file is damaged", binary.LittleEndian.Uint32(b[8:]), headerMax)
		}
		length = int(binary.LittleEndian.Uint32(b[8:]))
	default:
		return h, fmt.Errorf("version %d of the format, and only 1 to 3 are known: save it again with numpy.save", version)
	}
	if at+length > len(b) {
		return h, fmt.Errorf("the header promises %d bytes, and the file has %d: it is cut short", at+length, len(b))
	}
	h.bytes = int64(at + length)
	return h, h.parse(string(b[at : at+length]))
}

// parse reads the Python dictionary of a header, such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
func (h *header) parse(text string) error {
	bad := func(why string) error {
		return fmt.Errorf("the header %s: %s; save it again with numpy.save", strconv.Quote(text[:min(len(text), 120)]), why)
	}
	p := &parser{rest: text}
	if !p.skip("{") {
		return bad("is not a dictionary")
	}
	seen := map[string]bool{}
	for !p.skip("}") {
		key, ok := p.text()
		if !ok || !p.skip(":") || seen[key] {
			return bad("is not a dictionary of three texts")
		}
		seen[key] = true
		switch key {
		case "descr":
			descr, isText := p.text()
			if !isText {
				return fmt.Errorf("it has records (a structured array): save each field as an array of its own, such as a['field']")
			}
			if err := h.setType(descr); err != nil {
				return err
			}
		case "fortran_order":
			if h.fortran = p.skip("True"); !h.fortran && !p.skip("False") {
				return bad("fortran_order is neither True nor False")
			}
		case "shape":
			if h.shape, ok = p.tuple(); !ok {
				return bad("shape is not a tuple of lengths")
			}
		default:
			return bad("has the key " + strconv.Quote(key))
		}
		p.skip(",")
	}
	if len(seen) != 3 || strings.TrimSpace(p.rest) != "" {
		return bad("has not exactly descr, fortran_order and shape")
	}
	return h.checkShape()
}

func (h *header) checkShape() error {
	size := int64(h.typ.Size)
	for _, d := range h.shape {
		if d > 0 && size > math.MaxInt64/16/int64(d) {
			return fmt.Errorf("shape %v has more elements than any file: it is damaged", h.shape)
		}
		size *= int64(max(d, 1))
	}
	return nil
}

// setType takes NumPy's description of a type, such as <f4.
func (h *header) setType(descr string) error {
	order, rest := byte('|'), descr
	if descr != "" && strings.IndexByte("<>|=", descr[0]) >= 0 {
		order, rest = descr[0], descr[1:]
	}
	h.big = order == '>'
	if rest == "?" {
		rest = "b1" // which NumPy writes |b1
	}
	if len(rest) > 1 {
		size, err := strconv.Atoi(rest[1:])
		sizes := map[byte][]int{'b': {1}, 'i': {1, 2, 4, 8}, 'u': {1, 2, 4, 8}, 'f': {2, 4, 8}}
		if err == nil && slices.Contains(sizes[rest[0]], size) {
			h.typ = Type{rest[0], size}
			return nil
		}
	}
	switch {
	case rest == "O":
		return fmt.Errorf("it has Python objects (dtype object), which are pickled, and reading those would run code: save numbers, such as " +
			"a.astype('float32')")
	case strings.HasPrefix(rest, "U") || strings.HasPrefix(rest, "S"):
		return fmt.Errorf("it has texts (dtype %s): save numbers; of classes, numpy.unique(y, return_inverse=True)[1]", descr)
	case strings.HasPrefix(rest, "c"):
		return fmt.Errorf("it has complex numbers (dtype %s): save real ones, such as numpy.abs(a)", descr)
	}
	return fmt.Errorf("dtype %s is not read: bool, integers of 8 to 64 bits and floats of 16 to 64 bits are; save a.astype('float32')",
		strconv.Quote(descr))
}

// parser reads parts of a Python literal.
type parser struct{ rest string }

// skip takes a token, and says whether it was there.
func (p *parser) skip(token string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " \n"), token)
	if ok {
		p.rest = rest
	}
	return ok
}

// text takes a text in quotes. No text of a header has a quote or a backslash in it.
func (p *parser) text() (string, bool) {
	for _, quote := range []string{"'", `"`} {
		if p.skip(quote) {
			text, rest, ok := strings.Cut(p.rest, quote)
			p.rest = rest
			return text, ok
		}
	}
	return "", false
}

func (p *parser) tuple() (lengths []int, ok bool) {
	if !p.skip("(") {
		return nil, false
	}
	for !p.skip(")") {
		p.rest = strings.TrimLeft(p.rest, " ")
		digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || len(lengths) == dimsMax {
			return nil, false
		}
		lengths = append(lengths, int(n))
		p.rest = strings.TrimPrefix(p.rest[len(digits):], "L") // of Python 2
		if !p.skip(",") && !strings.HasPrefix(strings.TrimLeft(p.rest, " "), ")") {
			return nil, false
		}
	}
	return lengths, true
}
