package dataset

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strconv"
	"unsafe"
)

// reading is the shared state of the files of one set while they are read.
type reading struct {
	files []FileSum // in the order they were read
	notes []string  // what a user should know about them
	found []string  // what the reader has found out by itself
	most  int64     // bytes that rows may take, including the smaller memory that they have just outgrown
	left  int64     // unused part of most
	peak  int64     // the most of most that was in use at once

	outgrown bool // large memory was outgrown, and has not been given back to the system
}

// memoryDefault is the limit if the spec has none: the default of cluster.memory_max.
const memoryDefault = 8 << 30

func newReading(s Spec) *reading {
	most := cmp.Or(s.Memory, memoryDefault)
	return &reading{most: most, left: most}
}

// read opens a file, parses it and records its sum.
func (in *reading) read(path, hint string, parse func(src *source) error) error {
	src, err := open(path, hint)
	if err != nil {
		return err
	}
	defer src.file.Close()
	if err := parse(src); err != nil {
		return err
	}
	in.files = append(in.files, src.sum())
	return nil
}

// full is the error for rows that do not fit into the memory.
func (in *reading) full(src *source) error {
	return fmt.Errorf("data: %s: after %d unpacked bytes the rows take more than %d bytes of memory, which is "+
		"cluster.memory_max; is it the right file? raise cluster.memory_max if the hosts have the memory", src.path, src.bytes, in.most)
}

// take counts bytes that will be allocated. It fails if there is no memory left for them.
func (in *reading) take(src *source, bytes int64) error {
	if bytes > in.left {
		return in.full(src)
	}
	in.left -= bytes
	in.peak = max(in.peak, in.most-in.left)
	return nil
}

// make counts numbers of generated data that will be allocated, and says for what. It fails if there is no memory for them.
func (in *reading) make(set, what string, n int) ([]float32, error) {
	bytes := valueBytes * int64(n)
	if bytes > in.left {
		return nil, fmt.Errorf("data: set %s: %s take %d bytes, more than the %d of cluster.memory_max: raise it if the "+
			"hosts have the memory, or generate smaller data", set, what, bytes, in.most)
	}
	in.left -= bytes
	in.peak = max(in.peak, in.most-in.left)
	return make([]float32, n), nil
}

// sweepMin is the size of memory, in bytes, that is given back to the system as soon as rows have outgrown it: before the next larger
// one is taken. So what reading takes at once is what take has counted. Smaller garbage waits for the collector.
const sweepMin = 4 << 20

// grow makes room for n more elements. Until the elements have been copied, they take both the old memory and the new one.
func grow[T any](in *reading, src *source, s []T, n int) ([]T, error) {
	if cap(s)-len(s) >= n {
		if in.outgrown { // by now the caller has given up the smaller memory
			in.outgrown = false
			debug.FreeOSMemory()
		}
		return s, nil
	}
	size := int64(unsafe.Sizeof(*new(T)))
	want := max(len(s)+n, cap(s)+cap(s)/4) // never less, even if less would fit: ever shorter steps would copy without end
	if int64(cap(s))*size >= sweepMin {
		debug.FreeOSMemory()
		in.outgrown = true
	}
	if err := in.take(src, int64(want)*size); err != nil {
		return nil, err
	}
	in.left += int64(cap(s)) * size
	return append(make([]T, 0, want), s...), nil
}

// put appends to rows.
func put[T any](in *reading, src *source, s *[]T, more ...T) error {
	grown, err := grow(in, src, *s, len(more))
	if err == nil {
		*s = append(grown, more...)
	}
	return err
}

// clip quotes a text for a message. Of a long text it quotes the beginning.
func clip(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

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

// ReadBytes is the memory that reading the set took for a while in addition to Bytes. If the number of rows is not known in advance,
// they are read into memory that grows by a quarter repeatedly, and the old memory goes back to the system after the new one has been
// filled.
func (s *Set) ReadBytes() int64 { return max(0, s.peak-s.Bytes()) }

const valueBytes = 4 // of a float32, of an int32

func (p *pixels) holds() (own, common int64) {
	return int64(cap(p.data) + cap(p.labels)), int64(len(p.values)) * 256 * valueBytes
}

func (t *rowsTable) holds() (own, common int64) {
	return valueBytes * int64(cap(t.x)+cap(t.y)), 0
}

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
