// Package foreign shows texts that anybody may have written: those of files in a folder that others can write, and of the
// environment. A terminal obeys what some characters in them say, and people copy the commands that a message proposes.
package foreign

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// most is the longest text, in bytes, that is shown whole.
const most = 200

// Text is a text as a message shows it: as it is where it is short and can be seen whole, else between quotes, with
// escapes, and cut.
func Text(s string) string {
	switch {
	case len(s) > most:
		cut := s[:most]
		for !utf8.RuneStart(s[len(cut)]) {
			cut = cut[:len(cut)-1]
		}
		return strconv.QuoteToGraphic(cut) + "..."
	case s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, unseen):
		return strconv.QuoteToGraphic(s)
	}
	return s
}

// Texts shows several.
func Texts(all []string) []string {
	shown := make([]string, len(all))
	for i, s := range all {
		shown[i] = Text(s)
	}
	return shown
}

var wordForm = regexp.MustCompile(`^[A-Za-z0-9_.:/+@%-]+$`)

// Word is Text of a name, which has no blanks and means nothing to a shell: what is none stands between quotes.
func Word(s string) string {
	if len(s) <= most && wordForm.MatchString(s) {
		return s
	}
	if shown := Text(s); shown != s {
		return shown
	}
	return strconv.QuoteToGraphic(s)
}

// unseen is a character that does something else than show itself: a control character, or one that turns the direction of
// writing.
func unseen(r rune) bool { return !unicode.IsGraphic(r) }

// Visible writes out what is unseen in a message, in which line breaks and tabs are its own. It is for the way to the
// terminal: whatever a message has in it, it gives no commands there.
func Visible(message string) string {
	hidden := func(r rune) bool { return unseen(r) && r != '\n' && r != '\t' }
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

// IsJob says whether a text is the number of a job, as batch systems give it: digits, with a task of an array (12_3) or a part
// of a job of several (12+1) behind them. It may stand in a command.
func IsJob(s string) bool { return jobNumber.MatchString(s) }
