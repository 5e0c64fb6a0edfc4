package workload

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
)

// rowsTable is a dense table of float32.
type rowsTable struct {
	x    []float32 // rows x cols
	y    []int32
	cols int
}

func (t *rowsTable) Rows() int { return len(t.y) }
func (t *rowsTable) Cols() int { return t.cols }

func (t *rowsTable) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.y[r]
		copy(x[i*t.cols:(i+1)*t.cols], t.x[int(r)*t.cols:])
	}
}

func (t *rowsTable) label(row int) int32 { return t.y[row] }

func loadCSV(s DataSpec, in *reading) (*Set, error) {
	if s.Label != "" && s.Label != "last" && s.Label != "first" {
		return nil, fmt.Errorf("data: label is %q, must be last or first: the column with the class", s.Label)
	}
	train, err := readCSV(s.Path, s, in)
	if err != nil {
		return nil, err
	}
	if s.Label != "first" { // which a caller has chosen
		noteClasses(s.Path, train, in)
	}
	test := &rowsTable{cols: train.cols}
	if s.Test != "" {
		s.Features = train.cols
		if test, err = readCSV(s.Test, s, in); err != nil {
			return nil, err
		}
	}
	return &Set{Train: train, Test: test, Classes: countClasses(s.Classes, train.y, test.y)}, nil
}

func readCSV(path string, s DataSpec, in *reading) (t *rowsTable, err error) {
	err = in.read(path, textHint, func(src *source) error {
		t, err = parseCSV(src, s, in)
		return err
	})
	return t, err
}

// parseCSV reads numbers separated by commas, without a header. It skips blank lines. A number may be in quotes.
func parseCSV(src *source, s DataSpec, in *reading) (*rowsTable, error) {
	lines := newLines(src, in, lineMax, "want numbers separated by commas")
	t := &rowsTable{cols: s.Features}
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if blank(line) {
			continue
		}
		n := bytes.Count(line, []byte(",")) + 1
		if t.cols == 0 {
			t.cols = n - 1
		}
		if n < 2 || n != t.cols+1 {
			return nil, fmt.Errorf("data: %s:%d: %d values, want %d (%d features and the class)%s", src.path, lines.n, n,
				max(t.cols, 1)+1, max(t.cols, 1), csvHint(string(line), len(t.y) == 0, -1))
		}
		if t.x, err = grow(in, src, t.x, t.cols); err != nil {
			return nil, err
		}
		if err := t.add(src, lines.n, string(line), s, in); err != nil {
			return nil, err
		}
	}
	if len(t.y) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", src.path)
	}
	lines.end(in)
	return t, nil
}

// add appends a row. x must have memory for it.
func (t *rowsTable) add(src *source, n int, line string, s DataSpec, in *reading) error {
	label := t.cols
	if s.Label == "first" {
		label = 0
	}
	at, rest := 0, line // rest begins with field i, at that byte of the line
	for i := range t.cols + 1 {
		field, after, _ := strings.Cut(rest, ",")
		column := at + len(field) - len(strings.TrimLeft(field, " \t")) + 1
		at, rest = at+len(field)+1, after
		field, quoted := unquoted(strings.TrimSpace(field))
		if !quoted {
			return fmt.Errorf("data: %s:%d:%d: a quote is in the middle of a value, or is not closed; want numbers "+
				"separated by commas%s", src.path, n, column, csvHint(line, false, -1))
		}
		if i == label {
			y, err := parseLabel(field, s.Classes)
			if err != nil {
				return fmt.Errorf("data: %s:%d:%d: %w%s", src.path, n, column, err,
					cmp.Or(csvHint(line, len(t.y) == 0, label), labelHint(field, s.Classes)))
			}
			if err := put(in, src, &t.y, y); err != nil {
				return err
			}
			continue
		}
		v, err := parseValue(field, s.Scale)
		if err != nil {
			return fmt.Errorf("data: %s:%d:%d: %w%s", src.path, n, column, err, csvHint(line, len(t.y) == 0, label))
		}
		t.x = append(t.x, v)
	}
	return nil
}

// unquoted removes the quotes around a field. ok is false if there is a quote elsewhere.
func unquoted(field string) (value string, ok bool) {
	if len(field) > 1 && field[0] == '"' && field[len(field)-1] == '"' {
		field = strings.TrimSpace(field[1 : len(field)-1])
	}
	return field, !strings.Contains(field, `"`)
}

// classesMax bounds labels, so that a wrong column does not make a model with millions of outputs.
const classesMax = 1 << 20

// parseLabel parses a whole number from 0 to classes-1; classes 0 means classesMax.
func parseLabel(field string, classes int) (int32, error) {
	limit := int64(cmp.Or(classes, classesMax))
	y, ok := parseWhole(field)
	if !ok {
		return 0, fmt.Errorf("label %s is not a whole number", clip(field))
	}
	if y < 0 || y >= limit {
		return 0, fmt.Errorf("label %d is out of range, must be 0 to %d", y, limit-1)
	}
	return int32(y), nil
}

// labelHint says what to do about a label that parseLabel refuses.
func labelHint(field string, classes int) string {
	if v, ok := decimal(field); ok && v == math.Trunc(v) && v >= 0 && v < float64(cmp.Or(classes, classesMax)) {
		return fmt.Sprintf("; write %.0f", v)
	}
	return "; number the classes from 0, without gaps, in the column of the class"
}
