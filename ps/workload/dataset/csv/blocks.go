package csv

import (
	"bytes"
	"fmt"
	"io"

	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// blocks cuts a file into blocks of whole records.
type blocks struct {
	src   *files.Source
	size  int    // of a block, in bytes
	most  int    // the most bytes of a record
	carry []byte // the beginning of a record, which goes on in the next block
	ended bool
	open  bool // the last line has no end
	line  int  // the number of the line with which the next block begins
	last  int  // the number of the last line, once it has been read
}

// blockBytes is the size of a block, in bytes.
const blockBytes = 256 << 10

func newBlocks(src *files.Source, in *files.Reading) *blocks {
	return &blocks{
		src: src, line: 1,
		size: int(min(blockBytes, max(1<<14, in.Most/64))), most: int(min(text.LineMax, max(1<<16, in.Most/8))),
	}
}

// mark is the byte order mark that some editors and spreadsheets write first.
const mark = "\xef\xbb\xbf"

// next reads a block into the memory of b, which may grow, and says with which line it begins. After the last one it returns io.EOF.
func (k *blocks) next(b []byte) (block []byte, line int, err error) {
	if k.ended {
		return nil, 0, io.EOF
	}
	if cap(b) < k.size {
		b = make([]byte, 0, k.size)
	}
	b, line = append(b[:0], k.carry...), k.line
	for {
		n, err := io.ReadFull(k.src, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if k.line == 1 && k.carry == nil {
			b = append(b[:0], bytes.TrimPrefix(b, []byte(mark))...)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			k.ended = true
			if k.last = line + lineEnds(b); len(b) > 0 {
				k.open = b[len(b)-1] != '\n' && b[len(b)-1] != '\r'
			}
			if len(b) == 0 {
				return nil, 0, io.EOF
			}
			return b, line, nil
		case err != nil:
			return nil, 0, err
		}
		if at := k.cut(b); at > 0 {
			k.carry = append(k.carry[:0], b[at:]...)
			k.line += lineEnds(b[:at])
			return b[:at], line, nil
		}
		if len(b) > k.most {
			if bytes.IndexByte(b, '"') >= 0 {
				return nil, 0, fmt.Errorf("data: %s: line %d, or one of those after it, has a quote that is not closed within %d bytes", k.src.Path,
					line, k.most)
			}
			return nil, 0, fmt.Errorf("data: %s: line %d is longer than %d bytes; want numbers separated by commas", k.src.Path, line, k.most)
		}
		b = append(make([]byte, 0, min(2*cap(b), k.most+k.size)), b...)
	}
}

// cut is where the last record of a block begins, which may go on after the block; 0: there is no other record before it.
func (k *blocks) cut(b []byte) int {
	if bytes.IndexByte(b, '"') < 0 {
		if at := bytes.LastIndexByte(b, '\n'); at >= 0 {
			return at + 1
		}
		return bytes.LastIndexByte(b[:len(b)-1], '\r') + 1
	}
	for at := 0; ; {
		rest := b[at:]
		_, next := lineEnd(rest)
		if next == 0 || next == len(rest) && rest[next-1] == '\r' { // a line feed may follow
			return at
		}
		at += next
	}
}

// lineEnds counts the ends of lines: LF, CR LF and CR.
func lineEnds(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if cr := bytes.Count(b, []byte{'\r'}); cr > 0 {
		n += cr - bytes.Count(b, []byte("\r\n"))
	}
	return n
}
