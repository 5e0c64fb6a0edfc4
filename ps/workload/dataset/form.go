package dataset

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a line that cannot be read looks like. Advice follows from the line itself and never from its number alone: the first line
// of a file is a header only if it has words where the others have numbers.

// isWord says whether a field is a name, such as a header has: neither a number in any syntax nor a sign for a missing value.
func isWord(field string) bool {
	field = trimQuotes(strings.TrimSpace(field))
	_, _, number := meantNumber(field)
	return strings.ContainsFunc(field, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' || r > 0x7f }) &&
		!number && !isMissing(field) && !isInfinite(field) && !strings.ContainsAny(field, ":%")
}

// isHeader says whether fields are names of columns: there are words among them, and no number.
func isHeader(fields []string) bool {
	words := false
	for _, f := range fields {
		if _, number := decimal(trimQuotes(strings.TrimSpace(f))); number && strings.TrimSpace(f) != "" {
			return false
		}
		words = words || isWord(f)
	}
	return words
}

// isMatrixMarket says whether a line belongs to the head of a file in MatrixMarket's form.
func isMatrixMarket(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "%") }

const matrixMarketHint = "; the file has the head of MatrixMarket: remove the lines that begin with % and the line of sizes below them"

// otherSeparator describes a line of numbers that something else than commas separates.
func otherSeparator(line string) (hint string, ok bool) {
	for _, s := range []separator{{";", "semicolons"}, {"\t", "tabs"}, {"|", "bars"}, {" ", "spaces"}} {
		fields := s.fields(strings.TrimSpace(line), nil)
		commas := 0
		numbers := len(fields) > 1 && !slices.ContainsFunc(fields, func(f string) bool {
			_, number := decimal(trimQuotes(f))
			_, comma := withPoint(trimQuotes(f))
			if comma {
				commas++
			}
			return !number && !comma
		})
		switch {
		case numbers && commas > 0:
			return fmt.Sprintf("; %s separate the values, which have decimal commas: write points for these commas, and "+
				"commas in place of the %s", s.name, s.name), true
		case numbers:
			return fmt.Sprintf("; %s separate the values, and the values of csv are separated by commas: write commas in their place", s.name), true
		}
	}
	return "", false
}

// quotedCommas says whether a line has numbers with decimal commas in quotes.
func quotedCommas(line string) bool {
	for i, part := range strings.Split(line, `"`) {
		if _, comma := withPoint(strings.TrimSpace(part)); comma && i%2 == 1 {
			return true
		}
	}
	return false
}

// looksLIBSVM says whether a line is a label and entries of index:value.
func looksLIBSVM(line string) bool {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return false
	}
	if _, number := decimal(fields[0]); !number {
		return false
	}
	return !slices.ContainsFunc(fields[1:], func(f string) bool {
		index, value, found := strings.Cut(f, ":")
		_, number := decimal(value)
		return !found || !digits(index) || !number
	})
}

// csvHint guesses the mistake in a line of csv, as a text that begins with a semicolon. first is true for the first line that is not
// blank, label is the column of the class, -1 if the line has other columns than the rest. It returns "" without a guess.
func csvHint(line string, first bool, label int) string {
	if isMatrixMarket(line) {
		return matrixMarketHint
	}
	if looksLIBSVM(line) {
		return "; it looks like libsvm: set data.set: libsvm"
	}
	if quotedCommas(line) {
		return "; a number in quotes has a decimal comma: write a point for it"
	}
	if hint, ok := otherSeparator(line); ok {
		return hint
	}
	fields := strings.Split(line, ",")
	if label >= 0 && label < len(fields) && len(fields) > 1 {
		fields = slices.Delete(fields, label, label+1)
	}
	if first && isHeader(fields) {
		return "; remove the header line"
	}
	return ""
}

// libsvmHint does the same for a line of LIBSVM.
func libsvmHint(line string, first bool) string {
	fields := strings.Split(line, ",")
	numbers := len(fields) > 1 && !strings.Contains(line, ":") && !slices.ContainsFunc(fields, func(f string) bool {
		_, number := decimal(strings.TrimSpace(f))
		return !number
	})
	switch {
	case isMatrixMarket(line):
		return matrixMarketHint
	case numbers:
		return "; it looks like csv: set data.set: csv"
	case first && isHeader(strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == ';' })):
		return "; remove the header line"
	}
	return ""
}

// dialect is how a file of csv writes rows, and the texts of its classes.
type dialect struct {
	sep      string
	header   []string // the names of the columns; nil: the first line is a row
	texts    bool     // classes are texts
	comments int      // lines

	like  *dialect // that of the training file, for a test file: it fixes the names
	index map[string]int32
	names []string // by class
}

var dialectNames = map[string]string{",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

// linesToJudge is the most lines that tell the dialect.
const linesToJudge = 100

// find judges the first lines, and consumes none. What they leave open is read as rows of numbers with commas, whose errors say what
// the line looks like.
func (d *dialect) find(l *lines, first bool) {
	d.sep = ","
	head, err := l.r.Peek(1 << 16)
	text := strings.ReplaceAll(strings.ReplaceAll(string(head), "\r\n", "\n"), "\r", "\n")
	all := strings.Split(text, "\n")
	if err == nil { // the last line goes on
		all = all[:len(all)-1]
	}
	all = slices.DeleteFunc(all, func(line string) bool { return blank([]byte(line)) || line[0] == '#' })
	if all = all[:min(len(all), linesToJudge)]; len(all) < 2 {
		return
	}
	var fit []string
	for _, sep := range []string{",", ";", "\t", "|"} {
		n := fieldsOf([]byte(all[0]), sep)
		if n > 1 && !slices.ContainsFunc(all, func(line string) bool { return fieldsOf([]byte(line), sep) != n }) {
			fit = append(fit, sep)
		}
	}
	if len(fit) == 1 {
		d.sep = fit[0]
	}
	names, row := fieldTexts(all[0], d.sep), fieldTexts(all[1], d.sep)
	if isHeader(names) && len(names) == len(row) && slices.ContainsFunc(row, isNumber) {
		d.header, all = names, all[1:]
	}
	if d.texts = d.like != nil && d.like.texts; d.like == nil {
		d.texts = !slices.ContainsFunc(all, func(line string) bool {
			fields := fieldTexts(line, d.sep)
			class := fields[len(fields)-1]
			if first {
				class = fields[0]
			}
			return len(fields) < 2 || isNumber(class) || !isWord(class)
		})
	}
}

func isNumber(field string) bool {
	_, ok := decimal(field)
	return ok
}

// fieldTexts are the fields of a line without their quotes.
func fieldTexts(line, sep string) (fields []string) {
	for rest, more := line, true; more; {
		var field string
		field, rest, more = cutField(rest, sep)
		field, _ = unquoted(strings.TrimSpace(field))
		fields = append(fields, field)
	}
	return fields
}

// checkHeader fails for names that tell nothing, or something else than those of the training file.
func (d *dialect) checkHeader(src *source, n int, in *reading) error {
	seen := map[string]int{}
	for i, name := range d.header {
		switch before, twice := seen[name]; {
		case name == "":
			return fmt.Errorf("data: %s:%d: column %d of the header has no name, as the numbers of rows that pandas and R write; "+
				"write the file without them (index=False, row.names=FALSE), or remove the header line", src.path, n, i+1)
		case twice:
			return fmt.Errorf("data: %s:%d: columns %d and %d of the header are both %s; rename one of them", src.path, n, before+1, i+1, clip(name))
		}
		seen[name] = i
	}
	if like := d.like; like != nil && like.header != nil && !slices.Equal(like.header, d.header) {
		for i, name := range d.header {
			if i >= len(like.header) || like.header[i] != name {
				return fmt.Errorf("data: %s:%d: column %d of the header is %s, and in the training file it is %s; write both files with "+
					"the same columns", src.path, n, i+1, clip(name), clip(append(like.header, make([]string, i+1)...)[i]))
			}
		}
	}
	return in.take(src, int64(len(d.header))*16)
}

// label returns the class of a field. Texts are numbered as they come; sort puts them in their order.
func (d *dialect) label(src *source, field string, classes int, in *reading) (int32, error) {
	if !d.texts {
		return parseLabel(field, classes)
	}
	if d.like != nil {
		if y, ok := d.like.index[field]; ok {
			return y, nil
		}
		return 0, fmt.Errorf("class %s is not in the training file, whose classes are %s; remove the row, or put rows of this class into "+
			"the training file", clip(field), listNames(d.like.names))
	}
	y, ok := d.index[field]
	switch {
	case ok:
		return y, nil
	case isMissing(field) || isNumber(field):
		return 0, fmt.Errorf("class %s is no text, but those of the rows above are, such as %s; write all classes as texts, or all as "+
			"numbers from 0", clip(field), listNames(d.names))
	case !utf8.ValidString(field):
		return 0, fmt.Errorf("class %s is not in UTF-8; save the file as UTF-8", clip(field))
	case classes > 0 && len(d.names) >= classes:
		return 0, fmt.Errorf("class %s is one more than the %d that are wanted: %s", clip(field), classes, listNames(d.names))
	case len(d.names) >= textClassesMax:
		return 0, fmt.Errorf("class %s is one more than the limit, %d texts; is it the column of the class?", clip(field), textClassesMax)
	}
	if err := in.take(src, int64(len(field))+128); err != nil {
		return 0, err
	}
	if d.index == nil {
		d.index = map[string]int32{}
	}
	y, field = int32(len(d.names)), strings.Clone(field)
	d.index[field], d.names = y, append(d.names, field)
	return y, nil
}

// textClassesMax bounds classes that are texts: a column of names of persons is no class.
const textClassesMax = 1 << 16

// sort numbers the classes in the order of their texts, which does not depend on the order of rows.
func (d *dialect) sort(y []int32) {
	number := make([]int32, len(d.names)) // by the old one
	slices.Sort(d.names)
	for class, name := range d.names {
		number[d.index[name]], d.index[name] = int32(class), int32(class)
	}
	for i := range y {
		if len(number) > 0 {
			y[i] = number[y[i]]
		}
	}
}

// listNames lists the first names.
func listNames(names []string) string {
	const most = 10
	var b strings.Builder
	if len(names) == 0 {
		return "none"
	}
	for i, name := range names[:min(most, len(names))] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(clip(name))
	}
	if len(names) > most {
		fmt.Fprintf(&b, " and %d more", len(names)-most)
	}
	return b.String()
}

// say records what was found, if the file is not a plain one.
func (d *dialect) say(path string, first bool, in *reading) {
	if d.sep == "," && d.header == nil && !d.texts && d.comments == 0 {
		return
	}
	text := path + ": no header"
	if d.header != nil {
		text = path + ": header found"
	}
	text += ", " + dialectNames[d.sep]
	if d.header != nil {
		class := d.header[len(d.header)-1]
		if first {
			class = d.header[0]
		}
		text += ", class in column " + clip(class)
	}
	if d.texts && d.like == nil {
		names := slices.Clone(d.names)
		slices.Sort(names)
		text += fmt.Sprintf(", %d classes: %s", len(names), listNames(names))
	}
	if d.comments > 0 {
		text += fmt.Sprintf(", %d lines of comments skipped", d.comments)
	}
	in.found = append(in.found, text)
}
