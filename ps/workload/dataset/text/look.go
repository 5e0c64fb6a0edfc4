package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fluentps/ps/workload/dataset/files"
)

// What a line that cannot be read looks like. Advice follows from the line itself and never from its number alone: the first line
// of a file is a header only if it has words where the others have numbers.

// IsWord says whether a field is a name, such as a header has: neither a number in any syntax nor a sign for a missing value.
func IsWord(field string) bool {
	field = TrimQuotes(strings.TrimSpace(field))
	_, _, number := MeantNumber(field)
	return strings.ContainsFunc(field, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' || r > 0x7f }) &&
		!number && !IsMissing(field) && !IsInfinite(field) && !strings.ContainsAny(field, ":%")
}

// IsHeader says whether fields are names of columns: there are words among them, and no number.
func IsHeader(fields []string) bool {
	words := false
	for _, f := range fields {
		if _, number := Decimal(TrimQuotes(strings.TrimSpace(f))); number && strings.TrimSpace(f) != "" {
			return false
		}
		words = words || IsWord(f)
	}
	return words
}

// IsMatrixMarket says whether a line belongs to the head of a file in MatrixMarket's form.
func IsMatrixMarket(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "%") }

const MatrixMarketHint = "; the file has the head of MatrixMarket: set data.set: ratings, if its entries are ratings"

// OtherSeparator describes a line of numbers that something else than commas separates.
func OtherSeparator(line string) (hint string, ok bool) {
	for _, s := range []Separator{{";", "semicolons"}, {"\t", "tabs"}, {"|", "bars"}, {" ", "spaces"}} {
		fields := s.Fields(strings.TrimSpace(line), nil)
		commas := 0
		numbers := len(fields) > 1 && !slices.ContainsFunc(fields, func(f string) bool {
			_, number := Decimal(TrimQuotes(f))
			_, comma := WithPoint(TrimQuotes(f))
			if comma {
				commas++
			}
			return !number && !comma
		})
		switch {
		case numbers && commas > 0:
			return fmt.Sprintf("; %s separate the values, which have decimal commas: set data.delimiter: %s and data.decimal: comma", s.Name,
				strings.TrimSuffix(s.Name, "s")), true
		case numbers:
			return fmt.Sprintf("; %s separate the values, and commas those of other lines: write commas in their place, or set "+
				"data.delimiter: %s if all lines have them", s.Name, strings.TrimSuffix(s.Name, "s")), true
		}
	}
	return "", false
}

// QuotedCommas says whether a line has numbers with decimal commas in quotes.
func QuotedCommas(line string) bool {
	for i, part := range strings.Split(line, `"`) {
		if _, comma := WithPoint(strings.TrimSpace(part)); comma && i%2 == 1 {
			return true
		}
	}
	return false
}

// LooksLIBSVM says whether a line is a label and entries of index:value.
func LooksLIBSVM(line string) bool {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return false
	}
	if _, number := Decimal(fields[0]); !number {
		return false
	}
	return !slices.ContainsFunc(fields[1:], func(f string) bool {
		index, value, found := strings.Cut(f, ":")
		_, number := Decimal(value)
		return !found || !Digits(index) || !number
	})
}

// Separator separates the fields of a file of ratings. The whole file has one separator. A line is cut at each occurrence, so that an
// empty field counts as a field and the next one does not take its place.
type Separator struct{ Text, Name string }

// separators are in the order in which a line is searched for them. A later one may occur within the fields of an earlier one.
var separators = []Separator{{"::", "double colons"}, {"\t", "tabs"}, {";", "semicolons"}, {",", "commas"}, {" ", "spaces"}}

// SeparatorOf is the separator of a file that begins with this line.
func SeparatorOf(line string) *Separator {
	for i := range separators {
		if strings.Contains(line, separators[i].Text) {
			return &separators[i]
		}
	}
	return &separators[len(separators)-1]
}

// Fields appends the fields of a line, without the spaces around them. Several spaces count as one separator. A separator in quotes belongs
// to its field.
func (s *Separator) Fields(line string, to []string) []string {
	for more := true; more; {
		if s.Text == " " {
			line = strings.Trim(line, " ")
		}
		from := 0
		if start := len(line) - len(strings.TrimLeft(line, " ")); strings.HasPrefix(line[start:], `"`) {
			if end := strings.IndexByte(line[start+1:], '"'); end >= 0 {
				from = start + end + 2
			}
		}
		var quoted, rest string
		quoted, line = line[:from], line[from:]
		rest, line, more = strings.Cut(line, s.Text)
		to = append(to, strings.Trim(quoted+rest, " "))
	}
	return to
}

// Digits says whether a text consists of one or more digits.
func Digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// TrimQuotes removes the quotes around a field.
func TrimQuotes(field string) string {
	if len(field) >= 2 && field[0] == '"' && field[len(field)-1] == '"' {
		return field[1 : len(field)-1]
	}
	return field
}

// CheckUTF8 fails for a text that is not in UTF-8.
func CheckUTF8(what, field string) error {
	if !utf8.ValidString(field) {
		return fmt.Errorf("%s %s is not in UTF-8; save the file as UTF-8", what, files.Clip(field))
	}
	return nil
}

// Counted is a number of things in words: 1 line, 2 lines.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
