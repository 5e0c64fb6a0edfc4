package timeline

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
)

// Folder is the folder of a run folder with the parts of ranks, while the run lasts. Name is the whole trace, which rank 0 makes of the
// ranks' spans at the end.
const (
	Folder = "trace"
	Name   = "trace.json.gz"
)

// NameFrom is Name of a part of a run that begins at the given iteration.
func NameFrom(start int64) string {
	if start == 0 {
		return Name
	}
	return fmt.Sprintf("trace-from-%d.json.gz", start)
}

// FreeName is NameFrom for one more part of a run that begins there: a run that is killed twice after one checkpoint has two.
func FreeName(run *durable.Folder, start int64) string {
	first := NameFrom(start)
	for name, n := first, 2; ; n++ {
		if _, err := run.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d.json.gz", strings.TrimSuffix(first, ".json.gz"), n)
	}
}

// PartName is the name of a rank's part in Folder. A run that resumes keeps the parts of the run before.
func PartName(start int64, rank int) string {
	return fmt.Sprintf("from-%d-rank-%04d.json.gz", start, rank)
}

// flushEvery is how often a rank writes its new spans: so many are lost if it is killed.
const flushEvery = time.Second

// Part is the file of one rank during training: a list that is not closed, which readers of traces accept, in whole gzip members, each
// written at once. So it can be opened at any time, also when the run was killed.
type Part struct {
	w     *writer
	file  *os.File
	next  int // first event that is not in the file
	text  []byte
	zip   zipper
	stop  chan struct{}
	ended chan error // the first error of writing and closing, once

	started bool // the goroutine runs, or has ended; the file is its own
}

// OpenPart makes the file.
func OpenPart(in *durable.Folder, name string, r *Rank, about About) (*Part, error) {
	file, err := in.Renew(name)
	if err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	p := &Part{w: newWriter(r, about), file: file, stop: make(chan struct{}), ended: make(chan error, 1)}
	p.text = p.w.head(nil)
	p.text[0] = '[' // in place of the first comma
	return p, p.flush()
}

// Recording is the timeline of a rank, with its part while the run lasts.
type Recording struct {
	*Rank
	Part  *Part // nil: there is none
	Clock Clock
	Start int64 // the iteration at which this part of the run begins
}

// BeginPart writes the part of the rank until EndPart.
func (r *Recording) BeginPart(guard func()) {
	if r != nil && r.Part != nil {
		r.Part.start(guard)
	}
}

// EndPart ends the part, if it has not ended yet.
func (r *Recording) EndPart() error {
	p := r.Part
	if p == nil {
		return nil
	}
	r.Part = nil
	return p.close(closeWait)
}

// start writes new spans now and then, on a goroutine that defers guard, until close.
func (p *Part) start(guard func()) {
	p.started = true
	go func() {
		defer guard()
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				p.ended <- errors.Join(p.flush(), p.file.Close())
				return
			case <-tick.C:
				if err := p.flush(); err != nil {
					p.ended <- errors.Join(err, p.file.Close())
					return
				}
			}
		}
	}()
}

// flushEvents bounds the events of one member, and so the memory for their text.
const flushEvents = 4096

func (p *Part) flush() error {
	for {
		n := p.w.r.Len()
		p.text, p.next = p.w.lines(p.text, p.next, min(n, p.next+flushEvents))
		if len(p.text) == 0 {
			return nil
		}
		if _, err := p.file.Write(p.zip.member(p.text)); err != nil {
			return fmt.Errorf("timeline: %w", err)
		}
		p.text = p.text[:0]
	}
}

// closeWait is how long the end of a run waits for the file system to take the last spans. Rank 0 gets them in another way.
const closeWait = 10 * time.Second

// close ends the goroutine and the file. It returns the first error of a write.
func (p *Part) close(wait time.Duration) error {
	if !p.started {
		return p.file.Close()
	}
	close(p.stop)
	select {
	case err := <-p.ended:
		return err
	case <-time.After(wait):
		return fmt.Errorf("timeline: the file system has not written %s within %v", p.file.Name(), wait)
	}
}

// zipper makes gzip members, and keeps its memory.
type zipper struct {
	buf bytes.Buffer
	zip *gzip.Writer
}

// member returns a whole gzip member, which is valid until the next call.
func (z *zipper) member(text []byte) []byte {
	z.buf.Reset()
	if z.zip == nil {
		z.zip, _ = gzip.NewWriterLevel(&z.buf, gzip.BestSpeed) // fails only for another level
	} else {
		z.zip.Reset(&z.buf)
	}
	z.zip.Write(text) // a Buffer does not fail
	z.zip.Close()
	return z.buf.Bytes()
}

// Chunks is the number of chunks of a rank's spans.
func (r *Rank) Chunks() int { return 1 + (r.Len()+flushEvents-1)/flushEvents }

// Chunked makes the chunks of a rank's spans, in order, as gzip members of lines.
type Chunked struct {
	w   *writer
	zip zipper
	k   int
}

// Chunked begins the chunks.
func (r *Rank) Chunked(about About) *Chunked { return &Chunked{w: newWriter(r, about)} }

// Next is the next chunk; it is valid until the next call. Behind the last one it is empty.
func (c *Chunked) Next() []byte {
	var text []byte
	switch {
	case c.k == 0:
		text = c.w.head(nil)
	case c.k >= c.w.r.Chunks():
		return nil
	default:
		text, _ = c.w.lines(nil, (c.k-1)*flushEvents, min(c.w.r.Len(), c.k*flushEvents))
	}
	c.k++
	return c.zip.member(text)
}

// Head is the begin of a whole trace, as a gzip member. The chunks of all ranks follow, then Tail. fields are members of its metadata.
func Head(run string, fields ...string) []byte {
	var z zipper
	return z.member([]byte(head(run, fields...)))
}

func head(run string, fields ...string) string {
	text := `{"displayTimeUnit":"ms","otherData":{"program":"fluentps","run":` + quoted(run)
	for _, f := range fields {
		text += "," + f
	}
	return text + "},\"traceEvents\":[\n" + `{"ph":"M","name":"fluentps_run","pid":0,"args":{"name":` + quoted(run) + "}}\n"
}

const tail = "]}\n"

// Tail is the end of a whole trace.
func Tail() []byte {
	var z zipper
	return z.member([]byte(tail))
}

// Write writes the trace of ranks that all are in this process.
func Write(w io.Writer, run string, ranks []*Rank, about []About, fields ...string) error {
	if _, err := w.Write(Head(run, fields...)); err != nil {
		return err
	}
	for i, r := range ranks {
		chunks := r.Chunked(about[i])
		for range r.Chunks() {
			if _, err := w.Write(chunks.Next()); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(Tail())
	return err
}

// Join makes whole traces of the parts that killed runs have left in a run folder, and removes the parts. Their clocks were measured only
// once, and their last second is missing.
func Join(run *durable.Folder, name string) error {
	in := run.In(Folder)
	defer in.Close()
	if errors.Is(in.Err(), fs.ErrNotExist) {
		return nil
	}
	all, err := in.List()
	if err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	parts := map[int64][]string{} // by the iteration from which they are; in the order of ranks
	for _, e := range all {
		var start int64
		var rank int
		if n, err := fmt.Sscanf(e.Name(), "from-%d-rank-%d.json.gz", &start, &rank); n == 2 && err == nil && e.Name() == PartName(start, rank) {
			parts[start] = append(parts[start], e.Name())
		}
	}
	for start, names := range parts {
		err := run.Replace(FreeName(run, start), func(file *os.File) error { return joinParts(file, in, name, names) })
		for _, part := range names {
			if err == nil {
				err = in.Remove(part)
			}
		}
		if err != nil {
			return fmt.Errorf("timeline: %w", err)
		}
	}
	return nil
}

func joinParts(to io.Writer, in *durable.Folder, name string, parts []string) error {
	zip, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err == nil {
		_, err = io.WriteString(zip, head(name, `"killed":true`))
	}
	for _, part := range parts {
		if err == nil {
			err = appendPart(zip, in, part)
		}
	}
	if err == nil {
		_, err = io.WriteString(zip, tail)
	}
	if err == nil {
		err = zip.Close()
	}
	return err
}

// Limits of a part that is read. A rank has a limited number of spans, so no run writes a longer one, but a file may be damaged on purpose.
const (
	partMax     = 4 << 30
	partLineMax = 1 << 20
)

// appendPart appends the whole lines of a part. A part may have a torn end.
func appendPart(to io.Writer, in *durable.Folder, part string) error {
	file, err := in.Open(part)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil { // not even its first lines were written
		return nil
	}
	lines := bufio.NewReaderSize(io.LimitReader(text, partMax), partLineMax)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil { // the end, a torn member, or what no run writes
			return nil
		}
		line[0] = ',' // of the first line: a bracket
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
}
