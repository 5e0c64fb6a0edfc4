package dataset

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// csvHint guesses the mistake in a line of csv, as a text that begins with a semicolon. first is true for the first line that is not
// blank, label is the column of the class, -1 if the line has other columns than the rest. It returns "" without a guess.
func csvHint(line string, first bool, label int) string {
	if text.IsMatrixMarket(line) {
		return text.MatrixMarketHint
	}
	if text.LooksLIBSVM(line) {
		return "; it looks like libsvm: set data.set: libsvm"
	}
	if text.QuotedCommas(line) {
		return "; a number in quotes has a decimal comma: write a point for it"
	}
	if hint, ok := text.OtherSeparator(line); ok {
		return hint
	}
	fields := strings.Split(line, ",")
	if label >= 0 && label < len(fields) && len(fields) > 1 {
		fields = slices.Delete(fields, label, label+1)
	}
	if first && text.IsHeader(fields) {
		return "; remove the header line"
	}
	return ""
}

// libsvmHint does the same for a line of LIBSVM.
func libsvmHint(line string, first bool) string {
	fields := strings.Split(line, ",")
	numbers := len(fields) > 1 && !strings.Contains(line, ":") && !slices.ContainsFunc(fields, func(f string) bool {
		_, number := text.Decimal(strings.TrimSpace(f))
		return !number
	})
	switch {
	case text.IsMatrixMarket(line):
		return text.MatrixMarketHint
	case numbers:
		return "; it looks like csv: set data.set: csv"
	case first && text.IsHeader(strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == ';' })):
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
func (d *dialect) find(l *text.Lines, first bool) {
	d.sep = ","
	head, err := l.R.Peek(1 << 16)
	whole := strings.ReplaceAll(strings.ReplaceAll(string(head), "\r\n", "\n"), "\r", "\n")
	all := strings.Split(whole, "\n")
	if err == nil { // the last line goes on
		all = all[:len(all)-1]
	}
	all = slices.DeleteFunc(all, func(line string) bool { return text.Blank([]byte(line)) || line[0] == '#' })
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
	if text.IsHeader(names) && len(names) == len(row) && slices.ContainsFunc(row, isNumber) {
		d.header, all = names, all[1:]
	}
	if d.texts = d.like != nil && d.like.texts; d.like == nil {
		d.texts = !slices.ContainsFunc(all, func(line string) bool {
			fields := fieldTexts(line, d.sep)
			class := fields[len(fields)-1]
			if first {
				class = fields[0]
			}
			return len(fields) < 2 || isNumber(class) || !text.IsWord(class)
		})
	}
}

func isNumber(field string) bool {
	_, ok := text.Decimal(field)
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
func (d *dialect) checkHeader(src *files.Source, n int, in *files.Reading) error {
	seen := map[string]int{}
	for i, name := range d.header {
		switch before, twice := seen[name]; {
		case name == "":
			return fmt.Errorf("data: %s:%d: column %d of the header has no name, as the numbers of rows that pandas and R write; "+
				"write the file without them (index=False, row.names=FALSE), or remove the header line", src.Path, n, i+1)
		case twice:
			return fmt.Errorf("data: %s:%d: columns %d and %d of the header are both %s; rename one of them",
				src.Path, n, before+1, i+1, files.Clip(name))
		}
		seen[name] = i
	}
	if like := d.like; like != nil && like.header != nil && !slices.Equal(like.header, d.header) {
		for i, name := range d.header {
			if i >= len(like.header) || like.header[i] != name {
				return fmt.Errorf("data: %s:%d: column %d of the header is %s, and in the training file it is %s; write both files with "+
					"the same columns", src.Path, n, i+1, files.Clip(name), files.Clip(append(like.header, make([]string, i+1)...)[i]))
			}
		}
	}
	return in.Take(src, int64(len(d.header))*16)
}

// label returns the class of a field. Texts are numbered as they come; sort puts them in their order.
func (d *dialect) label(src *files.Source, field string, most int, in *files.Reading) (int32, error) {
	if !d.texts {
		return parseLabel(field, most)
	}
	if d.like != nil {
		if y, ok := d.like.index[field]; ok {
			return y, nil
		}
		return 0, fmt.Errorf("class %s is not in the training file, whose classes are %s; remove the row, or put rows of this class into "+
			"the training file", files.Clip(field), classes.List(d.like.names))
	}
	y, ok := d.index[field]
	switch {
	case ok:
		return y, nil
	case text.IsMissing(field) || isNumber(field):
		return 0, fmt.Errorf("class %s is no text, but those of the rows above are, such as %s; write all classes as texts, or all as "+
			"numbers from 0", files.Clip(field), classes.List(d.names))
	case !utf8.ValidString(field):
		return 0, fmt.Errorf("class %s is not in UTF-8; save the file as UTF-8", files.Clip(field))
	case most > 0 && len(d.names) >= most:
		return 0, fmt.Errorf("class %s is one more than the %d that are wanted: %s", files.Clip(field), most, classes.List(d.names))
	case len(d.names) >= textClassesMax:
		return 0, fmt.Errorf("class %s is one more than the limit, %d texts; is it the column of the class?", files.Clip(field), textClassesMax)
	}
	if err := in.Take(src, int64(len(field))+128); err != nil {
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

// say records what was found, if the file is not a plain one.
func (d *dialect) say(path string, first bool, in *files.Reading) {
	if d.sep == "," && d.header == nil && !d.texts && d.comments == 0 {
		return
	}
	say := path + ": no header"
	if d.header != nil {
		say = path + ": header found"
	}
	say += ", " + dialectNames[d.sep]
	if d.header != nil {
		class := d.header[len(d.header)-1]
		if first {
			class = d.header[0]
		}
		say += ", class in column " + files.Clip(class)
	}
	if d.texts && d.like == nil {
		names := slices.Clone(d.names)
		slices.Sort(names)
		say += fmt.Sprintf(", %d classes: %s", len(names), classes.List(names))
	}
	if d.comments > 0 {
		say += fmt.Sprintf(", %d lines of comments skipped", d.comments)
	}
	in.Found = append(in.Found, say)
}
