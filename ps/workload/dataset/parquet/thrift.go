package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// walker reads a structure of Thrift's compact protocol, in which Parquet writes its footer and the headers of pages, without taking
// memory: it fails where a length is more than the bytes that are left, so that the library is not asked to take memory for it.
type walker struct {
	b    []byte
	at   int
	seen func(path []int16, value int64) // of the numbers and truth values in structures; path are the numbers of their fields
	path []int16

	structures int // in lists: the library makes an element of each
}

// structuresMost is the most structures in lists: a footer of 64 MiB with its columns of its groups of rows has fewer. One that says to
// have more, of a byte each, would take gigabytes.
const structuresMost = 1 << 19

// The types of values.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// depthMost is how deep structures may be within others: those of Parquet are no deeper than 8.
const depthMost = 32

var errShort = fmt.Errorf("it ends within a structure: %w", io.ErrUnexpectedEOF)

func (w *walker) byte() (byte, error) {
	if w.at == len(w.b) {
		return 0, errShort
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *walker) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.at:])
	if n == 0 {
		return 0, errShort
	}
	if n < 0 {
		return 0, errors.New("a number of more than 64 bits")
	}
	w.at += n
	return v, nil
}

func (w *walker) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errShort
	}
	w.at += int(n)
	return nil
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// structure reads the fields of a structure.
func (w *walker) structure(depth int) error {
	if depth > depthMost {
		return fmt.Errorf("structures are within each other more than %d times", depthMost)
	}
	last := int16(0)
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if delta := int16(head >> 4); delta > 0 {
			last += delta
		} else {
			v, err := w.varint()
			if err != nil {
				return err
			}
			last = int16(zigzag(v))
		}
		w.path = append(w.path, last)
		if kind := head & 15; kind == thriftTrue || kind == thriftFalse {
			w.tell(int64(thriftFalse - kind))
		} else if err := w.value(kind, depth); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
}

func (w *walker) tell(v int64) {
	if w.seen != nil {
		w.seen(w.path, v)
	}
}

func (w *walker) value(kind byte, depth int) error {
	switch {
	case kind == thriftTrue, kind == thriftFalse, kind == thriftByte: // of a list
		return w.skip(1)
	case kind >= thriftI16 && kind <= thriftI64:
		v, err := w.varint()
		if err == nil {
			w.tell(zigzag(v))
		}
		return err
	case kind == thriftDouble:
		return w.skip(8)
	case kind == thriftUUID:
		return w.skip(16)
	case kind == thriftBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case kind == thriftList, kind == thriftSet:
		return w.list(depth)
	case kind == thriftMap:
		return w.pairs(depth)
	case kind == thriftStruct:
		return w.structure(depth + 1)
	}
	return fmt.Errorf("a value of the kind %d, which Thrift has not", kind)
}

func (w *walker) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	return w.items(n, depth, head&15)
}

func (w *walker) pairs(depth int) error {
	n, err := w.varint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.byte()
	if err != nil {
		return err
	}
	return w.items(n, depth, kinds>>4, kinds&15)
}

// items reads n times values of these kinds. Each has at least a byte.
func (w *walker) items(n uint64, depth int, kinds ...byte) error {
	if n > uint64(len(w.b)-w.at) {
		return errShort
	}
	seen := w.seen
	w.seen = nil // numbers of lists are nobody's fields
	defer func() { w.seen = seen }()
	for range n {
		if kinds[0] == thriftStruct {
			if w.structures++; w.structures > structuresMost {
				return fmt.Errorf("more than %d structures in lists", structuresMost)
			}
		}
		for _, kind := range kinds {
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
