package csv

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/text"
)

// say records in a line what was found, if the files are not plain ones: numbers with commas between them, and nothing else.
func (r *reader) say(path string, train, test *Table, found *Found) {
	d, s := r.first, r.scheme
	if !r.isParquet && d.sep == ',' && d.point == '.' && d.header == nil && found.Names == nil && r.comments == 0 &&
		len(s.texts)+len(s.wide) == 0 && r.missing == 0 && r.Split == 0 && r.Drop == "" && r.Label == "" {
		return
	}
	parts := []string{"no header", delimiterName(d.sep)}
	switch {
	case r.isParquet:
		parts = []string{"Parquet with " + text.Counted(len(s.ops), "column")}
	case d.header != nil:
		parts[0] = "header found"
	}
	if d.point == ',' {
		parts = append(parts, "decimal commas")
	}
	if d.header != nil || s.label+1 != len(s.ops) {
		parts = append(parts, r.labelWord()+" in column "+s.name(s.label))
	}
	if r.labels.IsText {
		parts = append(parts, fmt.Sprintf("%d classes: %s", len(found.Names), classes.List(found.Names)))
	}
	for _, t := range s.texts {
		if t.at < 0 {
			parts = append(parts, fmt.Sprintf("column %s groups the rows, %d values", s.name(t.column), len(t.Names)))
			continue
		}
		parts = append(parts, fmt.Sprintf("column %s has %s", s.name(t.column), text.Counted(len(found.Columns[t.column].Texts), "text")))
	}
	if n := len(s.wide); n > 0 {
		parts = append(parts, text.Counted(n, "column")+" standardized")
	}
	if n := len(r.Drop.Items()); n > 0 {
		parts = append(parts, text.Counted(n, "column")+" left out")
	}
	if r.missing > 0 {
		parts = append(parts, text.Counted(r.missing, "missing value")+" filled in")
	}
	if r.comments > 0 {
		parts = append(parts, text.Counted(r.comments, "line")+" of comments skipped")
	}
	if r.Split > 0 && test.Rows() > 0 {
		parts = append(parts, fmt.Sprintf("%d rows for training, %d for the test", train.Rows(), test.Rows()))
	}
	r.in.Found = append(r.in.Found, path+": "+strings.Join(parts, ", "))
}

// noteClasses notes what makes the class of a table doubtful: too many classes for the rows, and another column that looks more like the
// class. Without a note, training on a feature as the class looks like a model that does not learn.
func (r *reader) noteClasses(path string, t *Table) {
	if r.Label != "" || r.labels.IsText { // which the user has chosen, and which is no number
		r.noteNames(path)
		return
	}
	rows := t.Rows()
	label, ok := columnOf(rows, func(row int) float32 { return float32(t.y[row]) })
	if !ok {
		r.noteNames(path)
		return
	}
	first, whole := column{}, false
	if r.scheme.ops[0] == opNumber {
		first, whole = columnOf(rows, func(row int) float32 { return t.x[row*r.scheme.kept] })
	}
	count := max(2, label.most+1)
	many := rows >= rowsToJudge && count > rows/10
	if rows >= rowsToJudge && whole && first.isDense() && first.distinct > 1 && first.distinct <= rows/10 &&
		(many || label.distinct == 1 || !label.isDense()) {
		like := fmt.Sprintf("has %d different values up to %d", label.distinct, label.most)
		if label.distinct == 1 {
			like = fmt.Sprintf("is %d in all rows", label.most)
		}
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("data: %s: the class may be in the first column, which has each number "+
			"from 0 to %d; csv takes the class from the last column, which %s; if the first is the class, set data.label: first",
			path, first.most, like))
		return
	}
	if many || count > max(2, rows) {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("data: %s: the last column, the class, has numbers up to %d in %d rows: "+
			"fewer than ten rows for each of %d classes; if it is a feature, name the column of the class in data.label, and number classes from 0 "+
			"without gaps", path, label.most, rows, count))
		return
	}
	r.noteNames(path)
}

// noteNames notes a header that calls another column the class.
func (r *reader) noteNames(path string) {
	isClass := func(name string) bool {
		return slices.Contains([]string{"class", "label", "target", "y"}, strings.ToLower(strings.TrimSpace(name)))
	}
	names := r.scheme.names
	if r.Label != "" || names == nil || isClass(names[r.scheme.label]) {
		return
	}
	if at := slices.IndexFunc(names, isClass); at >= 0 {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("data: %s: the %s is taken from the last column, %s, and column %d is called %q: if "+
			"that is the %s, set data.label: %s", path, r.labelWord(), r.scheme.name(r.scheme.label), at+1, names[at], r.labelWord(), names[at]))
	}
}

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
