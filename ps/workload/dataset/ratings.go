package dataset

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// Matrix is the size of a matrix, known entries of which are the samples. Both are at least 1, or both 0.
type Matrix struct {
	Rows    int `yaml:"rows" min:"1" max:"16777216" when:"set=generated_ratings" doc:"rows of the matrix of which data.rows entries are known"`
	Columns int `yaml:"columns" min:"1" max:"16777216" when:"set=generated_ratings" doc:"its columns"`
}

const (
	// RatingCols is the number of values of a sample: row number, column number, value.
	RatingCols = 3
	// matrixMax bounds rows and columns, so that row and column numbers are exact in float32.
	matrixMax = 1 << 24
)

func loadRatings(s Spec, in *files.Reading) (*Set, error) {
	train, matrix, err := readRatings(s.Path, in)
	if err != nil {
		return nil, err
	}
	test := &rowsTable{cols: RatingCols}
	if s.Test != "" {
		var of Matrix
		if test, of, err = readRatings(s.Test, in); err != nil {
			return nil, err
		}
		matrix = Matrix{max(matrix.Rows, of.Rows), max(matrix.Columns, of.Columns)}
	}
	if s.Split > 0 {
		picked, err := files.TestRows(s.Path, train.Rows(), s.Split, s.SplitSeed)
		if err != nil {
			return nil, err
		}
		if err := in.Take(nil, int64(len(picked))*(RatingCols+1)*valueBytes); err != nil {
			return nil, err
		}
		train.x, test.x = files.Part(train.x, RatingCols, picked)
		train.y, test.y = files.Part(train.y, 1, picked)
		in.Found = append(in.Found, fmt.Sprintf("%s: %d ratings for training, %d for the test", s.Path, train.Rows(), test.Rows()))
	}
	if s.Center {
		center(train, test)
	}
	return &Set{Train: train, Test: test, Matrix: matrix}, nil
}

// center subtracts the mean value of the first table from all values.
func center(tables ...*rowsTable) {
	var mean float64
	for at := RatingCols - 1; at < len(tables[0].x); at += RatingCols {
		mean += float64(tables[0].x[at])
	}
	mean /= float64(tables[0].Rows())
	for _, t := range tables {
		for at := RatingCols - 1; at < len(t.x); at += RatingCols {
			t.x[at] = float32(float64(t.x[at]) - mean)
		}
	}
}

func readRatings(path string, in *files.Reading) (t *rowsTable, matrix Matrix, err error) {
	err = in.Read(path, files.TextHint, func(src *files.Source) error {
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
func parseRatings(src *files.Source, in *files.Reading) (*rowsTable, Matrix, error) {
	lines := text.NewLines(src, in, ratingLineMax, "want lines of row,column,value")
	t, matrix := &rowsTable{cols: RatingCols}, Matrix{}
	var cut *text.Separator
	var fields []string // of the line; the memory is reused
	for {
		raw, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, Matrix{}, err
		}
		if text.Blank(raw) {
			continue
		}
		line := string(raw)
		first := cut == nil
		if first {
			cut = text.SeparatorOf(line)
		}
		fields = cut.Fields(line, fields[:0])
		if first && len(fields) >= RatingCols && !text.IsMatrixMarket(line) && text.IsHeader(fields[:RatingCols]) {
			in.Found = append(in.Found, fmt.Sprintf("%s: the first line is a header: %s", src.Path, files.Clip(line)))
			continue
		}
		row, column, value, err := parseRating(fields)
		if err != nil {
			return nil, Matrix{}, fmt.Errorf("data: %s:%d: %w%s", src.Path, lines.N, err, ratingHint(cut, line, len(t.y) == 0, fields))
		}
		if err := files.Put(in, src, &t.x, float32(row), float32(column), value); err != nil {
			return nil, Matrix{}, err
		}
		if err := files.Put(in, src, &t.y, 0); err != nil {
			return nil, Matrix{}, err
		}
		matrix = Matrix{max(matrix.Rows, row+1), max(matrix.Columns, column+1)}
	}
	if len(t.y) == 0 {
		return nil, Matrix{}, fmt.Errorf("data: %s: no ratings", src.Path)
	}
	lines.End(in)
	return t, matrix, nil
}

func parseRating(fields []string) (row, column int, value float32, err error) {
	for i, what := range []string{"row", "column", "value"} {
		if i < len(fields) && fields[i] == "" {
			return 0, 0, 0, fmt.Errorf("the %s, field %d, is empty; want row,column,value", what, i+1)
		}
	}
	if len(fields) < RatingCols {
		return 0, 0, 0, fmt.Errorf("%d values, want %d: row,column,value", len(fields), RatingCols)
	}
	var at [2]int
	for i, what := range []string{"row", "column"} {
		n, whole := text.ParseWhole(fields[i])
		if !whole {
			return 0, 0, 0, fmt.Errorf("%s %s is not a whole number", what, files.Clip(fields[i]))
		}
		if n < 0 || n >= matrixMax {
			return 0, 0, 0, fmt.Errorf("%s %d is out of range, must be 0 to %d; number rows and columns from 0, without gaps", what, n, matrixMax-1)
		}
		at[i] = int(n)
	}
	if !text.AreTime(fields[RatingCols:]) {
		return 0, 0, 0, fmt.Errorf("%d values, but %s after row,column,value is not a time: are these several ratings in "+
			"one line, or other columns? end each line, and keep row,column,value",
			len(fields), files.Clip(strings.Join(fields[RatingCols:min(len(fields), RatingCols+2)], " ")))
	}
	value, err = text.ParseValue(fields[2], 0)
	return at[0], at[1], value, err
}

// hint guesses the mistake in a line, as a text that begins with a semicolon. first is true for the first line that is not blank. It
// returns "" without a guess.
func ratingHint(s *text.Separator, line string, first bool, fields []string) string {
	comma := false
	for i, f := range fields {
		_, is := text.WithPoint(text.TrimQuotes(f))
		comma = comma || is && i < RatingCols
	}
	switch {
	case text.IsMatrixMarket(line):
		return text.MatrixMarketHint
	case comma && len(fields) >= RatingCols:
		return "" // the error of the value names the comma
	case first:
		return ""
	case len(fields) < RatingCols ||
		slices.ContainsFunc(fields[:RatingCols], func(f string) bool { return strings.ContainsAny(f, "\t;, ") || strings.Contains(f, "::") }):
		return fmt.Sprintf("; the first line separates fields with %s, so all lines must; a value has a decimal point", s.Name)
	}
	return ""
}
