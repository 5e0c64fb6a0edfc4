package dataset

import (
	"fmt"
	"slices"
	"strings"
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
