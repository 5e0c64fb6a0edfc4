package pack

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Writer writes a pack. Its sections are written one after the other.
type Writer struct {
	f     *os.File
	out   *bufio.Writer
	at    int64 // of the next byte
	index index
	sums  []byte
	block uint32 // checksum of the block that has begun
	room  int64  // bytes that it still takes
}

// NewWriter begins a pack in an empty file.
func NewWriter(f *os.File) (*Writer, error) {
	w := &Writer{f: f, out: bufio.NewWriterSize(f, 1<<20), index: index{Format: 1, BlockBytes: BlockBytes}}
	return w, w.zeros(headBytes)
}

// Section begins a section. What is then written until the next one must be as many bytes as the shape has.
func (w *Writer) Section(name, typ string, shape ...int64) error {
	if err := w.endSection(); err != nil {
		return err
	}
	if err := w.zeros((align - w.at%align) % align); err != nil {
		return err
	}
	s := Info{Name: name, Type: typ, Shape: shape, Offset: w.at, Bytes: sizes[typ]}
	for _, d := range shape {
		s.Bytes *= d
	}
	w.index.Sections, w.block, w.room = append(w.index.Sections, s), 0, BlockBytes
	return nil
}

// Write appends bytes to the section.
func (w *Writer) Write(p []byte) (n int, err error) {
	for rest := p; len(rest) > 0; {
		part := rest[:min(int64(len(rest)), w.room)]
		w.block = crc32.Update(w.block, castagnoli, part)
		if w.room -= int64(len(part)); w.room == 0 {
			w.endBlock()
		}
		rest = rest[len(part):]
	}
	n, err = w.out.Write(p)
	w.at += int64(n)
	return n, err
}

// Numbers appends numbers to the section.
func Numbers[T int32 | int64 | float32](w *Writer, values []T) error {
	return binary.Write(w, binary.LittleEndian, values)
}

func (w *Writer) endBlock() {
	w.sums = binary.LittleEndian.AppendUint32(w.sums, w.block)
	w.block, w.room = 0, BlockBytes
}

func (w *Writer) endSection() error {
	if len(w.index.Sections) == 0 {
		return nil
	}
	s := &w.index.Sections[len(w.index.Sections)-1]
	if w.room < BlockBytes {
		w.endBlock()
	}
	if w.at-s.Offset != s.Bytes {
		return fmt.Errorf("section %s got %d bytes of %d", s.Name, w.at-s.Offset, s.Bytes)
	}
	return nil
}

func (w *Writer) zeros(n int64) error {
	_, err := w.out.Write(make([]byte, n))
	w.at += n
	return err
}

// End writes the checksums, the index with what the set is, and the header, which also says who has made the pack. It returns the hash of
// the index, which names the pack: that of the same rows is the same, whoever packs them.
func (w *Writer) End(set any, madeBy string) (sum string, err error) {
	if err := w.endSection(); err != nil {
		return "", err
	}
	text, err := json.Marshal(set)
	if err != nil {
		return "", err
	}
	of := sha256.Sum256(w.sums)
	w.index.Set, w.index.Sums = text, sums{Offset: w.at, Bytes: int64(len(w.sums)), SHA256: hex.EncodeToString(of[:])}
	if _, err := w.out.Write(w.sums); err != nil {
		return "", err
	}
	w.at += int64(len(w.sums))
	end, err := json.Marshal(w.index)
	if err != nil {
		return "", err
	}
	if _, err := w.out.Write(end); err != nil {
		return "", err
	}
	if err := w.out.Flush(); err != nil {
		return "", err
	}
	of = sha256.Sum256(end)
	head := []byte(magic)
	head = binary.LittleEndian.AppendUint64(head, uint64(w.at))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(end)))
	head = append(append(head, of[:]...), 0, 0, 0, 0, 0, 0, 0, 0)
	if _, err := w.f.WriteAt(append(head, madeBy[:min(len(madeBy), headBytes-len(head))]...), 0); err != nil {
		return "", err
	}
	_, err = w.f.Seek(0, io.SeekEnd)
	return hex.EncodeToString(of[:]), err
}
