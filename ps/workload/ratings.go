package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Matrix is the size of a matrix, known entries of which are the samples. Both are at least 1, or both 0.
type Matrix struct{ Rows, Columns int }

const (
	// ratingCols are the values of a sample: row number, column number, value.
	ratingCols = 3
	// matrixMax bounds rows and columns, so that their numbers are exact in float32.
	matrixMax = 1 << 24
)

func loadRatings(s DataSpec) (*Set, error) {
	set := &Set{}
	train, matrix, err := readRatings(s.Path, &set.Files)
	if err != nil {
		return nil, err
	}
	test := &rowsTable{cols: ratingCols}
	if s.Test != "" {
		var of Matrix
		if test, of, err = readRatings(s.Test, &set.Files); err != nil {
			return nil, err
		}
		matrix = Matrix{max(matrix.Rows, of.Rows), max(matrix.Columns, of.Columns)}
	}
	if s.Center {
		center(train, test)
	}
	set.Train, set.Test, set.Matrix = train, test, matrix
	return set, nil
}

// center subtracts the mean value of the first table from all values.
func center(tables ...*rowsTable) {
	var mean float64
	for at := ratingCols - 1; at < len(tables[0].x); at += ratingCols {
		mean += float64(tables[0].x[at])
	}
	mean /= float64(tables[0].Rows())
	for _, t := range tables {
		for at := ratingCols - 1; at < len(t.x); at += ratingCols {
			t.x[at] = float32(float64(t.x[at]) - mean)
		}
	}
}

func readRatings(path string, sums *[]FileSum) (*rowsTable, Matrix, error) {
	src, err := open(path, "check path and test of the data set")
	if err != nil {
		return nil, Matrix{}, err
	}
	defer src.file.Close()
	t, matrix, err := parseRatings(src.path, src)
	if err != nil {
		return nil, Matrix{}, err
	}
	*sums = append(*sums, src.sum())
	return t, matrix, nil
}

// parseRatings reads "row column value" lines, separated by commas, semicolons, double colons, tabs or spaces. Numbers of rows and
// columns count from 0; what follows on a line, such as a time, is passed over, and so are blank lines. The matrix is
// large enough for all.
func parseRatings(path string, r io.Reader) (*rowsTable, Matrix, error) {
	lines := bufio.NewScanner(unmarked(r))
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	t, matrix := &rowsTable{cols: ratingCols}, Matrix{}
	n := 0 // the current line, from 1
	for lines.Scan() {
		n++
		fields := strings.FieldsFunc(strings.ReplaceAll(lines.Text(), "::", " "), func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
		if len(fields) == 0 {
			continue
		}
		row, column, value, err := parseRating(fields)
		if err != nil {
			hint := ""
			if n == 1 {
				hint = "; a header line must be taken out"
			}
			return nil, Matrix{}, fmt.Errorf("data: %s:%d: %w%s", path, n, err, hint)
		}
		t.x, t.y = append(t.x, float32(row), float32(column), value), append(t.y, 0)
		matrix = Matrix{max(matrix.Rows, row+1), max(matrix.Columns, column+1)}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, Matrix{}, fmt.Errorf("data: %s: line %d is longer than %d bytes; want lines of row,column,value", path, n+1, 1<<20)
	} else if err != nil {
		return nil, Matrix{}, err // the source has named the file
	}
	if len(t.y) == 0 {
		return nil, Matrix{}, fmt.Errorf("data: %s: no ratings", path)
	}
	return t, matrix, nil
}

func parseRating(fields []string) (row, column int, value float32, err error) {
	if len(fields) < ratingCols {
		return 0, 0, 0, fmt.Errorf("%d values, want %d: row,column,value", len(fields), ratingCols)
	}
	var at [2]int
	for i, what := range []string{"row", "column"} {
		if at[i], err = strconv.Atoi(fields[i]); err != nil {
			return 0, 0, 0, fmt.Errorf("%s %q is not a whole number", what, fields[i])
		}
		if at[i] < 0 || at[i] >= matrixMax {
			return 0, 0, 0, fmt.Errorf("%s %d is out of range, must be 0 to %d", what, at[i], matrixMax-1)
		}
	}
	value, err = parseValue(fields[2], 0)
	return at[0], at[1], value, err
}
