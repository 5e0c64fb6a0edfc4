// Package tokens reads a text that has been cut into tokens: one flat file with the number of each, as nanoGPT's train.bin. The file is
// mapped. A row is a window of tokens and the one behind it, which is its class.
//
//	f, err := tokens.Open(path, tokens.Uint16)
//	t, err := f.Table(tokens.Window{Length: 8, Stride: 1}, 0, f.Len())
package tokens

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"sync/atomic"

	"fluentps/ps/workload/dataset/mapped"
)

// Type is how a token is stored, the lower byte first.
type Type string

// The types of tokens; a text itself is tokens of Uint8, a byte each.
const (
	Uint8  Type = "uint8"
	Uint16 Type = "uint16"
	Uint32 Type = "uint32"
)

// size is that of a token in bytes.
func (t Type) size() int {
	switch t {
	case Uint8:
		return 1
	case Uint16:
		return 2
	}
	return 4
}

// Window says which rows a file has: row r is Length tokens from token r*Stride on, and the token behind them.
type Window struct{ Length, Stride int }

// Most is the most different tokens: their numbers are classes.
const Most = 1 << 20

// File is a mapped file of tokens.
type File struct {
	Path string
	Size int64
	file *mapped.File
	typ  Type
	sum  string
}

// Open maps a file. Errors name it.
func Open(path string, typ Type) (*File, error) {
	m, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	if n := int64(typ.size()); m.Size%n != 0 {
		_ = m.Close() // it was only mapped
		return nil, fmt.Errorf("%s has %d bytes, which are no whole number of tokens of %s; set data.tokens.type to how they are stored", path,
			m.Size, typ)
	}
	f := &File{Path: path, Size: m.Size, file: m, typ: typ}
	f.sum, err = m.Sum()
	if err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Sum identifies the file by its size and blocks of it.
func (f *File) Sum() string { return f.sum }

// Name is the last element of the path.
func (f *File) Name() string { return filepath.Base(f.Path) }

// Len is the number of tokens.
func (f *File) Len() int64 { return f.Size / int64(f.typ.size()) }

// at is a token. Whoever calls it looks for faults of the file.
func (f *File) at(i int64) uint32 {
	b := f.file.Bytes
	switch f.typ {
	case Uint8:
		return uint32(b[i])
	case Uint16:
		return uint32(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return binary.LittleEndian.Uint32(b[4*i:])
}

// Largest reads the whole file, and returns the largest token and its place. It fails if a token is not below limit.
func (f *File) Largest(limit int) (largest int, err error) {
	defer mapped.Guarding(&err)()
	most, at := uint32(0), int64(0)
	for i := range f.Len() {
		if v := f.at(i); v > most {
			most, at = v, i
		}
	}
	if int64(most) >= int64(limit) {
		return 0, fmt.Errorf("%s: token %d is %d, must be 0 to %d; are the tokens stored as %s (data.tokens.type)?", f.Path, at, most, limit-1,
			f.typ)
	}
	return int(most), nil
}

// Table is rows of a file. Each is the window as a column for each place and token, which is 1 if the token stands there.
type Table struct {
	file       *File
	window     Window
	vocabulary int
	from, rows int64
	fault      atomic.Pointer[error]
}

// Table makes a table of the tokens from to to-1, of which there are vocabulary different ones.
func (f *File) Table(w Window, vocabulary int, from, to int64) (*Table, error) {
	t := &Table{file: f, window: w, vocabulary: vocabulary, from: from}
	if t.rows = (to - from - int64(w.Length) + int64(w.Stride) - 1) / int64(w.Stride); to-from <= int64(w.Length) {
		return nil, fmt.Errorf("%s: %d tokens, fewer than a window of %d and the one behind it; lower data.tokens.window", f.Path, to-from,
			w.Length)
	}
	if t.rows > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d rows, at most %d; raise data.tokens.stride", f.Path, t.rows, math.MaxInt32)
	}
	return t, nil
}

func (t *Table) Rows() int { return int(t.rows) }

func (t *Table) Cols() int { return t.window.Length * t.vocabulary }

// Mapped is how many bytes of the file the rows are.
func (t *Table) Mapped() int64 {
	return ((t.rows-1)*int64(t.window.Stride) + int64(t.window.Length) + 1) * int64(t.file.typ.size())
}

func (t *Table) start(row int32) int64 { return t.from + int64(row)*int64(t.window.Stride) }

// Label is the token behind the window of a row.
func (t *Table) Label(row int) (class int32) {
	t.guard(func() { class = t.token(t.start(int32(row)) + int64(t.window.Length)) })
	return class
}

// token is a token. It may be beyond the vocabulary, if the user gave that, or if the file was written to while it is in use.
func (t *Table) token(at int64) int32 {
	v := t.file.at(at)
	if int64(v) >= int64(t.vocabulary) {
		t.fail(fmt.Errorf("token %d is %d, and there are %d different ones, from 0; leave out data.tokens.vocabulary, or set it as large as "+
			"needed; does another program write to the file?", at, v, t.vocabulary))
		return 0
	}
	return int32(v)
}

func (t *Table) guard(read func()) {
	if err := mapped.Guard(read); err != nil {
		t.fail(err)
	}
}

// fail notes the first reason why rows cannot be read. What a batch then has is used by nobody.
func (t *Table) fail(err error) {
	err = fmt.Errorf("data: %s: %w", t.file.Path, err)
	t.fault.CompareAndSwap(nil, &err)
}

// Failure is why some row could not be read; nil: all could.
func (t *Table) Failure() error {
	if err := t.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Fill gathers rows: windows into x (len(rows) x Cols, row-major), the tokens behind them into y.
func (t *Table) Fill(x []float32, y []int32, rows []int32) {
	clear(x[:len(rows)*t.Cols()])
	t.Entries(rows, func(i int, class int32) { y[i] = class }, func(i int, column int32) { x[i*t.Cols()+int(column)] = 1 })
}

// Entries calls label for each row, and put for the columns that are 1, ascending. i counts the rows.
func (t *Table) Entries(rows []int32, label func(i int, class int32), put func(i int, column int32)) {
	t.guard(func() {
		for i, r := range rows {
			at := t.start(r)
			for k := range t.window.Length {
				put(i, int32(k*t.vocabulary)+t.token(at+int64(k)))
			}
			label(i, t.token(at+int64(t.window.Length)))
		}
	})
}

// Pages calls part for the parts of the file that have these rows.
func (t *Table) Pages(rows []int32, part func(b []byte)) {
	size := int64(t.file.typ.size())
	for _, r := range rows {
		at := t.start(r)
		part(t.file.file.Bytes[at*size : (at+int64(t.window.Length)+1)*size])
	}
}
