// Package digest records checksums of the parameters of shards while a run trains, so that two runs that should be
// equal can be compared version by version (`fluentps verify`).
package digest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"time"
	"unsafe"
)

// FileName is the file of a rank's server in the run folder: logs/rank-0000.digests.
func FileName(rank int) string { return filepath.Join("logs", fmt.Sprintf("rank-%04d.digests", rank)) }

// LinesMax bounds the lines of all files of a run that are read: their table takes some 40 bytes a line.
const LinesMax = 16 << 20

// lineMax bounds a line: a version, a shard and a checksum have at most 41 characters.
const lineMax = 64

// castagnoli selects CRC-32C, for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log keeps the checksums of one server: a line "version,shard,crc32c" each, the checksum in hexadecimal, of the
// values as they lie in memory. A nil Log keeps nothing. A goroutine of its own writes the lines, once a second, so
// that a killed run has all but the last, and a file system that does not answer does not stop the training. Note and
// Close belong to the goroutine that drives the server.
type Log struct {
	every int64
	room  int // bytes of lines that may wait
	file  io.WriteCloser
	stop  chan struct{}
	ended chan error // the first error of a write, once

	mu      sync.Mutex
	pending []byte
	lost    int64 // lines for which there was no room
}

// pendingMax bounds the lines that wait for the file system, in bytes. Further ones are lost, and Close says so.
const pendingMax = 8 << 20

// writeEvery is how often lines are written. closeWait is how long Close waits for the file system.
const (
	writeEvery = time.Second
	closeWait  = 10 * time.Second
)

// New returns a Log of every so many versions. Its goroutine defers guard.
func New(file io.WriteCloser, every int64, guard func()) *Log {
	l := &Log{every: every, room: pendingMax, file: file, stop: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		defer guard()
		l.ended <- l.write()
	}()
	return l
}

// write writes lines until stop, and closes the file.
func (l *Log) write() error {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	var spare []byte
	var err error // of the first write that failed; later lines are dropped
	for last := false; !last; {
		select {
		case <-l.stop:
			last = true
		case <-tick.C:
		}
		l.mu.Lock()
		spare, l.pending = l.pending, spare[:0]
		l.mu.Unlock()
		if err == nil && len(spare) > 0 {
			_, err = l.file.Write(spare)
		}
	}
	return errors.Join(err, l.file.Close())
}

// Note records a version of a shard, if its turn has come.
func (l *Log) Note(version int64, shard int32, values []float32) {
	if l == nil || version%l.every != 0 {
		return
	}
	sum := crc32.Checksum(asBytes(values), castagnoli)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending)+lineMax > l.room {
		l.lost++
		return
	}
	line := strconv.AppendInt(l.pending, version, 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, int64(shard), 10)
	line = append(line, ',')
	line = strconv.AppendUint(line, uint64(sum), 16)
	l.pending = append(line, '\n')
}

func asBytes(values []float32) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}

// Close writes what is left. It returns the errors of all writes, and an error for lines that are lost. It waits for
// the file system, but not for ever.
func (l *Log) Close() error { return l.closeWithin(closeWait) }

func (l *Log) closeWithin(wait time.Duration) error {
	if l == nil {
		return nil
	}
	close(l.stop)
	var err error
	select {
	case err = <-l.ended:
	case <-time.After(wait):
		err = fmt.Errorf("the file system has not written the last lines within %v", wait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		err = errors.Join(err, fmt.Errorf("the file system was too slow for %d lines, which are missing", l.lost))
	}
	return err
}

// Key names a version of a shard.
type Key struct {
	Version int64
	Shard   int32
}

// Parse reads the lines of a file into a table. The last line of a key counts: a run that resumes makes versions
// again. A last line without an end is left out: a killed run tears it. The table has at most linesMax keys.
func Parse(into map[Key]uint32, file io.Reader, linesMax int) error {
	lines := bufio.NewReaderSize(file, 1<<16)
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return nil
		case err == bufio.ErrBufferFull || len(line) > lineMax:
			return fmt.Errorf("line %d is longer than %d characters", number, lineMax)
		case err != nil:
			return err
		}
		key, sum, err := parseLine(line[:len(line)-1])
		if err != nil {
			return fmt.Errorf("line %d%w", number, err)
		}
		if _, there := into[key]; !there && len(into) >= linesMax {
			return fmt.Errorf("line %d: there are more than %d checksums; keep fewer with a larger metrics.digests", number, linesMax)
		}
		into[key] = sum
	}
}

func parseLine(line []byte) (key Key, crc uint32, err error) {
	fields := bytes.Split(line, []byte(","))
	if len(fields) != 3 {
		return key, 0, fmt.Errorf(" has %d fields, want version,shard,crc32c", len(fields))
	}
	if key.Version, err = strconv.ParseInt(string(fields[0]), 10, 64); err != nil {
		return key, 0, fmt.Errorf(": version: %w", err)
	}
	shard, err := strconv.ParseInt(string(fields[1]), 10, 32)
	if err != nil {
		return key, 0, fmt.Errorf(": shard: %w", err)
	}
	sum, err := strconv.ParseUint(string(fields[2]), 16, 32)
	if err != nil {
		return key, 0, fmt.Errorf(": crc32c: %w", err)
	}
	key.Shard = int32(shard)
	return key, uint32(sum), nil
}
