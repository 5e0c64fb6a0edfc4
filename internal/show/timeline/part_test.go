package timeline

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/disk/durable"
	"fluentps/internal/show/timeline/timelinetest"
)

// A file system that does not answer does not hold up the end of a run: here a pipe that nobody reads.
func TestAHungFileSystemDoesNotHoldUpTheEnd(t *testing.T) {
	ranks, _, _, _ := script(Limits{Events: 100_000, First: 1 << 40}, "fc1", "*/0")
	r := ranks[1]
	for i := range int64(20_000) {
		at := time.Duration(i*i%7919) * time.Microsecond
		r.add(span{kind: Step, stream: int16(10 + i%7), worker: 0, iter: i, from: at, till: at + time.Duration(i%13)})
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &Part{w: newWriter(r, about()[1]), file: writer, stop: make(chan struct{}), ended: make(chan error, 1)}
	p.start(func() {})
	if err := p.close(time.Millisecond); err == nil || !strings.Contains(err.Error(), "the file system has not written") {
		t.Errorf("error %v", err)
	}
	reader.Close()
	if err := <-p.ended; err == nil {
		t.Error("the pipe broke, and no write failed")
	}
}

// A part that no run wrote, with a line without an end, costs neither memory nor the lines before it.
func TestAPartThatNoRunWroteIsCutOff(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte("[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"a\"}}\n"))
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for range 3 {
		z.Write(blank)
	}
	path := filepath.Join(dir, Folder, PartName(0, 0))
	if err := errors.Join(z.Close(), os.Mkdir(filepath.Join(dir, Folder), 0o777), os.WriteFile(path, b.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := Join(durable.Below(dir), "a"); err != nil {
		t.Fatal(err)
	}
	trace, err := timelinetest.Read(filepath.Join(dir, Name))
	if err != nil || trace.Processes[0] != "a" {
		t.Fatal(trace, err)
	}
	if info, err := os.Stat(filepath.Join(dir, Name)); err != nil || info.Size() > 4096 {
		t.Errorf("%v, %v", info, err)
	}
}
