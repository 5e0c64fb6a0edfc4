// Package pack writes and reads one file with all rows of a set: sections of numbers as they are in memory, which are mapped, the checksum
// of each block of them, and an index in JSON.
//
//	offset 0     "fpspack1"
//	8            offset of the index, 8 bytes, little-endian
//	16           bytes of the index, which ends with the file, 8 bytes
//	24           SHA-256 of the index
//	64           who has made it, for people
//	4096         sections, each at a multiple of 4096, numbers little-endian
//	...          checksums: CRC-32C of each block of 262,144 bytes of each section, 4 bytes each, in the order of the sections
//	...          the index: where each section is, its type and its shape; what the set is, for who reads it
package pack

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	magic      = "fpspack1"
	headBytes  = 4096 // of the header, with zeros behind it
	align      = 4096 // of sections
	BlockBytes = 1 << 18
	indexMax   = 1 << 30 // so that a damaged header does not take all memory
	shapeMax   = 4       // dimensions of a section
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// machineIsBig is the order of bytes of this processor.
var machineIsBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// sizes are those of the types of sections, by NumPy's names.
var sizes = map[string]int64{"u1": 1, "i4": 4, "f4": 4, "i8": 8}

// Info is a section of the index.
type Info struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"` // u1, i4, f4 or i8
	Shape  []int64 `json:"shape"`
	Offset int64   `json:"offset"`
	Bytes  int64   `json:"bytes"`
}

// blocks is how many blocks the section has; the last one may be shorter.
func (i *Info) blocks() int64 { return (i.Bytes + BlockBytes - 1) / BlockBytes }

// index is the end of the file.
type index struct {
	Format     int             `json:"format"`
	BlockBytes int64           `json:"block_bytes"`
	Sections   []Info          `json:"sections"`
	Sums       sums            `json:"checksums"`
	Set        json.RawMessage `json:"set"`
}

// sums are the checksums of blocks.
type sums struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// check fails if an index does not fit a file in which it begins at an offset.
func (x *index) check(at int64) error {
	if x.Format != 1 || x.BlockBytes != BlockBytes {
		return fmt.Errorf("its format is %d with blocks of %d bytes, and this program reads format 1 with %d: pack the set again", x.Format,
			x.BlockBytes, BlockBytes)
	}
	var blocks int64
	seen := map[string]bool{}
	for i := range x.Sections {
		s := &x.Sections[i]
		if seen[s.Name] {
			return fmt.Errorf("two sections are called %q", s.Name)
		}
		seen[s.Name] = true
		elements := int64(1)
		if len(s.Shape) < 1 || len(s.Shape) > shapeMax {
			return fmt.Errorf("section %q has %d dimensions, 1 to %d are allowed", s.Name, len(s.Shape), shapeMax)
		}
		for _, d := range s.Shape {
			if d < 0 || d > 0 && elements > math.MaxInt64/64/d {
				return fmt.Errorf("section %q has the shape %v", s.Name, s.Shape)
			}
			elements *= d
		}
		size, known := sizes[s.Type]
		switch {
		case !known:
			return fmt.Errorf("section %q has the type %q", s.Name, s.Type)
		case s.Bytes != elements*size:
			return fmt.Errorf("section %q of %s has the shape %v and %d bytes", s.Name, s.Type, s.Shape, s.Bytes)
		case s.Offset < headBytes || s.Offset%align != 0 || s.Offset > x.Sums.Offset || s.Bytes > x.Sums.Offset-s.Offset:
			return fmt.Errorf("section %q lies at %d with %d bytes, and the checksums at %d", s.Name, s.Offset, s.Bytes, x.Sums.Offset)
		}
		blocks += s.blocks()
	}
	if x.Sums.Bytes != 4*blocks || x.Sums.Offset > at || x.Sums.Bytes != at-x.Sums.Offset {
		return errors.New("its checksums do not fit its sections")
	}
	return nil
}
