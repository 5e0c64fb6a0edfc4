package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
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

func loadCSV(s DataSpec) (*Set, error) {
	if s.Label != "" && s.Label != "last" && s.Label != "first" {
		return nil, fmt.Errorf("data: label is %q, must be last or first: the column with the class", s.Label)
	}
	set := &Set{}
	train, err := readCSV(s.Path, s, &set.Files)
	if err != nil {
		return nil, err
	}
	test := &rowsTable{cols: train.cols}
	if s.Test != "" {
		s.Features = train.cols
		if test, err = readCSV(s.Test, s, &set.Files); err != nil {
			return nil, err
		}
	}
	set.Train, set.Test, set.Classes = train, test, countClasses(s.Classes, train.y, test.y)
	return set, nil
}

func readCSV(path string, s DataSpec, sums *[]FileSum) (*rowsTable, error) {
	src, err := open(path, "check path and test of the data set")
	if err != nil {
		return nil, err
	}
	defer src.file.Close()
	t, err := parseCSV(src.path, src, s)
	if err != nil {
		return nil, err
	}
	*sums = append(*sums, src.sum())
	return t, nil
}

// parseCSV reads numbers separated by commas, without a header; blank lines are skipped.
func parseCSV(path string, r io.Reader, s DataSpec) (*rowsTable, error) {
	lines := csv.NewReader(unmarked(r))
	lines.ReuseRecord, lines.TrimLeadingSpace, lines.FieldsPerRecord = true, true, -1
	t := &rowsTable{cols: s.Features}
	for {
		fields, err := lines.Read()
		if err == io.EOF {
			break
		}
		if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
			return nil, fmt.Errorf("data: %s:%d:%d: %w; want numbers separated by commas", path, syntax.Line, syntax.Column, syntax.Err)
		}
		if err != nil {
			return nil, err // the source has named the file
		}
		line, _ := lines.FieldPos(0)
		if t.cols == 0 {
			t.cols = len(fields) - 1
		}
		if len(fields) < 2 || len(fields) != t.cols+1 {
			return nil, fmt.Errorf("data: %s:%d: %d values, want %d (%d features and the class)%s", path, line, len(fields), max(t.cols, 1)+1, max(t.cols, 1), separatorHint(fields))
		}
		if err := t.add(path, lines, fields, s); err != nil {
			return nil, err
		}
	}
	if len(t.y) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", path)
	}
	return t, nil
}

// separatorHint tells by a line of one field what separates its values.
func separatorHint(fields []string) string {
	switch {
	case len(fields) != 1:
	case strings.Contains(fields[0], ":"):
		return "; it looks like libsvm: set libsvm"
	case strings.ContainsAny(fields[0], ";\t "):
		return "; the values of csv are separated by commas"
	}
	return ""
}

func (t *rowsTable) add(path string, lines *csv.Reader, fields []string, s DataSpec) error {
	at := len(fields) - 1
	if s.Label == "first" {
		at = 0
	}
	for i, field := range fields {
		field = strings.TrimSpace(field)
		line, column := lines.FieldPos(i)
		if i == at {
			y, err := parseLabel(field, s.Classes)
			if err != nil {
				return fmt.Errorf("data: %s:%d:%d: %w", path, line, column, err)
			}
			t.y = append(t.y, y)
			continue
		}
		v, err := parseValue(field, s.Scale)
		if err != nil {
			hint := ""
			switch bare := strings.ToLower(strings.TrimLeft(field, "+-")); {
			case bare == "" || bare == "nan" || bare == "na" || strings.HasPrefix(bare, "inf"):
				hint = "; every value must be a number: fill in what is missing, or take the row out"
			case line == 1:
				hint = "; a header line must be taken out"
			}
			return fmt.Errorf("data: %s:%d:%d: %w%s", path, line, column, err, hint)
		}
		t.x = append(t.x, v)
	}
	return nil
}

// classesMax bounds labels, so that a wrong column does not make a model with millions of outputs.
const classesMax = 1 << 20

// parseLabel takes a whole number from 0 to classes-1; classes 0 means classesMax.
func parseLabel(field string, classes int) (int32, error) {
	limit := classes
	if limit == 0 {
		limit = classesMax
	}
	y, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("label %q is not a whole number; is the class in this column?", field)
	}
	if y < 0 || y >= int64(limit) {
		return 0, fmt.Errorf("label %d is out of range, must be 0 to %d; number classes from 0, and check the number of classes", y, limit-1)
	}
	return int32(y), nil
}

// parseValue takes a finite number and divides it by scale; scale 0 means 1.
func parseValue(field string, scale float64) (float32, error) {
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		return 0, fmt.Errorf("value %q is not a number", field)
	}
	if scale != 0 {
		v /= scale
	}
	if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
		return 0, fmt.Errorf("value %q is not finite in float32", field)
	}
	return float32(v), nil
}
