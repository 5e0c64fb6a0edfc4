package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"fluentps/internal/comm/shm"
	"fluentps/internal/disk/durable"
)

// A file is, in little endian: the magic, the format (4 bytes), the length of the header (4 bytes), the header as JSON,
// and the vectors of float32, one after the other.
const (
	magic     = "FPSCKPT\n"
	prefix    = len(magic) + 8
	binFormat = 1       // the format in a file
	headerMax = 1 << 28 // bytes of the header's text
	blockMax  = 1 << 18 // bytes per step of checksum and write, or of read and checksum, so that they stay in cache
)

// header is the JSON before the vectors.
type header struct {
	Lengths []int           `json:"lengths"` // elements of each vector
	State   json.RawMessage `json:"state"`
}

// WriteFile writes a state and vectors to the file name, and syncs it. The caller must not change the vectors until WriteFile returns.
func WriteFile(in *durable.Folder, name string, state any, vectors ...[]float32) (Entry, error) {
	return writeFile(in, name, state, vectors, func(*os.File, int64) error { return nil })
}

// WriteReplica is WriteFile for a memory file system. It reserves the pages before it writes, and fails if fewer than spare bytes would
// stay free.
func WriteReplica(in *durable.Folder, name string, spare int64, state any, vectors ...[]float32) (Entry, error) {
	return writeFile(in, name, state, vectors, func(f *os.File, bytes int64) error { return shm.Reserve(f, bytes, spare) })
}

func writeFile(in *durable.Folder, name string, state any, vectors [][]float32,
	reserve func(f *os.File, bytes int64) error) (Entry, error) {
	head := header{Lengths: make([]int, len(vectors))}
	total := int64(prefix)
	for i, v := range vectors {
		head.Lengths[i] = len(v)
		total += 4 * int64(len(v))
	}
	var err error
	if head.State, err = json.Marshal(state); err != nil {
		return Entry{}, fmt.Errorf("%s: %w", name, err)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return Entry{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > headerMax {
		return Entry{}, fmt.Errorf("%s: the header has %d bytes; the limit is %d", name, len(text), headerMax)
	}
	f, err := in.Create(name)
	if err != nil {
		return Entry{}, writeError(err)
	}
	total += int64(len(text))
	if err := reserve(f, total); err != nil {
		return Entry{}, writeError(errors.Join(err, f.Close()))
	}
	w := &summing{output: newOutput(f, total), sum: crc32.New(castagnoli)}
	w.write(binary.LittleEndian.AppendUint32([]byte(magic), binFormat))
	w.write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	w.write(text)
	for _, v := range vectors {
		w.vector(v)
	}
	if err := w.end(); err != nil {
		return Entry{}, writeError(err)
	}
	return Entry{Name: name, Bytes: w.n, CRC32C: w.sum.Sum32()}, nil
}

// littleEndian says whether this machine has floats in the byte order of the files. Tests change it.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// asBytes returns the memory of a vector, which is written and read without a copy.
func asBytes(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

// swapped appends 4-byte words with their bytes reversed.
func swapped(out, words []byte) []byte {
	for ; len(words) > 0; words = words[4:] {
		out = append(out, words[3], words[2], words[1], words[0])
	}
	return out
}

// summing writes bytes, counts them and adds them to the checksum.
type summing struct {
	output
	sum     hash.Hash32
	n       int64
	scratch []byte
}

func (w *summing) write(b []byte) {
	w.output.write(b)
	w.sum.Write(b)
	w.n += int64(len(b))
}

func (w *summing) vector(v []float32) {
	for len(v) > 0 {
		n := min(len(v), blockMax/4)
		block := asBytes(v[:n])
		if !littleEndian {
			w.scratch = swapped(w.scratch[:0], block)
			block = w.scratch
		}
		w.write(block)
		v = v[n:]
	}
}

// ReadFile reads the file of an entry into state and vectors. It fails if a byte of the file is not the one that was written.
func ReadFile(dir string, e Entry, state any) ([][]float32, error) {
	vectors, err := readFile(filepath.Join(dir, e.Name), e, state)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %s: %w", dir, e.Name, err)
	}
	return vectors, nil
}

// openEntry opens the file of an entry. It fails if the file does not have the length in the entry.
func openEntry(path string, e Entry) (*os.File, error) {
	f, err := durable.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it is missing; if it is on the disk of another host, move the run folder to a file system that all hosts share")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != e.Bytes {
		err = fmt.Errorf("it has %d bytes, and %d were written: it was cut off or is another file", info.Size(), e.Bytes)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// notWritten returns the error of a file whose checksum differs from its entry.
func notWritten(got uint32, e Entry) error {
	return fmt.Errorf("its bytes are not those that were written (crc32c %08x as far as they were read, but %s says "+
		"%08x): it is damaged", got, manifestName, e.CRC32C)
}

func readFile(path string, e Entry, state any) ([][]float32, error) {
	f, err := openEntry(path, e)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	from := io.TeeReader(f, sum)
	head, vectors, err := readBody(from, e.Bytes)
	if err == nil {
		_, err = io.Copy(io.Discard, from) // the checksum must cover all bytes, to distinguish damage from a later format
	}
	if got := sum.Sum32(); errors.Is(err, errDamaged) || err == nil && got != e.CRC32C {
		return nil, notWritten(got, e)
	}
	if err != nil {
		return nil, err
	}
	if err := Decode(head.State, state); err != nil {
		return nil, fmt.Errorf("its state was not written by this program: %w", err)
	}
	return vectors, nil
}

// errDamaged is the error of content that WriteFile never writes, in a file of the right length.
var errDamaged = errors.New("damaged")

func readBody(from io.Reader, size int64) (head header, vectors [][]float32, err error) {
	start := make([]byte, prefix)
	if _, err := io.ReadFull(from, start); err != nil {
		return head, nil, damaged(err)
	}
	n := int64(binary.LittleEndian.Uint32(start[len(magic)+4:]))
	format := binary.LittleEndian.Uint32(start[len(magic):])
	if string(start[:len(magic)]) != magic || format != binFormat || n > min(headerMax, size-int64(prefix)) {
		return head, nil, errDamaged
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(from, text); err != nil {
		return head, nil, damaged(err)
	}
	if json.Unmarshal(text, &head) != nil {
		return head, nil, errDamaged
	}
	rest := size - int64(prefix) - n
	for _, k := range head.Lengths {
		if k < 0 || int64(k) > rest/4 {
			return head, nil, errDamaged
		}
		rest -= 4 * int64(k)
	}
	if rest != 0 {
		return head, nil, errDamaged
	}
	for _, k := range head.Lengths {
		v := make([]float32, k)
		for rest := asBytes(v); len(rest) > 0; {
			b := rest[:min(len(rest), blockMax)]
			if _, err := io.ReadFull(from, b); err != nil {
				return head, nil, damaged(err)
			}
			if !littleEndian {
				copy(b, swapped(nil, b))
			}
			rest = rest[len(b):]
		}
		vectors = append(vectors, v)
	}
	return head, vectors, nil
}

// damaged replaces the error of a file that ends too early. It returns every other error, of the file system, as it is.
func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errDamaged
	}
	return err
}
