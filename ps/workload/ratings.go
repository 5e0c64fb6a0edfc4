package workload

import (
	"fmt"
	"io"
	"strings"
)

// Matrix is the size of a matrix, known entries of which are the samples. Both are at least 1, or both 0.
type Matrix struct {
	Rows    int `yaml:"rows" min:"1" max:"16777216" when:"set=generated_ratings" doc:"rows of the matrix of which data.rows entries are known"`
	Columns int `yaml:"columns" min:"1" max:"16777216" when:"set=generated_ratings" doc:"its columns"`
}

const (
	// ratingCols is the number of values of a sample: row number, column number, value.
	ratingCols = 3
	// matrixMax bounds rows and columns, so that row and column numbers are exact in float32.
	matrixMax = 1 << 24
)

func loadRatings(s DataSpec, in *reading) (*Set, error) {
	train, matrix, err := readRatings(s.Path, in)
	if err != nil {
		return nil, err
	}
	test := &rowsTable{cols: ratingCols}
	if s.Test != "" {
		var of Matrix
		if test, of, err = readRatings(s.Test, in); err != nil {
			return nil, err
		}
		matrix = Matrix{max(matrix.Rows, of.Rows), max(matrix.Columns, of.Columns)}
	}
	if s.Center {
		center(train, test)
	}
	return &Set{Train: train, Test: test, Matrix: matrix}, nil
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

func readRatings(path string, in *reading) (t *rowsTable, matrix Matrix, err error) {
	err = in.read(path, textHint, func(src *source) error {
		t, matrix, err = parseRatings(src, in)
		return err
	})
	return t, matrix, err
}

// ratingLineMax is the longest line of a file of ratings, in bytes.
const ratingLineMax = 1 << 20

// parseRatings reads lines of "row column value". The first line that is not blank determines the separator of the whole file. Row
// and column numbers count from 0. A time after the value is ignored, and so are blank lines. The matrix is just large enough for
// all ratings.
func parseRatings(src *source, in *reading) (*rowsTable, Matrix, error) {
	lines := newLines(src, in, ratingLineMax, "want lines of row,column,value")
	t, matrix := &rowsTable{cols: ratingCols}, Matrix{}
	var cut *separator
	var fields []string // of the line; the memory is reused
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, Matrix{}, err
		}
		if blank(line) {
			continue
		}
		text := string(line)
		if cut == nil {
			cut = separatorOf(text)
		}
		fields = cut.fields(text, fields[:0])
		row, column, value, err := parseRating(fields)
		if err != nil {
			return nil, Matrix{}, fmt.Errorf("data: %s:%d: %w%s", src.path, lines.n, err, cut.hint(text, len(t.y) == 0, fields))
		}
		if err := put(in, src, &t.x, float32(row), float32(column), value); err != nil {
			return nil, Matrix{}, err
		}
		if err := put(in, src, &t.y, 0); err != nil {
			return nil, Matrix{}, err
		}
		matrix = Matrix{max(matrix.Rows, row+1), max(matrix.Columns, column+1)}
	}
	if len(t.y) == 0 {
		return nil, Matrix{}, fmt.Errorf("data: %s: no ratings", src.path)
	}
	lines.end(in)
	return t, matrix, nil
}

func parseRating(fields []string) (row, column int, value float32, err error) {
	for i, what := range []string{"row", "column", "value"} {
		if i < len(fields) && fields[i] == "" {
			return 0, 0, 0, fmt.Errorf("the %s, field %d, is empty; want row,column,value", what, i+1)
		}
	}
	if len(fields) < ratingCols {
		return 0, 0, 0, fmt.Errorf("%d values, want %d: row,column,value", len(fields), ratingCols)
	}
	var at [2]int
	for i, what := range []string{"row", "column"} {
		n, whole := parseWhole(fields[i])
		if !whole {
			return 0, 0, 0, fmt.Errorf("%s %s is not a whole number", what, clip(fields[i]))
		}
		if n < 0 || n >= matrixMax {
			return 0, 0, 0, fmt.Errorf("%s %d is out of range, must be 0 to %d; number rows and columns from 0, without gaps", what, n, matrixMax-1)
		}
		at[i] = int(n)
	}
	if !areTime(fields[ratingCols:]) {
		return 0, 0, 0, fmt.Errorf("%d values, but %s after row,column,value is not a time: are these several ratings in "+
			"one line, or other columns? end each line, and keep row,column,value",
			len(fields), clip(strings.Join(fields[ratingCols:min(len(fields), ratingCols+2)], " ")))
	}
	value, err = parseValue(fields[2], 0)
	return at[0], at[1], value, err
}
