// Package foreign displays texts that any user may have written: texts of files in a folder that others can write, and
// of the environment. A terminal obeys control characters in them, and users copy the commands that a message proposes.
package foreign

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textMax is the length of the longest text that is shown whole, in bytes.
const textMax = 200

// Text returns a text as messages show it: unchanged if it is short and fully visible, otherwise quoted, escaped and
// shortened.
func Text(s string) string {
	switch {
	case len(s) > textMax:
		cut := s[:textMax]
		for !utf8.RuneStart(s[len(cut)]) {
			cut = cut[:len(cut)-1]
		}
		return strconv.QuoteToGraphic(cut) + "..."
	case s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, isInvisible):
		return strconv.QuoteToGraphic(s)
	}
	return s
}

// Texts applies Text to each text.
func Texts(all []string) []string {
	shown := make([]string, len(all))
	for i, s := range all {
		shown[i] = Text(s)
	}
	return shown
}

var wordForm = regexp.MustCompile(`^[A-Za-z0-9_.:/+@%-]+$`)

// Word is Text for a name, which has no blanks and no meaning to a shell. Any other text is quoted.
func Word(s string) string {
	if len(s) <= textMax && wordForm.MatchString(s) {
		return s
	}
	if shown := Text(s); shown != s {
		return shown
	}
	return strconv.QuoteToGraphic(s)
}

// isInvisible returns whether a character does anything but display itself: a control character, or one that changes
// the direction of writing.
func isInvisible(r rune) bool { return !unicode.IsGraphic(r) }

// Visible escapes the invisible characters of a message other than its line breaks and tabs. Messages go through it on
// the way to the terminal, so that no part of one is a command to the terminal.
func Visible(message string) string {
	hidden := func(r rune) bool { return isInvisible(r) && r != '\n' && r != '\t' }
	if utf8.ValidString(message) && !strings.ContainsFunc(message, hidden) {
		return message
	}
	var b strings.Builder
	for len(message) > 0 {
		r, n := utf8.DecodeRuneInString(message)
		switch part := message[:n]; {
		case r == utf8.RuneError && n == 1, hidden(r):
			quoted := strconv.QuoteToASCII(part)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(part)
		}
		message = message[n:]
	}
	return b.String()
}

var jobNumber = regexp.MustCompile(`^[0-9]{1,20}([_+][0-9]{1,20})?$`)

// IsJob returns whether a text is a job number as batch systems give it: digits, perhaps with a task of an array (12_3)
// or a part of a heterogeneous job (12+1). Such a text may be part of a command.
func IsJob(s string) bool { return jobNumber.MatchString(s) }
