package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"fluentps/internal/disk/durable"
)

// sized is a table that knows its memory.
type sized interface {
	// holds is the memory in bytes: that of the table alone, and that shared by the tables of the set.
	holds() (own, common int64)
}

// Bytes is the memory of a loaded set in its process.
func (s *Set) Bytes() int64 {
	var total, common int64
	for _, t := range []Table{s.Train, s.Test} {
		if h, ok := whole(t).(sized); ok { // the hidden rows are in memory, too
			own, shared := h.holds()
			total, common = total+own, max(common, shared)
		}
	}
	return total + common
}

// MappedBytes is how much of the files of a set is mapped: its pages are shared by all ranks of a host, and the system takes them back when
// it needs memory.
func (s *Set) MappedBytes() (total int64) {
	for _, t := range []Table{s.Train, s.Test} {
		if m, ok := whole(t).(interface{ mapped() int64 }); ok {
			total += m.mapped()
		}
	}
	return total
}

// ReadBytes is the memory that reading the set took for a while in addition to Bytes. If the number of rows is not known in advance,
// they are read into memory that grows by a quarter repeatedly, and the old memory goes back to the system after the new one has been
// filled.
func (s *Set) ReadBytes() int64 { return max(0, s.peak-s.Bytes()) }

const valueBytes = 4 // of a float32, of an int32

func (t *rowsTable) holds() (own, common int64) {
	return valueBytes * int64(cap(t.x)+cap(t.y)), 0
}

func (t textRows) holds() (own, common int64) { return t.Bytes(), 0 }

func (t *sparse) holds() (own, common int64) {
	return 2*valueBytes*int64(cap(t.start)) + valueBytes*int64(cap(t.index)+cap(t.value)+cap(t.y)), 0
}

func (t *blobs) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.centres)+len(t.normal))
}

func (t *words) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.weight)+len(t.normal))
}

func (t *product) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.left)+len(t.right)+len(t.normal))
}

// readAll reads all bytes of files that are mapped, and compares those of a pack with their checksums. Runs read only what they train on.
func (s *Set) readAll() error {
	if p, ok := whole(s.Train).(packedRows); ok {
		if err := p.Verify(); err != nil {
			return fmt.Errorf("data: %w", err)
		}
		return nil
	}
	for i := range s.Files {
		if !s.Files[i].Sampled {
			continue
		}
		f, err := durable.Open(s.Files[i].Path)
		if err != nil {
			return fmt.Errorf("data: %w", err)
		}
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			f.Close()
			return fmt.Errorf("data: %w", err)
		}
		f.Close()
		s.Files[i].Whole = hex.EncodeToString(h.Sum(nil))
	}
	return nil
}
