package durable

import (
	"bytes"
	"errors"
	"math"
	"os"
)

// AppendLines opens a file of lines to append to it, and makes it if there is none. A kill can tear the last line of a file, and the next
// line would be joined to what is left of it: so what is torn is cut off.
func (f *Folder) AppendLines(name string) (*os.File, error) {
	file, _, err := f.AppendLinesAt(name, math.MaxInt64)
	return file, err
}

// AppendLinesAt is AppendLines to the first size bytes of a file: it is cut off behind the last whole line in these. end is its new size.
func (f *Folder) AppendLinesAt(name string, size int64) (file *os.File, end int64, err error) {
	if file, err = f.Append(name); err != nil {
		return nil, 0, err
	}
	if end, err = wholeLines(file, size); err == nil {
		err = file.Truncate(end)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, end, nil
}

// wholeLines returns the end of the last whole line in the first size bytes of a file, which may be shorter. It needs the memory
// of one block, however large the file or size is.
func wholeLines(file *os.File, size int64) (end int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 1<<16)
	for end = max(0, min(size, info.Size())); end > 0; {
		part := block[:min(end, int64(len(block)))]
		from := end - int64(len(part))
		if _, err := file.ReadAt(part, from); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
		end = from
	}
	return 0, nil
}
