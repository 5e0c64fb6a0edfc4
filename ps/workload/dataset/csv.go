package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
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

func loadCSV(s Spec, in *files.Reading) (*Set, error) {
	if s.Label != "" && s.Label != "last" && s.Label != "first" {
		return nil, fmt.Errorf("data: label is %q, must be last or first: the column with the class", s.Label)
	}
	found := &dialect{}
	train, err := readCSV(s.Path, s, found, in)
	if err != nil {
		return nil, err
	}
	found.sort(train.y)
	if s.Label != "first" { // which a caller has chosen
		noteClasses(s.Path, train, in)
	}
	test := &rowsTable{cols: train.cols}
	if s.Test != "" {
		s.Features = train.cols
		if test, err = readCSV(s.Test, s, &dialect{like: found}, in); err != nil {
			return nil, err
		}
	}
	return &Set{Train: train, Test: test, Classes: classes.Count(s.Classes, train.y, test.y), ClassNames: found.names}, nil
}

func readCSV(path string, s Spec, d *dialect, in *files.Reading) (t *rowsTable, err error) {
	err = in.Read(path, files.TextHint, func(src *files.Source) error {
		t, err = parseCSV(src, s, d, in)
		return err
	})
	return t, err
}

// parseCSV reads rows of numbers, the class among them as a number or a text. It finds the dialect from the first lines. It skips blank
// lines and comments. A field may be in quotes.
func parseCSV(src *files.Source, s Spec, d *dialect, in *files.Reading) (*rowsTable, error) {
	lines := text.NewLines(src, in, text.LineMax, "want numbers separated by commas")
	t := &rowsTable{cols: s.Features}
	d.find(lines, s.Label == "first")
	header := d.header != nil
	for {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if text.Blank(line) {
			continue
		}
		if line[0] == '#' {
			d.comments++
			continue
		}
		n := fieldsOf(line, d.sep)
		if t.cols == 0 {
			t.cols = n - 1
		}
		if n < 2 || n != t.cols+1 {
			return nil, fmt.Errorf("data: %s:%d: %d values, want %d (%d features and the class)%s", src.Path, lines.N, n,
				max(t.cols, 1)+1, max(t.cols, 1), csvHint(string(line), len(t.y) == 0, -1))
		}
		if header {
			if header, err = false, d.checkHeader(src, lines.N, in); err != nil {
				return nil, err
			}
			continue
		}
		if t.x, err = files.Grow(in, src, t.x, t.cols); err != nil {
			return nil, err
		}
		if err := t.add(src, lines.N, string(line), s, d, in); err != nil {
			return nil, err
		}
	}
	if len(t.y) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", src.Path)
	}
	lines.End(in)
	d.say(src.Path, s.Label == "first", in)
	return t, nil
}

// add appends a row. x must have memory for it.
func (t *rowsTable) add(src *files.Source, n int, line string, s Spec, d *dialect, in *files.Reading) error {
	label := t.cols
	if s.Label == "first" {
		label = 0
	}
	at, rest := 0, line // rest begins with field i, at that byte of the line
	cut := strings.Cut
	if strings.Contains(line, `"`) {
		cut = cutField
	}
	for i := range t.cols + 1 {
		field, after, _ := cut(rest, d.sep)
		column := at + len(field) - len(strings.TrimLeft(field, " \t")) + 1
		at, rest = at+len(field)+1, after
		field, quoted := unquoted(strings.TrimSpace(field))
		if !quoted {
			return fmt.Errorf("data: %s:%d:%d: a quote is in the middle of a value, or is not closed; want numbers "+
				"separated by commas%s", src.Path, n, column, csvHint(line, false, -1))
		}
		if i == label {
			y, err := d.label(src, field, s.Classes, in)
			if err != nil {
				return fmt.Errorf("data: %s:%d:%d: %w%s", src.Path, n, column, err,
					cmp.Or(csvHint(line, len(t.y) == 0, label), labelHint(field, s.Classes)))
			}
			if err := files.Put(in, src, &t.y, y); err != nil {
				return err
			}
			continue
		}
		v, err := text.ParseValue(field, s.Scale)
		if err != nil {
			return fmt.Errorf("data: %s:%d:%d: %w%s", src.Path, n, column, err, csvHint(line, len(t.y) == 0, label))
		}
		t.x = append(t.x, v)
	}
	return nil
}

// cutField splits a text after its first field. A separator in quotes belongs to the field.
func cutField(text, sep string) (field, after string, found bool) {
	start := len(text) - len(strings.TrimLeft(text, " \t"))
	if sep == "\t" {
		start = len(text) - len(strings.TrimLeft(text, " "))
	}
	if start < len(text) && text[start] == '"' {
		for at := start + 1; at < len(text); at++ {
			switch {
			case text[at] != '"':
			case strings.HasPrefix(text[at+1:], `"`):
				at++
			default:
				rest, after, found := strings.Cut(text[at+1:], sep)
				return text[:at+1+len(rest)], after, found
			}
		}
	}
	return strings.Cut(text, sep)
}

// fieldsOf counts the fields of a line.
func fieldsOf(line []byte, sep string) (n int) {
	if bytes.IndexByte(line, '"') < 0 {
		return bytes.Count(line, []byte(sep)) + 1
	}
	for rest, more := string(line), true; more; n++ {
		_, rest, more = cutField(rest, sep)
	}
	return n
}

// unquoted removes the quotes around a field, and of two quotes in it one. ok is false if there is a quote elsewhere.
func unquoted(field string) (value string, ok bool) {
	if len(field) > 1 && field[0] == '"' && field[len(field)-1] == '"' {
		field = strings.TrimSpace(field[1 : len(field)-1])
		pairs := strings.ReplaceAll(field, `""`, "")
		return strings.ReplaceAll(field, `""`, `"`), !strings.Contains(pairs, `"`)
	}
	return field, !strings.Contains(field, `"`)
}

// parseLabel parses a whole number from 0 to most-1; most 0 means classes.Max.
func parseLabel(field string, most int) (int32, error) {
	limit := int64(cmp.Or(most, classes.Max))
	y, ok := text.ParseWhole(field)
	if !ok {
		return 0, fmt.Errorf("label %s is not a whole number", files.Clip(field))
	}
	if y < 0 || y >= limit {
		return 0, fmt.Errorf("label %d is out of range, must be 0 to %d", y, limit-1)
	}
	return int32(y), nil
}

// labelHint says what to do about a label that parseLabel refuses.
func labelHint(field string, most int) string {
	if v, ok := text.Decimal(field); ok && v == math.Trunc(v) && v >= 0 && v < float64(cmp.Or(most, classes.Max)) {
		return fmt.Sprintf("; write %.0f", v)
	}
	return "; number the classes from 0, without gaps, in the column of the class"
}

// rowsToJudge is the fewest rows from which on the values of a column say what it may be.
const rowsToJudge = 20

// column is what the values of a column of whole numbers from 0 are like.
type column struct {
	distinct int
	most     int // the largest value
}

// isDense says whether the column has each number from 0 to its largest, as numbered classes have.
func (c column) isDense() bool { return c.distinct == c.most+1 }

// columnOf looks at so many values. ok is false if one of them is no whole number that can be a class.
func columnOf(rows int, value func(row int) float32) (c column, ok bool) {
	seen := map[int32]bool{}
	for r := range rows {
		v := value(r)
		y := int32(v)
		if v < 0 || v >= classes.Max || float32(y) != v {
			return c, false
		}
		if !seen[y] {
			seen[y] = true
			c.distinct++
			c.most = max(c.most, int(y))
		}
	}
	return c, true
}

// noteClasses notes what makes the class of a table doubtful: too many classes for the rows, and a first column that looks more like the
// class than the last. Without a note, training on a feature as the class looks like a model that does not learn.
func noteClasses(path string, t *rowsTable, in *files.Reading) {
	rows := t.Rows()
	label, _ := columnOf(rows, func(row int) float32 { return float32(t.y[row]) })
	first, whole := columnOf(rows, func(row int) float32 { return t.x[row*t.cols] })
	classes := max(2, label.most+1)
	many := rows >= rowsToJudge && classes > rows/10
	if rows >= rowsToJudge && whole && first.isDense() && first.distinct > 1 && first.distinct <= rows/10 &&
		(many || label.distinct == 1 || !label.isDense()) {
		like := fmt.Sprintf("has %d different values up to %d", label.distinct, label.most)
		if label.distinct == 1 {
			like = fmt.Sprintf("is %d in all rows", label.most)
		}
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: the class may be in the first column, which has each number "+
			"from 0 to %d; csv takes the class from the last column, which %s; if the first is the class, move it to the end of each line",
			path, first.most, like))
		return
	}
	if many || classes > max(2, rows) {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: the last column, the class, has numbers up to %d in %d rows: "+
			"fewer than ten rows for each of %d classes; if it is a feature, put the class there, and number classes from 0 without gaps",
			path, label.most, rows, classes))
	}
}
