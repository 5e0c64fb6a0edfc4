package csv

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// record reads the first record of b, and returns where the next one begins.
func (p *parser) record(b []byte) (next int, _ *fault) {
	c := p.out
	end, next := lineEnd(b)
	if next == 0 {
		next = len(b)
	}
	if b[0] == '#' {
		c.comments++
		c.lines++
		return next, nil
	}
	line, at := string(b[:end]), c.lines
	inside := strings.Count(strings.ReplaceAll(line, "\r\n", "\n"), "\n") // line ends within quotes
	c.lines += 1 + inside
	if text.Blank(b[:end]) {
		return next, nil
	}
	if p.skip > 0 {
		p.skip--
		return next, nil
	}
	isFirst := p.isFirst
	p.isFirst = false
	if f := checkLine(line); f != nil {
		f.line += at
		return 0, f
	}
	p.line = at
	if f := p.row(line, isFirst); f != nil {
		f.line += at
		return 0, f
	}
	c.rows++
	return next, nil
}

// checkLine fails for characters that do not occur in text. Ends of lines are in quotes.
func checkLine(line string) *fault {
	start, n := 0, 0
	for i := range len(line) {
		switch c := line[i]; {
		case c >= ' ' && c < 0x7f || c == '\t':
		case c == '\n' || c == '\r' && !strings.HasPrefix(line[i+1:], "\n"):
			start, n = i+1, n+1
		case c == '\r':
		default:
			if what := text.Strange(line[i:]); what != "" {
				return &fault{n, i - start + 1, errors.New(what)}
			}
		}
	}
	return nil
}

// placeIn is the place of a byte of a record, from 1, which begins with a line. There are other lines in it if a line ends in quotes.
func placeIn(record string, column, line int) fault {
	before := strings.ReplaceAll(record[:min(len(record), column-1)], "\r\n", "\n\n")
	before = strings.ReplaceAll(before, "\r", "\n")
	at := strings.LastIndexByte(before, '\n')
	pairs := strings.Count(record[:min(len(record), column-1)], "\r\n")
	return fault{line: line + strings.Count(before, "\n") - pairs, column: column - at - 1}
}

// newFault is a mistake at a byte of a record, from 1.
func newFault(record string, column int, err error) *fault {
	f := placeIn(record, column, 0)
	f.err = err
	return &f
}

// row appends the values of a record.
func (p *parser) row(line string, isFirst bool) *fault {
	at, rest := 0, line
	if p.sep == ' ' {
		rest = strings.Trim(line, " \t")
		at = len(line) - len(strings.TrimLeft(line, " \t"))
	}
	texts, kept, wide, group, bad := 0, len(p.out.x), len(p.out.wide), len(p.out.group), (*fault)(nil)
	y, n := int32(0), 0
	for more := true; more; n++ {
		var field string
		before := len(rest)
		field, rest, more = cutField(rest, p.sep)
		column := at + len(field) - len(strings.TrimLeft(field, " \t")) + 1
		at += before - len(rest)
		if n >= len(p.ops) || bad != nil {
			continue
		}
		value, ok := unquoted(strings.TrimSpace(field))
		if !ok || strings.ContainsAny(value, "\r\n") && (p.ops[n] == opNumber || p.ops[n] == opWide) {
			bad = newFault(line, column, fmt.Errorf("a quote is in the middle of a value, or is not closed; want numbers separated by %ss%s",
				delimiterName(p.sep), p.hint(line, false)))
			continue
		}
		var err error
		switch p.ops[n] {
		case opNumber, opWide:
			err = p.number(value, p.ops[n] == opWide)
		case opText, opGroup:
			err = p.text(value, texts, placeIn(line, column, p.line))
			texts++
		case opLabel:
			y, err = p.class(value, placeIn(line, column, p.line))
		case opTarget:
			y, err = p.target(value)
		}
		if err != nil {
			bad = newFault(line, column, fmt.Errorf("%w%s", err, p.hintValue(line, value, isFirst, n)))
		}
	}
	switch {
	case n != len(p.ops):
		p.out.x, p.out.wide, p.out.group = p.out.x[:kept], p.out.wide[:wide], p.out.group[:group]
		return &fault{0, 0, fmt.Errorf("%d values, want %d (%d features and the %s)%s", n, len(p.ops), len(p.ops)-1, p.labelWord(),
			p.hint(line, isFirst))}
	case bad != nil:
		return bad
	}
	p.out.y = append(p.out.y, y)
	return nil
}

// number appends the number of a field.
func (p *parser) number(field string, wide bool) error {
	if text.IsMissing(field) && p.Missing == MissingMean {
		p.out.missing++
		p.out.x = append(p.out.x, float32(math.NaN()))
		if wide {
			p.out.wide = append(p.out.wide, math.NaN())
		}
		return nil
	}
	field, err := p.withPoint(field)
	if err != nil {
		return err
	}
	if wide {
		v, ok := text.Decimal(field)
		if p.Scale != 0 {
			v /= p.Scale
		}
		if ok && !math.IsInf(v, 0) {
			p.out.x, p.out.wide = append(p.out.x, 0), append(p.out.wide, v)
			return nil
		}
	}
	v, err := text.ParseValue(field, p.Scale)
	if err != nil {
		return err
	}
	if wide { // float64 has no such number, but float32 has
		p.out.wide = append(p.out.wide, float64(v))
	}
	p.out.x = append(p.out.x, v)
	return nil
}

// withPoint is a number with a point where the files have a decimal comma.
func (p *parser) withPoint(field string) (string, error) {
	if p.point != ',' {
		return field, nil
	}
	if plain, ok := text.WithPoint(field); ok {
		return plain, nil
	}
	if strings.Contains(field, ".") {
		return "", fmt.Errorf("value %s has a decimal point, but data.decimal is comma", files.Clip(field))
	}
	return field, nil
}

// isNoText says whether a text stands for a missing value in a column of texts, where None and missing may be meant.
func isNoText(field string) bool {
	switch strings.ToLower(field) {
	case "", "na", "n/a", "#n/a", "nan", "null", "?":
		return true
	}
	return false
}

// text appends the number of a text.
func (p *parser) text(field string, k int, where fault) error {
	if p.texts[k].at < 0 && isNoText(field) {
		return fmt.Errorf("the value of column %s, which groups the rows, is missing (%s); remove the row", p.name(p.texts[k].column),
			files.Clip(field))
	}
	if isNoText(field) {
		if p.Missing != MissingMean {
			return fmt.Errorf("the value of column %s is missing (%s); set data.missing: mean, which makes all of its columns 0, or remove the row",
				p.name(p.texts[k].column), files.Clip(field))
		}
		p.out.missing++
		p.out.x = append(p.out.x, -1)
		return nil
	}
	if err := text.CheckUTF8("value", field); err != nil {
		return err
	}
	number, isNew := p.seen[k].Add(field)
	if isNew {
		p.out.news[k] = append(p.out.news[k], fresh{p.seen[k].Names[number], where})
	}
	if p.texts[k].at < 0 {
		p.out.group = append(p.out.group, number)
		return nil
	}
	p.out.x = append(p.out.x, float32(number))
	return nil
}

// target is the bits of a number to predict.
func (p *parser) target(field string) (int32, error) {
	if text.IsMissing(field) {
		return 0, fmt.Errorf("the target is missing (%s); remove the row", files.Clip(field))
	}
	plain, err := p.withPoint(field)
	if err != nil {
		return 0, err
	}
	v, err := text.ParseValue(plain, 0)
	if err != nil {
		return 0, fmt.Errorf("target: %w", err)
	}
	return int32(math.Float32bits(v)), nil
}

// class is the number of a class.
func (p *parser) class(field string, where fault) (int32, error) {
	k := len(p.texts)
	v, isNumber := text.Decimal(field)
	switch {
	case isNumber && (v != math.Trunc(v) || math.IsInf(v, 0)):
		return 0, fmt.Errorf("label %s is not a whole number: classes are; name the column of the class, as in data.label: last, "+
			"or set data.task: regress if it is a number to predict",
			files.Clip(field))
	case isNumber && p.Classes > 0 && v >= float64(p.Classes):
		return 0, fmt.Errorf("label %.6g is out of range, must be 0 to %d", v, p.Classes-1)
	case isNumber && math.Abs(v) >= classes.Max:
		return 0, fmt.Errorf("label %.9g is out of range, must be %d to %d; number the classes from 0, without gaps", v, 1-classes.Max,
			classes.Max-1)
	case isNumber:
		if p.out.firstNumber == nil {
			p.out.firstNumber = &fresh{strings.Clone(field), where}
		}
		return int32(v), nil
	case text.IsMissing(field):
		return 0, fmt.Errorf("the class is missing (%s); remove the row", files.Clip(field))
	}
	if err := text.CheckUTF8("class", field); err != nil {
		return 0, err
	}
	number, isNew := p.seen[k].Add(field)
	if isNew {
		p.out.news[k] = append(p.out.news[k], fresh{p.seen[k].Names[number], where})
	}
	if p.out.firstText == nil {
		p.out.firstText = &fresh{p.seen[k].Names[number], where}
	}
	return number, nil
}

// place is a line and a column for messages.
func place(line, column int) string {
	if column == 0 {
		return strconv.Itoa(line)
	}
	return fmt.Sprintf("%d:%d", line, column)
}
