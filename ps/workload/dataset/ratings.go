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

// ratingsReader reads the files of one set.
type ratingsReader struct {
	in     *files.Reading
	tables []*rowsTable // of all files so far
	ids    [2]identifiers
	matrix Matrix // just large enough for all ratings, and for the sizes of MatrixMarket
	plain  string // a file that is not of MatrixMarket, and
	market string // one that is; "": there is none
}

func loadRatings(s Spec, in *files.Reading) (*Set, error) {
	r := &ratingsReader{in: in, ids: [2]identifiers{{what: "row"}, {what: "column", field: 1}}}
	train, err := r.read(s.Path)
	if err != nil {
		return nil, err
	}
	test := &rowsTable{cols: RatingCols}
	if s.Test != "" {
		if test, err = r.read(s.Test); err != nil {
			return nil, err
		}
	}
	if s.Split.Test > 0 {
		picked, err := files.TestRows(s.Path, train.Rows(), s.Split.Test, s.Split.Seed)
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
	set := &Set{Train: train, Test: test, Matrix: r.matrix}
	if set.RowNames = r.ids[0].settle(s.Path, in, train, test); set.RowNames != nil {
		set.Matrix.Rows = len(set.RowNames)
	}
	if set.ColumnNames = r.ids[1].settle(s.Path, in, train, test); set.ColumnNames != nil {
		set.Matrix.Columns = len(set.ColumnNames)
	}
	if s.Center {
		center(train, test)
	}
	return set, nil
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

func (r *ratingsReader) read(path string) (t *rowsTable, err error) {
	t = &rowsTable{cols: RatingCols}
	r.tables = append(r.tables, t)
	return t, r.in.Read(path, files.TextHint, func(src *files.Source) error { return r.parse(src, t) })
}

// ratingLineMax is the longest line of a file of ratings, in bytes.
const ratingLineMax = 1 << 20

// parse reads lines of "row column value". The first line that is not blank determines the separator of the whole file. A time after the
// value is ignored, and so are blank lines. A file with the head of MatrixMarket counts from 1.
func (r *ratingsReader) parse(src *files.Source, t *rowsTable) error {
	lines := text.NewLines(src, r.in, ratingLineMax, "want lines of row,column,value")
	form, plain := ratingForm{r: r, src: src, t: t}, r.plain
	for {
		raw, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if text.Blank(raw) {
			continue
		}
		line := string(raw)
		row, column, value, ok, err := form.line(line)
		if err != nil {
			return fmt.Errorf("data: %s:%d: %w%s", src.Path, lines.N, err, form.hint(line))
		}
		if !ok {
			continue
		}
		if err := files.Put(r.in, src, &t.x, float32(row), float32(column), value); err != nil {
			return err
		}
		if err := files.Put(r.in, src, &t.y, 0); err != nil {
			return err
		}
		r.matrix = Matrix{max(r.matrix.Rows, row+1), max(r.matrix.Columns, column+1)}
	}
	if len(t.y) == 0 {
		return fmt.Errorf("data: %s: no ratings", src.Path)
	}
	if r.plain = src.Path; form.market != nil {
		r.plain, r.market = plain, src.Path
	}
	if r.plain != "" && r.market != "" {
		return fmt.Errorf("data: %s is of MatrixMarket, whose rows and columns have the numbers from 1, and %s is not: write both in one form",
			r.market, r.plain)
	}
	if m := form.market; m != nil {
		if m.entries != len(t.y) {
			return fmt.Errorf("data: %s: the head promises %d entries, the file has %d: it is cut short, or damaged; fetch it again", src.Path,
				m.entries, len(t.y))
		}
		r.matrix = Matrix{max(r.matrix.Rows, m.matrix.Rows), max(r.matrix.Columns, m.matrix.Columns)}
		r.in.Found = append(r.in.Found, fmt.Sprintf("%s: MatrixMarket, %d x %d, %d entries", src.Path, m.matrix.Rows,
			m.matrix.Columns, m.entries))
	}
	lines.End(r.in)
	return nil
}

// ratingForm is how the lines of a file are read.
type ratingForm struct {
	r      *ratingsReader
	src    *files.Source
	t      *rowsTable
	cut    *text.Separator // nil: no line has been read
	fields []string        // of the line; the memory is reused
	market *market         // nil: it is not of MatrixMarket
	isNext bool            // a line has been read
}

// line reads a line. ok is false for one that is no rating: a header, or one of the head of MatrixMarket.
func (f *ratingForm) line(line string) (row, column int, value float32, ok bool, err error) {
	first := !f.isNext
	f.isNext = true
	if first && text.IsMatrixMarket(line) {
		f.market, err = marketOf(line)
		return 0, 0, 0, false, err
	}
	if f.market != nil {
		return f.market.line(line)
	}
	if first {
		f.cut = text.SeparatorOf(line)
	}
	f.fields = f.cut.Fields(line, f.fields[:0])
	if first && len(f.fields) >= RatingCols && text.IsHeader(f.fields[:RatingCols]) {
		f.r.in.Found = append(f.r.in.Found, fmt.Sprintf("%s: the first line is a header: %s", f.src.Path, files.Clip(line)))
		return 0, 0, 0, false, nil
	}
	row, column, value, err = f.rating()
	return row, column, value, err == nil, err
}

func (f *ratingForm) rating() (row, column int, value float32, err error) {
	fields := f.fields
	for i, what := range []string{"row", "column", "value"} {
		if i < len(fields) && text.TrimQuotes(fields[i]) == "" {
			return 0, 0, 0, fmt.Errorf("the %s, field %d, is empty; want row,column,value", what, i+1)
		}
	}
	if len(fields) < RatingCols {
		return 0, 0, 0, fmt.Errorf("%d values, want %d: row,column,value", len(fields), RatingCols)
	}
	if !text.AreTime(fields[RatingCols:]) {
		return 0, 0, 0, fmt.Errorf("%d values, but %s after row,column,value is not a time: are these several ratings in "+
			"one line, or other columns? end each line, and keep row,column,value",
			len(fields), files.Clip(strings.Join(fields[RatingCols:min(len(fields), RatingCols+2)], " ")))
	}
	if value, err = text.ParseValue(text.TrimQuotes(fields[2]), 0); err != nil {
		return 0, 0, 0, err // before an identifier of a line that is none is numbered
	}
	var at [2]int
	for i := range f.r.ids {
		if at[i], err = f.r.ids[i].number(text.TrimQuotes(fields[i]), f.r.tables, f.src, f.r.in); err != nil {
			return 0, 0, 0, err
		}
	}
	return at[0], at[1], value, nil
}

// hint guesses the mistake in a line, as a text that begins with a semicolon. first is true for the first line that is not blank. It
// returns "" without a guess.
func (f *ratingForm) hint(line string) string {
	if f.cut == nil || f.market != nil {
		return ""
	}
	s, first, fields := f.cut, len(f.t.y) == 0, f.fields
	comma := false
	for i, f := range fields {
		_, is := text.WithPoint(text.TrimQuotes(f))
		comma = comma || is && i < RatingCols
	}
	switch {
	case text.IsMatrixMarket(line):
		return "; the file has the head of MatrixMarket: it must be the first line"
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
