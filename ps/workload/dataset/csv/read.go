package csv

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// reader reads the files of a set.
type reader struct {
	*Options
	in     *files.Reading
	isTest bool
	first  *dialect // of the first file
	forced string   // what of the dialect of the first file is not as it would be found
	scheme *scheme  // of all files
	labels classes.Labels

	isParquet bool // the files are of Parquet, not text

	missing, comments int
}

// files reads files into one table.
func (r *reader) files(paths []string, t *Table) error {
	for _, path := range paths {
		if r.isParquet {
			if err := r.parquet(path, t); err != nil {
				return err
			}
			continue
		}
		if err := r.in.Read(path, files.TextHint, func(src *files.Source) error { return r.file(src, t) }); err != nil {
			return err
		}
	}
	return nil
}

// Paths lists the files of a pattern, in the order of their names. A path without the signs of a pattern, and one of an existing file, is
// that file.
func Paths(pattern string) ([]string, error) {
	if !hasMeta(pattern) || files.IsFile(pattern) {
		return []string{pattern}, nil
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("data: %s is no pattern of files: %w", pattern, err)
	}
	for _, suffix := range files.PackedSuffixes() {
		if len(paths) == 0 {
			paths, _ = filepath.Glob(pattern + suffix) // whose pattern is good
		}
	}
	paths = slices.DeleteFunc(paths, files.IsFolder)
	if len(paths) == 0 {
		return nil, fmt.Errorf("data: no file fits %s; check path and test of the data set", pattern)
	}
	return paths, nil
}

func hasMeta(path string) bool {
	return slices.ContainsFunc([]byte(path), func(c byte) bool { return c == '*' || c == '?' || c == '[' })
}

// file appends the rows of a file.
func (r *reader) file(src *files.Source, t *Table) error {
	k := newBlocks(src, r.in)
	block, line, err := k.next(nil)
	if err != nil && err != io.EOF {
		return err
	}
	d, err := r.dialect(src.Path, block, !k.ended)
	if err != nil {
		return err
	}
	before := len(t.y)
	if len(block) > 0 {
		if err := r.parse(src, k, d, block, line, t); err != nil {
			return err
		}
	}
	if len(t.y) == before {
		return fmt.Errorf("data: %s: no rows", src.Path)
	}
	if k.open {
		text.NoteOpen(r.in, src.Path, k.last)
	}
	return nil
}

// dialect judges the first block of a file, and makes the scheme if it is the first file.
func (r *reader) dialect(path string, block []byte, more bool) (*dialect, error) {
	head := block[:min(len(block), 1<<16)]
	d, err := r.find(path, head, more || len(head) < len(block), r.first)
	if err != nil {
		return nil, err
	}
	if r.first != nil {
		if d.header != nil {
			err = d.checkHeader(path, headerLine(block, &d), r.scheme, r.first)
		}
		return &d, err
	}
	if len(d.first) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", path)
	}
	if n := len(d.first); n < 2 || r.Features > 0 && n != r.Features+1 {
		return nil, fmt.Errorf("data: %s:%d: %d values, want %d (%d features and the %s)%s", path, headerLine(block, &d), n,
			max(r.Features, 1)+1, max(r.Features, 1), r.labelWord(),
			(&parser{Options: r.Options, scheme: &scheme{}, sep: d.sep}).hint(d.line, false))
	}
	if err := r.in.Take(nil, int64(len(d.first))*40); err != nil {
		return nil, fmt.Errorf("data: %s: %d columns: %w", path, len(d.first), err)
	}
	r.first, r.forced = &d, d.beside(path, head, more || len(head) < len(block))
	if r.scheme, err = r.schemeOf(path, &d); err != nil {
		return nil, err
	}
	r.scheme.wordy = r.scheme.wordyIn(linesOf(head, more || len(head) < len(block)), &d)
	if d.header != nil {
		err = d.checkHeader(path, headerLine(block, &d), r.scheme, nil)
	}
	return &d, err
}

// headerLine is the number of the first line that is neither blank nor a comment, nor one that tells the separator.
func headerLine(block []byte, d *dialect) int {
	line, skip := 1, d.skip
	for len(block) > 0 {
		end, next := lineEnd(block)
		if !text.Blank(block[:end]) && block[0] != '#' && !skip {
			break
		}
		skip = skip && text.Blank(block[:end])
		line++
		if next == 0 {
			break
		}
		block = block[next:]
	}
	return line
}

// job is a block on its way through a parser.
type job struct {
	block []byte
	line  int // with which it begins
	out   *chunk
	by    *parser // who has parsed it
	err   error   // of the file
	done  chan struct{}
}

// parse parses the first block, then all others, several at once.
func (r *reader) parse(src *files.Source, k *blocks, d *dialect, block []byte, line int, t *Table) error {
	p := newParser(r.Options, r.scheme, d)
	p.isFirst = true
	if d.skip {
		p.skip++
	}
	if d.header != nil {
		p.skip++
	}
	m := &merger{reader: r, src: src, t: t}
	j := &job{block: block, line: line, out: &chunk{}}
	p.parse(block, j.out)
	if err := m.add(p, j); err != nil || k.ended {
		return err
	}
	if err := m.reserve(len(block)); err != nil {
		return err
	}
	workers := min(runtime.GOMAXPROCS(0), workersMax)
	flight := int64(workers+2) * int64(k.size+cap(j.out.x)*4+cap(j.out.wide)*8+cap(j.out.y)*4+cap(j.out.group)*4)
	if err := r.in.Take(src, flight); err != nil {
		return err
	}
	defer r.in.Give(flight)
	return m.pipeline(k, d, workers)
}

// workersMax bounds the parsers of a file. One goroutine reads and hashes it, 1.3 GB/s on a Xeon with instructions for SHA-256; a parser
// there does 0.4 GB/s of numbers with 17 digits, so more would wait.
const workersMax = 8

// pipeline reads blocks in one goroutine and parses them in others. It merges what they hold in the order of the file.
func (m *merger) pipeline(k *blocks, d *dialect, workers int) error {
	order, jobs := make(chan *job, workers+2), make(chan *job, workers+2)
	free, stop := make(chan *job, workers+2), make(chan struct{})
	for range workers + 2 {
		free <- &job{out: &chunk{}, done: make(chan struct{}, 1)}
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	for range workers {
		p := newParser(m.Options, m.scheme, d)
		all.Go(func() {
			for j := range jobs {
				p.parse(j.block, j.out)
				j.by = p
				j.done <- struct{}{}
			}
		})
	}
	all.Go(func() {
		defer close(jobs)
		defer close(order)
		for {
			var j *job
			select {
			case j = <-free:
			case <-stop:
				return
			}
			j.block, j.line, j.err = k.next(j.block)
			if j.err == io.EOF {
				return
			}
			order <- j
			if j.err != nil {
				return
			}
			jobs <- j
		}
	})
	for j := range order {
		if j.err != nil {
			return j.err
		}
		<-j.done
		if err := m.add(j.by, j); err != nil {
			return err
		}
		free <- j
	}
	return nil
}
