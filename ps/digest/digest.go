// Package digest records checksums of the parameters of shards while a run trains, so that two runs that should be equal can be compared version by
// version (`fluentps verify`).
package digest

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strconv"
	"unsafe"
)

// FileName is the file of a rank's server in the run folder: logs/rank-0000.digests.
func FileName(rank int) string { return filepath.Join("logs", fmt.Sprintf("rank-%04d.digests", rank)) }

// FileMax bounds the size of a file that is read.
const FileMax = 1 << 30

// castagnoli selects CRC-32C, for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log writes the checksums of one server: a line "version,shard,crc32c" each, the checksum in hexadecimal, of the values as they lie in memory. A
// nil Log writes nothing. It belongs to the goroutine that drives the server.
type Log struct {
	w     *bufio.Writer
	file  io.Closer
	every int64
	line  []byte
	err   error // of the first write that failed; later ones are not tried
}

// New returns a Log of every so many versions.
func New(file io.WriteCloser, every int64) *Log {
	return &Log{w: bufio.NewWriterSize(file, 1<<16), file: file, every: every}
}

// Note records a version of a shard, if its turn has come.
func (l *Log) Note(version int64, shard int32, values []float32) {
	if l == nil || l.err != nil || version%l.every != 0 {
		return
	}
	l.line = strconv.AppendInt(l.line[:0], version, 10)
	l.line = append(l.line, ',')
	l.line = strconv.AppendInt(l.line, int64(shard), 10)
	l.line = append(l.line, ',')
	l.line = strconv.AppendUint(l.line, uint64(crc32.Checksum(asBytes(values), castagnoli)), 16)
	l.line = append(l.line, '\n')
	_, l.err = l.w.Write(l.line)
}

func asBytes(values []float32) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}

// Close writes what is left. It returns the first error of all writes.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	if l.err == nil {
		l.err = l.w.Flush()
	}
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}

// Key names a version of a shard.
type Key struct {
	Version int64
	Shard   int32
}

// Parse reads the lines of files into one table. The last line of a key counts: a run that resumes makes versions again. A last line without an end is
// left out: a killed run tears it.
func Parse(into map[Key]uint32, data []byte) error {
	number := 0
	for len(data) > 0 {
		number++
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return nil
		}
		data = rest
		fields := bytes.Split(line, []byte(","))
		if len(fields) != 3 {
			return fmt.Errorf("line %d has %d fields, want version,shard,crc32c", number, len(fields))
		}
		version, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return fmt.Errorf("line %d: version: %w", number, err)
		}
		shard, err := strconv.ParseInt(string(fields[1]), 10, 32)
		if err != nil {
			return fmt.Errorf("line %d: shard: %w", number, err)
		}
		sum, err := strconv.ParseUint(string(fields[2]), 16, 32)
		if err != nil {
			return fmt.Errorf("line %d: crc32c: %w", number, err)
		}
		into[Key{version, int32(shard)}] = uint32(sum)
	}
	return nil
}
