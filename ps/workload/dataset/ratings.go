package dataset

import (
	"fmt"
	"io"
	"slices"
	"strings"
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

func loadRatings(s Spec, in *reading) (*Set, error) {
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
	t, matrix := &rowsTable{cols: RatingCols}, Matrix{}
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
		first := cut == nil
		if first {
			cut = separatorOf(text)
		}
		fields = cut.fields(text, fields[:0])
		if first && len(fields) >= RatingCols && !isMatrixMarket(text) && isHeader(fields[:RatingCols]) {
			in.found = append(in.found, fmt.Sprintf("%s: the first line is a header: %s", src.path, clip(text)))
			continue
		}
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
	if len(fields) < RatingCols {
		return 0, 0, 0, fmt.Errorf("%d values, want %d: row,column,value", len(fields), RatingCols)
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
	if !areTime(fields[RatingCols:]) {
		return 0, 0, 0, fmt.Errorf("%d values, but %s after row,column,value is not a time: are these several ratings in "+
			"one line, or other columns? end each line, and keep row,column,value",
			len(fields), clip(strings.Join(fields[RatingCols:min(len(fields), RatingCols+2)], " ")))
	}
	value, err = parseValue(fields[2], 0)
	return at[0], at[1], value, err
}

// separator separates the fields of a file of ratings. The whole file has one separator. A line is cut at each occurrence, so that an
// empty field counts as a field and the next one does not take its place.
type separator struct{ text, name string }

// separators are in the order in which a line is searched for them. A later one may occur within the fields of an earlier one.
var separators = []separator{{"::", "double colons"}, {"\t", "tabs"}, {";", "semicolons"}, {",", "commas"}, {" ", "spaces"}}

// separatorOf is the separator of a file that begins with this line.
func separatorOf(line string) *separator {
	for i := range separators {
		if strings.Contains(line, separators[i].text) {
			return &separators[i]
		}
	}
	return &separators[len(separators)-1]
}

// fields appends the fields of a line, without the spaces around them. Several spaces count as one separator.
func (s *separator) fields(line string, to []string) []string {
	for more := true; more; {
		var field string
		if s.text == " " {
			line = strings.Trim(line, " ")
		}
		field, line, more = strings.Cut(line, s.text)
		to = append(to, strings.Trim(field, " "))
	}
	return to
}

// hint guesses the mistake in a line, as a text that begins with a semicolon. first is true for the first line that is not blank. It
// returns "" without a guess.
func (s *separator) hint(line string, first bool, fields []string) string {
	comma := false
	for i, f := range fields {
		_, is := withPoint(trimQuotes(f))
		comma = comma || is && i < RatingCols
	}
	switch {
	case isMatrixMarket(line):
		return matrixMarketHint
	case comma && len(fields) >= RatingCols:
		return "" // the error of the value names the comma
	case first:
		return ""
	case len(fields) < RatingCols ||
		slices.ContainsFunc(fields[:RatingCols], func(f string) bool { return strings.ContainsAny(f, "\t;, ") || strings.Contains(f, "::") }):
		return fmt.Sprintf("; the first line separates fields with %s, so all lines must; a value has a decimal point", s.name)
	}
	return ""
}

// areTime says whether the fields after a rating are none, its time in one field, or its date and its time of day in two. Other
// fields may be another rating whose line was joined to this one.
func areTime(fields []string) bool {
	switch len(fields) {
	case 0:
		return true
	case 1:
		return isTime(trimQuotes(fields[0]))
	case 2:
		date, clock := fields[0], fields[1]
		if strings.HasPrefix(date, `"`) && strings.HasSuffix(clock, `"`) && !strings.HasSuffix(date, `"`) { // one text, cut at its space
			return isDate(date[1:]) && isClock(clock[:len(clock)-1])
		}
		return isDate(trimQuotes(date)) && isClock(trimQuotes(clock))
	}
	return false
}

// isTime says whether a text has the form of a time: seconds (or another unit) since some day, or a date, a time of day, or both with
// a space or a T between them. The date need not exist: the 31st of February is accepted.
func isTime(text string) bool {
	if whole, part, is := strings.Cut(text, "."); digits(whole) && (!is || len(whole) >= 9 && digits(part)) { // 1.5 is more likely a value
		return true
	}
	if at := strings.IndexAny(text, "T "); at >= 0 {
		return isDate(text[:at]) && isClock(strings.TrimLeft(text[at+1:], " "))
	}
	return isDate(text) || isClock(text)
}

// isDate accepts a year of four digits before or after month and day, and forms such as 20050906.
func isDate(text string) bool {
	if len(text) == 8 && digits(text) {
		return true
	}
	for _, between := range []string{"-", "/", "."} {
		a, rest, _ := strings.Cut(text, between)
		b, c, found := strings.Cut(rest, between)
		if found && digits(a) && digits(b) && digits(c) {
			return len(b) <= 2 && (len(a) == 4 && len(c) <= 2 || len(a) <= 2 && (len(c) == 4 || len(c) == 2))
		}
	}
	return false
}

// isClock accepts hours and minutes, optional seconds with an optional fraction, and an optional zone at the end: Z, +02 or +02:00.
func isClock(text string) bool {
	text, zulu := strings.CutSuffix(text, "Z")
	if at := strings.IndexAny(text, "+-"); at >= 0 {
		hours, minutes, colon := strings.Cut(text[at+1:], ":")
		if zulu || !digits(hours) || len(hours) != 2 && (len(hours) != 4 || colon) || colon && (len(minutes) != 2 || !digits(minutes)) {
			return false
		}
		text, zulu = text[:at], true
	}
	if zulu && (len(text) == 4 || len(text) == 6) && digits(text) { // 070000Z
		return true
	}
	hours, rest, found := strings.Cut(text, ":")
	minutes, seconds, more := strings.Cut(rest, ":")
	if !found || len(hours) > 2 || len(minutes) != 2 || !digits(hours) || !digits(minutes) {
		return false
	}
	whole, fraction, has := strings.Cut(seconds, ".")
	return !more || len(whole) == 2 && digits(whole) && (!has || digits(fraction))
}

// digits says whether a text consists of one or more digits.
func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// trimQuotes removes the quotes around a field.
func trimQuotes(field string) string {
	if len(field) >= 2 && field[0] == '"' && field[len(field)-1] == '"' {
		return field[1 : len(field)-1]
	}
	return field
}
