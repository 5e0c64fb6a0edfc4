package dataset

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// sparse is a table in compressed rows: the entries of row r are start[r] to start[r+1]-1.
type sparse struct {
	start []int
	index []int32
	value []float32
	y     []int32
	cols  int
}

func (t *sparse) Rows() int { return len(t.y) }
func (t *sparse) Cols() int { return t.cols }

func (t *sparse) Fill(x []float32, y []int32, rows []int32) {
	clear(x[:len(rows)*t.cols])
	for i, r := range rows {
		y[i] = t.y[r]
		row := x[i*t.cols : (i+1)*t.cols]
		for e := t.start[r]; e < t.start[r+1]; e++ {
			row[t.index[e]] = t.value[e]
		}
	}
}

func (t *sparse) label(row int) int32 { return t.y[row] }

// featuresMax bounds indices, because rows are filled densely: with so many features a batch of 32 takes 2 GiB.
const featuresMax = 1 << 24

func loadLIBSVM(s Spec, in *reading) (*Set, error) {
	train, err := readLIBSVM(s.Path, s, in)
	if err != nil {
		return nil, err
	}
	test := &sparse{start: []int{0}}
	if s.Test != "" {
		if test, err = readLIBSVM(s.Test, s, in); err != nil {
			return nil, err
		}
	}
	// A part may lack the last features, so the wider one decides.
	cols := max(train.cols, test.cols, s.Features)
	train.cols, test.cols = cols, cols
	return &Set{Train: train, Test: test, Classes: countClasses(s.Classes, train.y, test.y)}, nil
}

func readLIBSVM(path string, s Spec, in *reading) (t *sparse, err error) {
	err = in.read(path, textHint, func(src *source) error {
		t, err = parseLIBSVM(src, s, in)
		return err
	})
	return t, err
}

// parseLIBSVM reads lines of "label index:value ...". Indices ascend from 1. Labels are class numbers, or +1 and -1, which become 1
// and 0.
func parseLIBSVM(src *source, s Spec, in *reading) (*sparse, error) {
	lines := newLines(src, in, lineMax, "is this a LIBSVM file?")
	t := &sparse{start: []int{0}}
	var minus, zero bool // which of the labels -1 and 0 were seen
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
		first, entries := firstWord(string(line))
		label := strings.TrimPrefix(first, "+")
		zero = zero || label == "0"
		if label == "-1" && s.Classes <= 2 {
			label, minus = "0", true
		}
		if minus && zero {
			return nil, fmt.Errorf("data: %s:%d: label %s, but labels -1 and 0 mean the same and both occur; use -1 and +1, "+
				"or class numbers from 0", src.path, lines.n, first)
		}
		y, err := parseLabel(label, s.Classes)
		if err != nil {
			return nil, fmt.Errorf("data: %s:%d: %w%s", src.path, lines.n, err,
				cmp.Or(libsvmHint(string(line), len(t.y) == 0), labelHint(label, s.Classes)))
		}
		if err := t.add(src, lines.n, entries, s, in); err != nil {
			return nil, err
		}
		if err := put(in, src, &t.y, y); err != nil {
			return nil, err
		}
		if err := put(in, src, &t.start, len(t.index)); err != nil {
			return nil, err
		}
	}
	if len(t.y) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", src.path)
	}
	lines.end(in)
	return t, nil
}

// add appends the entries of one row, without zeros.
func (t *sparse) add(src *source, n int, entries string, s Spec, in *reading) error {
	limit := featuresMax
	if s.Features > 0 {
		limit = s.Features
	}
	last := 0
	for field := range strings.FieldsSeq(entries) {
		i, v, err := parseEntry(field, last, limit, s.Scale)
		if err != nil {
			return fmt.Errorf("data: %s:%d: %w%s", src.path, n, err, entryHint(field))
		}
		last = i
		t.cols = max(t.cols, i)
		if v == 0 {
			continue
		}
		if err := put(in, src, &t.index, int32(i-1)); err != nil {
			return err
		}
		if err := put(in, src, &t.value, v); err != nil {
			return err
		}
	}
	return nil
}

// parseEntry parses an index, which must be larger than the last one, and its value.
func parseEntry(field string, last, limit int, scale float64) (i int, v float32, err error) {
	index, value, found := strings.Cut(field, ":")
	n, whole := parseWhole(index)
	if i = int(n); !found || !whole {
		return 0, 0, fmt.Errorf("%s is not index:value", clip(field))
	}
	if i < 1 || i > limit {
		return 0, 0, fmt.Errorf("index %d is out of range, must be 1 to %d%s", i, limit, indexHint(i, limit))
	}
	if i <= last {
		return 0, 0, fmt.Errorf("index %d after index %d: indices must ascend; sort the line", i, last)
	}
	v, err = parseValue(value, scale)
	return i, v, err
}

// indexHint says what to do about an index out of range. Only a caller from Go can have another limit than the format's.
func indexHint(i, limit int) string {
	switch {
	case i < 1:
		return "; indices count from 1: add 1 to each index of the file"
	case limit < featuresMax:
		return ", the number of features"
	}
	return "; number the features from 1, without gaps"
}

// entryHint guesses what stands in the place of index:value.
func entryHint(field string) string {
	switch {
	case strings.HasPrefix(field, "#"):
		return "; remove the comment from # on"
	case strings.HasPrefix(field, "qid:"):
		return "; remove the entries qid:, which only rankings have"
	}
	return ""
}
