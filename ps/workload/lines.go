package workload

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

// lineMax is the longest line of a csv or LIBSVM file, in bytes.
const lineMax = 64 << 20

// lines cuts a text into lines, which end with LF, CR LF or CR.
type lines struct {
	src  *source
	r    *bufio.Reader
	n    int    // the current line, from 1
	most int    // bytes of a line
	want string // what a line should be, for the error of one that is too long
	long []byte // a line that is not in one piece in r
	cr   bool   // the last line ended with CR: an LF behind it belongs to its end
	open bool   // the last line had no end
}

// newLines reads a text without the byte order mark that some editors and spreadsheets put before it.
func newLines(src *source, in *reading, most int, want string) *lines {
	most = int(min(int64(most), max(1<<16, in.most/8)))
	l := &lines{src: src, r: bufio.NewReaderSize(src, 1<<16), most: most, want: want}
	if mark, _ := l.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		l.skip(len(mark))
	}
	return l
}

// skip passes over bytes that have been peeked at, which cannot fail.
func (l *lines) skip(n int) { _, _ = l.r.Discard(n) }

// next gives the next line without its end, until it is called again; io.EOF behind the last.
func (l *lines) next() ([]byte, error) {
	if l.cr {
		l.cr = false
		if b, _ := l.r.Peek(1); len(b) == 1 && b[0] == '\n' {
			l.skip(1)
		}
	}
	l.n++
	l.long = l.long[:0]
	for {
		if _, err := l.r.Peek(1); err == io.EOF && len(l.long) > 0 {
			l.open = true
			return l.long, l.check(l.long)
		} else if err != nil {
			return nil, err // io.EOF, or the source has named the file
		}
		chunk, _ := l.r.Peek(l.r.Buffered())
		at := bytes.IndexByte(chunk, '\n')
		if at < 0 {
			at = len(chunk)
		}
		if cr := bytes.IndexByte(chunk[:at], '\r'); cr >= 0 {
			at, l.cr = cr, true
		}
		if len(l.long)+at > l.most {
			return nil, fmt.Errorf("data: %s: line %d is longer than %d bytes; %s", l.src.path, l.n, l.most, l.want)
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

// check refuses what other programs take for the end of a line, so that none reads other rows from the file than this one,
// and what no text has.
func (l *lines) check(line []byte) error {
	for i, c := range line {
		switch {
		case c == '\t' || c >= ' ' && c < 0x7f:
			continue
		case c == 0:
			return fmt.Errorf("data: %s:%d:%d: a byte 0: this is no text, or one in UTF-16; save it as UTF-8", l.src.path, l.n, i+1)
		case c <= 0x7f:
			return fmt.Errorf("data: %s:%d:%d: the control character U+%04X; end lines with LF, CR LF or CR, and take other control characters out", l.src.path, l.n, i+1, c)
		}
		for _, end := range []rune{'\u0085', '\u2028', '\u2029'} {
			if bytes.HasPrefix(line[i:], []byte(string(end))) {
				return fmt.Errorf("data: %s:%d:%d: U+%04X, which some programs take for the end of a line; end lines with LF, CR LF or CR", l.src.path, l.n, i+1, end)
			}
		}
	}
	return nil
}

// end is called behind the last line.
func (l *lines) end(in *reading) {
	if l.open {
		in.notes = append(in.notes, fmt.Sprintf("data: %s: line %d, the last, has no newline at its end: the file may have been cut short, in the middle of a number perhaps; compare it with its source, or end the line if it is whole", l.src.path, l.n-1))
	}
}

// blank says whether a line holds nothing.
func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// firstWord cuts the first word off a text.
func firstWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, " \t")
	if at := strings.IndexAny(text, " \t"); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}
