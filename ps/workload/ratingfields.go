package workload

import (
	"fmt"
	"slices"
	"strings"
)

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
		comma = comma || is && i < ratingCols
	}
	switch {
	case isMatrixMarket(line):
		return matrixMarketHint
	case comma && len(fields) >= ratingCols:
		return "" // the error of the value names the comma
	case first && isHeader(fields[:min(len(fields), ratingCols)]):
		return "; remove the header line"
	case first:
		return ""
	case len(fields) < ratingCols ||
		slices.ContainsFunc(fields[:ratingCols], func(f string) bool { return strings.ContainsAny(f, "\t;, ") || strings.Contains(f, "::") }):
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
