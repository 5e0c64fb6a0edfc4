package csv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// dialect is how a file writes rows.
type dialect struct {
	sep    byte
	point  byte     // before the fraction of a number
	header []string // the names of the columns; nil: the first line is a row
	skip   bool     // the first line tells the separator to spreadsheets, as in sep=;
	first  []string // the fields of the first line
	line   string   // the first line
}

// delimiter is what separates values, and its name in the YAML.
type delimiter struct {
	name string
	sep  byte
}

// delimiters are in the order in which they are tried.
var delimiters = []delimiter{{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"bar", '|'}, {"space", ' '}}

func delimiterName(sep byte) string {
	return delimiters[slices.IndexFunc(delimiters, func(d delimiter) bool { return d.sep == sep })].name
}

// linesToJudge is the most lines that tell the dialect.
const linesToJudge = 100

// find judges the first bytes of a file, of which more may follow. like is the dialect of the first file; nil: this is the first.
func (o *Options) find(path string, head []byte, more bool, like *dialect) (d dialect, err error) {
	d.sep, d.point = ',', '.'
	if o.Decimal == DecimalComma {
		d.point = ','
	}
	all := linesOf(head, more)
	if len(all) > 0 && len(all[0]) == 5 && strings.HasPrefix(all[0], "sep=") && strings.IndexByte(",;|\t", all[0][4]) >= 0 {
		d.skip, d.sep, all = true, all[0][4], all[1:]
	}
	all = slices.DeleteFunc(all, func(line string) bool { return text.Blank([]byte(line)) || line[0] == '#' })
	all = all[:min(len(all), linesToJudge)]
	if o.Delimiter == "comma" && o.Decimal == DecimalComma {
		return d, fmt.Errorf("data: %s: data.delimiter and data.decimal are both comma: set data.delimiter to what separates the values", path)
	}
	switch at := slices.IndexFunc(delimiters, func(d delimiter) bool { return d.name == o.Delimiter }); {
	case at >= 0:
		d.sep = delimiters[at].sep
	case d.skip:
	case like != nil && len(all) > 0 && len(fieldsOf(all[0], like.sep)) == len(like.first):
		d.sep = like.sep
	default:
		if d.sep, err = separatorOf(path, all, d.point); err != nil {
			return d, err
		}
	}
	if len(all) == 0 {
		return d, nil
	}
	return d, d.findHeader(path, all, o.Header, like)
}

// findHeader decides whether the first line has the names of the columns.
func (d *dialect) findHeader(path string, all []string, header string, like *dialect) error {
	names := fieldsOf(all[0], d.sep)
	var row []string
	d.line = all[0]
	if d.first = names; len(all) > 1 {
		row = fieldsOf(all[1], d.sep)
	}
	switch isNames := text.IsHeader(names); {
	case header == "true":
	case header == "false":
		return nil
	case like != nil && like.header != nil:
		if !isNames && !slices.Equal(names, like.header) {
			return fmt.Errorf("data: %s: the first line is no header, and the first file has one: write the same header into this file, or remove "+
				"it from the others", path)
		}
	case like != nil:
		if isNames && len(row) == len(names) && slices.ContainsFunc(row, func(f string) bool { return isNumberWith(f, d.point) }) {
			return fmt.Errorf("data: %s: the first line is a header, and the first file has none: write the same header into all files", path)
		}
		return nil
	case isNames && len(row) == len(names)+1:
		return fmt.Errorf("data: %s: the header has %d names, but rows have %d values, as R's write.table writes the names of rows; "+
			"write with row.names=FALSE", path, len(names), len(row))
	case isNames && len(row) == len(names) && slices.ContainsFunc(row, func(f string) bool { return isNumberWith(f, d.point) }):
	case isNames && len(all) > 2 && text.IsHeader(row) && slices.ContainsFunc(fieldsOf(all[2], d.sep), func(f string) bool {
		return isNumberWith(f, d.point)
	}):
		return fmt.Errorf("data: %s: the first two lines have names, as pandas writes columns with several levels; keep one line of names", path)
	case isNames && len(row) == len(names) && len(names) > 1:
		return fmt.Errorf("data: %s: it cannot be told whether the first line, %s, has the names of the columns, because the other lines "+
			"have no numbers: set data.header: true or false", path, files.Clip(all[0]))
	case isNumbered(all, d.sep) && len(row) == len(names):
		return fmt.Errorf("data: %s: it cannot be told whether the first line, %s, has the names of the columns: some are numbers in turn, and "+
			"no other line has its words; set data.header: true or false", path, files.Clip(all[0]))
	case isCount(names) && len(row) == len(names):
		return fmt.Errorf("data: %s: it cannot be told whether the first line, %s, has the names of the columns: they are numbers in turn, "+
			"as pandas names columns; set data.header: true or false", path, files.Clip(all[0]))
	default:
		return nil
	}
	d.header, d.first = names, names
	return nil
}

// isCount says whether fields are 0, 1, 2 and so on, or 1, 2, 3 and so on.
func isCount(fields []string) bool {
	for i, f := range fields {
		if first, err := strconv.Atoi(fields[0]); err != nil || first != 0 && first != 1 || f != strconv.Itoa(first+i) {
			return false
		}
	}
	return len(fields) > 2
}

// isNumbered says whether the first line may be a header some of whose names are numbers in turn, such as years: it has whole numbers, each
// one more than the one before, and words that no other line has in their places.
func isNumbered(all []string, sep byte) bool {
	names, before, numbers, words := fieldsOf(all[0], sep), 0, 0, 0
	for i, name := range names {
		if n, err := strconv.Atoi(name); err == nil && (numbers == 0 || n == before+1) {
			before, numbers = n, numbers+1
			continue
		}
		if !text.IsWord(name) || slices.ContainsFunc(all[1:], func(line string) bool {
			fields := fieldsOf(line, sep)
			return i < len(fields) && fields[i] == name
		}) {
			return false
		}
		words++
	}
	return numbers > 1 && words > 0
}

// separatorOf is the one separator that cuts all lines into as many fields, some column of which are numbers.
func separatorOf(path string, all []string, point byte) (byte, error) {
	if len(all) < 2 {
		return loneSeparator(all, point), nil
	}
	var fit, numbers []byte
	for _, d := range delimiters {
		if d.sep == ' ' && len(fit) > 0 || d.sep == point {
			continue
		}
		n := len(fieldsOf(all[1], d.sep))
		first := fieldsOf(all[0], d.sep)
		if n < 2 || len(first) != n && !(len(first) == n-1 && text.IsHeader(first)) ||
			slices.ContainsFunc(all[1:], func(line string) bool { return len(fieldsOf(line, d.sep)) != n }) {
			continue
		}
		if fit = append(fit, d.sep); hasNumbers(all[1:], d.sep, point) {
			numbers = append(numbers, d.sep)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(numbers) == 1:
		return numbers[0], nil
	case len(fit) > 1:
		hint := ""
		if slices.Contains(fit, ',') && point == '.' && hasNumbers(all[1:], fit[1], ',') {
			hint = fmt.Sprintf("; if the numbers have decimal commas, set data.delimiter: %s and data.decimal: comma", delimiterName(fit[1]))
		}
		return 0, fmt.Errorf("data: %s: both %s and %s cut all lines into as many values: set data.delimiter to the one that separates "+
			"values%s", path, delimiterName(fit[0]), delimiterName(fit[1]), hint)
	}
	for _, d := range delimiters { // some line is of another length, and its error should count the values of the others
		if n := len(fieldsOf(all[0], d.sep)); n > 1 && n == len(fieldsOf(all[1], d.sep)) && d.sep != point && hasNumbers(all[1:2], d.sep, point) {
			return d.sep, nil
		}
	}
	return defaultSeparator(point), nil
}

// loneSeparator is the separator of a file of one line.
func loneSeparator(all []string, point byte) byte {
	for _, d := range delimiters {
		if d.sep != point && len(all) > 0 && len(fieldsOf(all[0], d.sep)) > 1 && d.sep != ' ' {
			return d.sep
		}
	}
	return defaultSeparator(point)
}

func defaultSeparator(point byte) byte {
	if point == ',' {
		return ';'
	}
	return ','
}

// hasNumbers says whether a column of these lines has numbers alone.
func hasNumbers(all []string, sep, point byte) bool {
	var numbers []bool
	for k, line := range all {
		for i, f := range fieldsOf(line, sep) {
			if k == 0 {
				numbers = append(numbers, true)
			}
			if i < len(numbers) && numbers[i] {
				numbers[i] = isNumberWith(f, point)
			}
		}
	}
	return slices.Contains(numbers, true)
}

func isNumberWith(field string, point byte) bool {
	if point == ',' {
		if plain, ok := text.WithPoint(field); ok {
			field = plain
		}
	}
	return text.IsNumber(field)
}

// linesOf cuts the first bytes of a file into lines. A line end in quotes belongs to its field. The last line is left out if it may go on.
func linesOf(head []byte, more bool) (all []string) {
	for len(head) > 0 {
		end, next := lineEnd(head)
		if next == 0 {
			if !more {
				all = append(all, string(head))
			}
			break
		}
		all, head = append(all, string(head[:end])), head[next:]
	}
	return all
}

// lineEnd is where the first line ends, and where the next one begins; next is 0 if there is no end. An end in quotes is none. Quotes in a
// comment are nothing.
func lineEnd(b []byte) (end, next int) {
	quoted, comment := false, len(b) > 0 && b[0] == '#'
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			quoted = !quoted && !comment
		case '\n', '\r':
			if quoted {
				continue
			}
			if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
				return i, i + 2
			}
			return i, i + 1
		}
	}
	return len(b), 0
}

// fieldsOf are the fields of a line without their quotes.
func fieldsOf(line string, sep byte) (fields []string) {
	if sep == ' ' {
		line = strings.Trim(line, " \t")
	}
	for rest, more := line, true; more; {
		var field string
		field, rest, more = cutField(rest, sep)
		field, _ = unquoted(strings.TrimSpace(field))
		fields = append(fields, field)
	}
	return fields
}

// cutField splits a text after its first field. A separator in quotes belongs to the field. Several spaces are one separator.
func cutField(line string, sep byte) (field, after string, found bool) {
	start := len(line) - len(strings.TrimLeft(line, " \t"))
	if sep == '\t' {
		start = len(line) - len(strings.TrimLeft(line, " "))
	}
	from := 0
	if start < len(line) && line[start] == '"' {
		for at := start + 1; at < len(line); at++ {
			if line[at] != '"' {
				continue
			}
			if at++; at == len(line) || line[at] != '"' {
				from = at
				break
			}
		}
	}
	at := strings.IndexByte(line[from:], sep)
	if sep == ' ' {
		at = strings.IndexAny(line[from:], " \t")
	}
	if at < 0 {
		return line, "", false
	}
	field, after = line[:from+at], line[from+at+1:]
	if sep == ' ' {
		after = strings.TrimLeft(after, " \t")
	}
	return field, after, true
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

// checkHeader fails for names that tell nothing, or something else than those of the first file.
func (d *dialect) checkHeader(path string, n int, s *scheme, like *dialect) error {
	at := path
	if n > 0 {
		at += ":" + strconv.Itoa(n)
	}
	seen := map[string]int{}
	for i, name := range d.header {
		switch before, twice := seen[name]; {
		case name == "" && i == s.label:
			return fmt.Errorf("data: %s: column %d of the header has no name, and would be the class: name the column of the class in "+
				"data.label, and leave this one out by data.drop: [%d]", at, i+1, i+1)
		case name == "" && (i >= len(s.ops) || s.ops[i] != opSkip):
			return fmt.Errorf("data: %s: column %d of the header has no name, as the numbers of rows that pandas and R write; "+
				"set data.drop: [%d] to leave it out, or write the file without it (index=False, row.names=FALSE)", at, i+1, i+1)
		case twice && name != "":
			return fmt.Errorf("data: %s: columns %d and %d of the header are both %s; rename one of them", at, before+1, i+1,
				files.Clip(name))
		}
		if err := text.CheckUTF8("column", name); err != nil {
			return fmt.Errorf("data: %s: %w", at, err)
		}
		seen[name] = i
	}
	if like == nil || like.header == nil || slices.Equal(like.header, d.header) {
		return nil
	}
	for i, name := range d.header {
		if i >= len(like.header) || like.header[i] != name {
			return fmt.Errorf("data: %s: column %d of the header is %s, and in the training file it is %s; write both files with "+
				"the same columns", at, i+1, files.Clip(name), files.Clip(append(like.header, make([]string, i+1)...)[i]))
		}
	}
	return fmt.Errorf("data: %s: the header has %d columns, and in the training file %d", at, len(d.header), len(like.header))
}
