package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
)

// FileName is where a rank tells of itself, in the run folder: logs/rank-0007.state.
func FileName(rank int) string { return filepath.Join("logs", fmt.Sprintf("rank-%04d.state", rank)) }

// isFile says whether FileName makes such a name.
func isFile(name string) bool {
	return strings.HasPrefix(name, "rank-") && strings.HasSuffix(name, ".state")
}

// Bounds of the time between two files of a rank. All ranks together write at most writesPerS files a second, because parallel file systems
// are slow at small files.
const (
	everyMin   = time.Second
	writesPerS = 100
)

// Every is the time between two files of one of so many ranks.
func Every(ranks int) time.Duration {
	return max(everyMin, time.Duration(ranks)*time.Second/writesPerS)
}

// fileMax is the largest file of a rank that is read.
const fileMax = 1 << 20

// Writer writes the file of one rank, on a goroutine of its own: a file system that hangs must not stop the training.
// The file is written in place, so that nothing but its content changes. A reader may meet it half written, and looks
// again.
type Writer struct {
	file  *os.File
	next  chan Rank
	done  chan struct{}
	bytes int // of the longest content so far
}

// Open makes the file of a rank in the run folder.
func Open(f *durable.Folder, rank int) (*Writer, error) {
	file, err := f.Renew(FileName(rank))
	if err != nil {
		return nil, fmt.Errorf("state of rank %d: %w", rank, err)
	}
	w := &Writer{file: file, next: make(chan Rank, 1), done: make(chan struct{})}
	go w.run()
	return w, nil
}

// Tell has the state written. It never waits: while an earlier state is being written, the newest one waits and
// replaces what waited before.
func (w *Writer) Tell(r Rank) {
	select {
	case <-w.next:
	default:
	}
	select {
	case w.next <- r:
	default:
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for r := range w.next {
		data, err := json.Marshal(r)
		if err != nil {
			continue
		}
		w.bytes = max(w.bytes, len(data))
		data = append(data, bytes.Repeat([]byte(" "), w.bytes-len(data))...)
		_, _ = w.file.WriteAt(append(data, '\n'), 0) // the age of the file tells of an error
	}
	_ = w.file.Close()
}

// Close writes the last state. It gives up after the time given: the file system may hang. Nobody may call Tell afterwards.
func (w *Writer) Close(within time.Duration) {
	close(w.next)
	select {
	case <-w.done:
	case <-time.After(within):
	}
}
