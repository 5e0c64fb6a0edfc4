package csv

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/ps/workload/dataset/text"
)

// hintValue guesses the mistake in a value, as a text that begins with a semicolon.
func (p *parser) hintValue(line, field string, isFirst bool, n int) string {
	if p.ops[n] == opText || p.ops[n] == opGroup {
		return ""
	}
	if hint := p.hint(line, isFirst); hint != "" {
		return hint
	}
	isNumber := p.ops[n] == opNumber || p.ops[n] == opWide
	_, comma := text.WithPoint(field)
	_, isDecimal := text.Decimal(field)
	switch {
	case p.ops[n] == opTarget && !isDecimal && text.IsWord(field):
		return "; name the column of the target, as in data.label: last, or leave out data.task if it has classes"
	case isNumber && text.IsMissing(field):
		return "; or set data.missing: mean"
	case isNumber && comma && p.sep != ',':
		return "; or set data.decimal: comma"
	case isNumber && !isDecimal && len(p.wordy) > 1 && slices.Contains(p.wordy, n):
		return p.hintWordy()
	case isNumber && !isDecimal:
		return fmt.Sprintf("; if column %s has texts, write data.columns: {%s: onehot}, or leave it out by data.drop: [%s]", p.name(n),
			p.name(n), p.name(n))
	}
	return ""
}

// hint guesses the mistake in a line, as a text that begins with a semicolon. It returns "" without a guess.
func (p *parser) hint(line string, isFirst bool) string {
	if text.IsMatrixMarket(line) {
		return text.MatrixMarketHint
	}
	if text.LooksLIBSVM(line) {
		return "; it looks like libsvm: set data.set: libsvm"
	}
	if text.QuotedCommas(line) && p.point != ',' {
		return "; a number in quotes has a decimal comma: set data.decimal: comma, or write a point for it"
	}
	if hint, ok := text.OtherSeparator(line); ok && p.sep == ',' {
		return hint
	}
	words, others := 0, 0
	for i, f := range fieldsOf(line, p.sep) {
		switch {
		case i == p.label:
		case text.IsWord(f):
			words++
		default:
			others++
		}
	}
	if isFirst && p.names == nil && words > others {
		return "; if the first line is a header, set data.header: true"
	}
	return ""
}

// wordyMost is how many columns a hint names.
const wordyMost = 12

// hintWordy names all columns that have texts, so that they are settled at once.
func (s *scheme) hintWordy() string {
	var kinds, names []string
	for _, column := range s.wordy {
		if len(names) == wordyMost {
			return fmt.Sprintf("; %d columns have texts, such as %s: write data.columns: {\"*\": onehot} and what the others are, or leave them "+
				"out by data.drop", len(s.wordy), strings.Join(names[:3], ", "))
		}
		names, kinds = append(names, s.name(column)), append(kinds, s.name(column)+": onehot")
	}
	return fmt.Sprintf("; these columns have texts: write data.columns: {%s}, or leave out some by data.drop: [%s]", strings.Join(kinds, ", "),
		strings.Join(names, ", "))
}

// wordyIn finds the columns of numbers of which more than half of the first values are texts.
func (s *scheme) wordyIn(lines []string, d *dialect) (columns []int) {
	words, values := make([]int, len(s.ops)), make([]int, len(s.ops))
	if d.header != nil && len(lines) > 0 {
		lines = lines[1:]
	}
	for _, line := range lines[:min(len(lines), linesToJudge)] {
		fields := fieldsOf(line, d.sep)
		if len(fields) != len(s.ops) {
			continue
		}
		for i, f := range fields {
			if f = strings.TrimSpace(f); text.IsMissing(f) {
				continue
			}
			if values[i]++; !isNumberWith(f, d.point) {
				words[i]++
			}
		}
	}
	for i, op := range s.ops {
		if (op == opNumber || op == opWide) && 2*words[i] > values[i] {
			columns = append(columns, i)
		}
	}
	return columns
}
