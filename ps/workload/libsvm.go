package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
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

// featuresMax bounds indices, because rows are filled densely: a batch of 32 takes 2 GiB there.
const featuresMax = 1 << 24

func loadLIBSVM(s DataSpec) (*Set, error) {
	set := &Set{}
	train, err := readLIBSVM(s.Path, s, &set.Files)
	if err != nil {
		return nil, err
	}
	test := &sparse{start: []int{0}}
	if s.Test != "" {
		if test, err = readLIBSVM(s.Test, s, &set.Files); err != nil {
			return nil, err
		}
	}
	// A part may lack the last features, so the wider one decides.
	cols := max(train.cols, test.cols, s.Features)
	train.cols, test.cols = cols, cols
	set.Train, set.Test, set.Classes = train, test, countClasses(s.Classes, train.y, test.y)
	return set, nil
}

func readLIBSVM(path string, s DataSpec, sums *[]FileSum) (*sparse, error) {
	src, err := open(path, "check path and test of the data set")
	if err != nil {
		return nil, err
	}
	defer src.file.Close()
	t, err := parseLIBSVM(src.path, src, s)
	if err != nil {
		return nil, err
	}
	*sums = append(*sums, src.sum())
	return t, nil
}

// lineMax is the longest line of a LIBSVM file, in bytes.
const lineMax = 64 << 20

// parseLIBSVM reads "label index:value ..." lines: indices ascend from 1, labels are class numbers,
// or +1 and -1, which become 1 and 0.
func parseLIBSVM(path string, r io.Reader, s DataSpec) (*sparse, error) {
	lines := bufio.NewScanner(unmarked(r))
	lines.Buffer(make([]byte, 1<<16), lineMax)
	t := &sparse{start: []int{0}}
	var minus, zero bool // which of the labels -1 and 0 were seen
	n := 0               // the current line, from 1
	for lines.Scan() {
		n++
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		label := strings.TrimPrefix(fields[0], "+")
		zero = zero || label == "0"
		if label == "-1" && s.Classes <= 2 {
			label, minus = "0", true
		}
		if minus && zero {
			return nil, fmt.Errorf("data: %s:%d: label %s, but labels -1 and 0 mean the same and both occur; use -1 and +1, or class numbers from 0", path, n, fields[0])
		}
		y, err := parseLabel(label, s.Classes)
		if err != nil {
			return nil, fmt.Errorf("data: %s:%d: %w", path, n, err)
		}
		if err := t.add(fields[1:], s); err != nil {
			return nil, fmt.Errorf("data: %s:%d: %w", path, n, err)
		}
		t.y, t.start = append(t.y, y), append(t.start, len(t.index))
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("data: %s: line %d is longer than %d bytes; is this a LIBSVM file?", path, n+1, lineMax)
	} else if err != nil {
		return nil, err // the source has named the file
	}
	if len(t.y) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", path)
	}
	return t, nil
}

// add appends the entries of one row; zeros are left out.
func (t *sparse) add(fields []string, s DataSpec) error {
	limit := featuresMax
	if s.Features > 0 {
		limit = s.Features
	}
	last := 0
	for _, field := range fields {
		index, value, found := strings.Cut(field, ":")
		i, err := strconv.Atoi(index)
		if !found || err != nil {
			return fmt.Errorf("%q is not index:value", field)
		}
		if i < 1 || i > limit {
			return fmt.Errorf("index %d is out of range, must be 1 to %d, counted from 1; check features", i, limit)
		}
		if i <= last {
			return fmt.Errorf("index %d after index %d: indices must ascend; sort the line", i, last)
		}
		v, err := parseValue(value, s.Scale)
		if err != nil {
			return err
		}
		last = i
		t.cols = max(t.cols, i)
		if v != 0 {
			t.index, t.value = append(t.index, int32(i-1)), append(t.value, v)
		}
	}
	return nil
}
