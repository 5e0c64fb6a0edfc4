// Package text has the rules that all text files of data share: line ends, numbers, quotes and signs of missing values.
package text

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"fluentps/ps/workload/dataset/files"
)

// LineMax is the longest line of a csv or LIBSVM file, in bytes.
const LineMax = 64 << 20

// Lines cuts a text into lines, which end with LF, CR LF or CR.
type Lines struct {
	N int           // number of the current line, from 1
	R *bufio.Reader // what follows

	src  *files.Source
	most int    // the most bytes of a line
	want string // the form of a line, for the error about a line that is too long
	long []byte // a line that is longer than the buffer of R
	cr   bool   // the last line ended with CR, so a following LF belongs to its end
	open bool   // the last line had no end
}

// NewLines makes lines of a text. It skips the byte order mark that some editors and spreadsheets write first.
func NewLines(src *files.Source, in *files.Reading, most int, want string) *Lines {
	most = int(min(int64(most), max(1<<16, in.Most/8)))
	l := &Lines{src: src, R: bufio.NewReaderSize(src, 1<<16), most: most, want: want}
	if mark, _ := l.R.Peek(3); string(mark) == "\xef\xbb\xbf" {
		l.skip(len(mark))
	}
	return l
}

// skip discards bytes that have been peeked at, which cannot fail.
func (l *Lines) skip(n int) { _, _ = l.R.Discard(n) }

// Next returns the next line without its end. The line is valid until the next call. After the last line it returns io.EOF.
func (l *Lines) Next() ([]byte, error) {
	if l.cr {
		l.cr = false
		if b, _ := l.R.Peek(1); len(b) == 1 && b[0] == '\n' {
			l.skip(1)
		}
	}
	l.N++
	l.long = l.long[:0]
	for {
		if _, err := l.R.Peek(1); err == io.EOF && len(l.long) > 0 {
			l.open = true
			return l.long, l.check(l.long)
		} else if err != nil {
			return nil, err // io.EOF, or the source has named the file
		}
		chunk, _ := l.R.Peek(l.R.Buffered())
		at := bytes.IndexByte(chunk, '\n')
		if at < 0 {
			at = len(chunk)
		}
		if cr := bytes.IndexByte(chunk[:at], '\r'); cr >= 0 {
			at, l.cr = cr, true
		}
		if len(l.long)+at > l.most {
			return nil, fmt.Errorf("data: %s: line %d is longer than %d bytes; %s", l.src.Path, l.N, l.most, l.want)
		}
		ended := at < len(chunk)
		line := chunk[:at]
		if !ended || len(l.long) > 0 {
			l.long = append(l.long, line...)
			line = l.long
		}
		l.skip(min(at+1, len(chunk)))
		if ended {
			return line, l.check(line)
		}
	}
}

// check fails for characters that other programs take for the end of a line, because they would read other rows from the file. It
// also fails for characters that do not occur in text.
func (l *Lines) check(line []byte) error {
	for i, c := range line {
		if c == '\t' || c >= ' ' && c < 0x7f {
			continue
		}
		if what := Strange(string(line[i:min(len(line), i+4)])); what != "" {
			return fmt.Errorf("data: %s:%d:%d: %s", l.src.Path, l.N, i+1, what)
		}
	}
	return nil
}

// Strange describes the first character of a text, if it does not occur in a line of text, or if other programs take it for the end of a
// line; else it returns "".
func Strange(text string) string {
	switch c := text[0]; {
	case c == '\t' || c >= ' ' && c < 0x7f:
		return ""
	case c == 0:
		return "a byte 0: the file is not text, or is in UTF-16; save it as UTF-8"
	case c <= 0x7f:
		return fmt.Sprintf("the control character U+%04X; end lines with LF, CR LF or CR, and remove other control characters", c)
	}
	for _, end := range []rune{'\u0085', '\u2028', '\u2029'} {
		if strings.HasPrefix(text, string(end)) {
			return fmt.Sprintf("U+%04X, which some programs take for the end of a line; end lines with LF, CR LF or CR", end)
		}
	}
	return ""
}

// End is called after the last line. It notes that this line has no end.
func (l *Lines) End(in *files.Reading) {
	if l.open {
		NoteOpen(in, l.src.Path, l.N-1)
	}
}

// NoteOpen notes that the last line of a file has no end.
func NoteOpen(in *files.Reading, path string, line int) {
	in.Notes = append(in.Notes, fmt.Sprintf("data: %s: line %d, the last, has no newline at its end: the file may "+
		"have been cut short, even in the middle of a number; compare it with its source, or end the line if it is complete", path, line))
}

// Blank says whether a line holds only white space.
func Blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// FirstWord splits a text after its first word.
func FirstWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, " \t")
	if at := strings.IndexAny(text, " \t"); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}
