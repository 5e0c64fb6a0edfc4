package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
)

// IterationsName is the file of a run folder with the times of each iteration of each worker.
const IterationsName = "iterations.csv"

// IterationsMax bounds the rows of IterationsName, and IterationsOfWorkerMax those of one worker.
const (
	IterationsMax         = 1_000_000
	IterationsOfWorkerMax = 100_000
	iterationsBytesMax    = 200 * IterationsMax // no row is as long as 200 bytes
)

// IterationBytes is the size of one Iteration in memory.
const IterationBytes = 64

// Iteration has the times of one iteration of one worker, and of the wait after it.
type Iteration struct {
	Iter     int64         // index of the iteration
	Start    time.Duration // since training began, on rank 0's clock; forward's waits for layers delay Start and count to the iteration before
	Compute  time.Duration // forward and backward, with the injected slowness
	Injected time.Duration // part of Compute: the measured sleep of injected faults
	Push     time.Duration // handing gradients to the transport, between the layers of backward
	Blocked  time.Duration // after backward, and between layers of the next forward: until the last reply began to arrive
	Pull     time.Duration // after Blocked: until the parameters had been read
	Samples  int           // of the iteration; 0: unknown, in rows of an earlier version
}

// Own is how long the worker computed, without the injected slowness.
func (i *Iteration) Own() time.Duration { return max(0, i.Compute+i.Push-i.Injected) }

// End is when the last gradient was handed to the transport, since training began.
func (i *Iteration) End() time.Duration { return i.Start + i.Compute + i.Push }

// Leaves is an instant before the last gradient began to leave. Parts of Push may lie between the layers of backward,
// so the last one left up to Push later. What the push lets others do starts after this instant; End says less, for a
// process may lose its processor before it.
func (i *Iteration) Leaves() time.Duration { return i.Start + i.Compute }

// Recorder keeps the first iterations of one worker. It belongs to one goroutine at a time.
type Recorder struct {
	Max     int   // the most iterations that are kept
	LeftOut int64 // iterations that were not kept, because Max was reached

	blocks [][]Iteration // all but the last are full; a full block is never copied
	n      int
}

// recorderBlock is the number of iterations in a block of memory, and in one chunk of text.
const recorderBlock = 4096

// Add records an iteration. Waited adds its waits later.
func (r *Recorder) Add(it Iteration) {
	if r.n >= r.Max {
		r.LeftOut++
		return
	}
	if r.n%recorderBlock == 0 {
		r.blocks = append(r.blocks, make([]Iteration, 0, min(recorderBlock, r.Max-r.n)))
	}
	last := &r.blocks[len(r.blocks)-1]
	*last = append(*last, it)
	r.n++
}

// Waited sets the waits of the iteration that was added last.
func (r *Recorder) Waited(blocked, pull time.Duration) {
	if r.n == 0 || r.LeftOut > 0 {
		return
	}
	last := r.blocks[len(r.blocks)-1]
	last[len(last)-1].Blocked, last[len(last)-1].Pull = blocked, pull
}

// Correct puts the times of all iterations on another clock. None starts before training began.
func (r *Recorder) Correct(clock func(time.Duration) time.Duration) {
	for _, block := range r.blocks {
		for i := range block {
			it := &block[i]
			at := it.Start
			it.Start = max(0, clock(at))
			for _, took := range []*time.Duration{&it.Compute, &it.Push, &it.Blocked, &it.Pull} {
				from := clock(at)
				at += *took
				*took = clock(at) - from
			}
			it.Injected = min(it.Injected, it.Compute)
		}
	}
}

// Len is the number of iterations kept.
func (r *Recorder) Len() int { return r.n }

// Chunks is the number of chunks of text.
func (r *Recorder) Chunks() int { return len(r.blocks) }

// ChunksOf is the number of chunks of n iterations.
func ChunksOf(n int) int { return (n + recorderBlock - 1) / recorderBlock }

// Chunk is the k-th chunk of the rows of a worker as text, without the header.
func (r *Recorder) Chunk(worker, k int) []byte {
	var b []byte
	for i := range r.blocks[k] {
		it := &r.blocks[k][i]
		b = strconv.AppendInt(b, int64(worker), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, it.Iter, 10)
		for _, d := range it.times() {
			b = append(b, ',')
			b = strconv.AppendFloat(b, d.Seconds(), 'f', 9, 64)
		}
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(it.Samples), 10)
		b = append(b, '\n')
	}
	return b
}

// iterationColumns are the columns of the file. The times have the order of Iteration.times. Earlier versions wrote no samples.
var iterationColumns = []string{"worker", "iter", "start_s", "compute_s", "injected_s", "push_s", "blocked_s", "pull_s", "samples"}

// headers are the first lines that a file may have, by the number of columns.
var headers = map[int]string{
	len(iterationColumns):     strings.Join(iterationColumns, ","),
	len(iterationColumns) - 1: strings.Join(iterationColumns[:len(iterationColumns)-1], ","),
}

func (i *Iteration) times() []*time.Duration {
	return []*time.Duration{&i.Start, &i.Compute, &i.Injected, &i.Push, &i.Blocked, &i.Pull}
}

// IterationsFile is IterationsName while it is written, under another name, so that a reader finds a whole file or none.
type IterationsFile struct {
	draft *durable.Draft
	w     *bufio.Writer
}

// CreateIterations begins the file in a run folder, with its header.
func (f *RunFolder) CreateIterations() (*IterationsFile, error) {
	draft, err := f.Draft(IterationsName)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", IterationsName, err)
	}
	i := &IterationsFile{draft: draft, w: bufio.NewWriter(draft)}
	return i, i.Append(IterationsHeader())
}

// IterationsHeader is the first line of the file.
func IterationsHeader() []byte { return []byte(strings.Join(iterationColumns, ",") + "\n") }

// Append writes whole rows.
func (i *IterationsFile) Append(rows []byte) error {
	if _, err := i.w.Write(rows); err != nil {
		return fmt.Errorf("%s: %w", IterationsName, err)
	}
	return nil
}

// Close gives the file its name if ok, otherwise removes it.
func (i *IterationsFile) Close(ok bool) error {
	var err error
	if ok {
		err = i.draft.End(i.w.Flush())
	} else {
		err = i.draft.Abandon()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", IterationsName, err)
	}
	return nil
}

// ReadIterations reads a file of iterations: those of each worker, in the order in which it computed them.
func ReadIterations(path string) ([][]Iteration, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := parseIterations(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// parseIterations is ParseIterations for a file that must have iterations of every worker.
func parseIterations(from io.Reader) ([][]Iteration, error) {
	all, err := ParseIterations(from)
	if err != nil {
		return nil, err
	}
	for w := range all {
		if len(all[w]) == 0 {
			return nil, fmt.Errorf("no iterations of worker %d, but some of worker %d", w, len(all)-1)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it has a header but no iterations")
	}
	return all, nil
}

// FirstRows returns the first rows of a text, at most so many. n is the number of these rows, and left the number of further ones.
func FirstRows(rows []byte, most int) (first []byte, n, left int) {
	end := 0
	for row := range bytes.Lines(rows) {
		if n == most {
			left++
			continue
		}
		n, end = n+1, end+len(row)
	}
	return rows[:end], n, left
}

// RowsOf counts the rows of each worker in a text of rows.
func RowsOf(rows []byte) map[int]int {
	of := map[int]int{}
	for row := range bytes.Lines(rows) {
		cell, _, _ := bytes.Cut(row, []byte{','})
		if worker, err := strconv.Atoi(string(cell)); err == nil {
			of[worker]++
		}
	}
	return of
}

// ParseIterations reads the text of an iterations file. It returns the iterations of each worker, up to the last one with any.
func ParseIterations(from io.Reader) ([][]Iteration, error) {
	lines := bufio.NewScanner(from)
	if !lines.Scan() && lines.Err() != nil {
		return nil, lines.Err()
	}
	columns := strings.Count(lines.Text(), ",") + 1
	if lines.Text() != headers[columns] || lines.Text() == "" {
		return nil, fmt.Errorf("line 1 is not the header of iterations: %s", strings.Join(iterationColumns, ","))
	}
	var all [][]Iteration
	for n := 2; lines.Scan(); n++ {
		if n-1 > IterationsMax {
			return nil, fmt.Errorf("more than %d rows, which no run writes", IterationsMax)
		}
		worker, it, err := parseIteration(strings.Split(lines.Text(), ","), columns)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for len(all) <= worker {
			all = append(all, nil)
		}
		all[worker] = append(all[worker], it)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// workersMax bounds the index of a worker, because every worker has a row.
const workersMax = IterationsMax

func parseIteration(row []string, columns int) (worker int, it Iteration, err error) {
	if len(row) != columns {
		return 0, it, fmt.Errorf("%d columns, must be %d", len(row), columns)
	}
	if worker, err = strconv.Atoi(row[0]); err != nil || worker < 0 || worker >= workersMax {
		return 0, it, fmt.Errorf("worker is %q, must be a number from 0", row[0])
	}
	if it.Iter, err = strconv.ParseInt(row[1], 10, 64); err != nil || it.Iter < 0 {
		return 0, it, fmt.Errorf("iter is %q, must be a number from 0", row[1])
	}
	for k, dst := range it.times() {
		s, err := strconv.ParseFloat(row[2+k], 64)
		if err != nil || !(s >= 0 && s < secondsMax) {
			return 0, it, fmt.Errorf("%s is %q, must be seconds from 0", iterationColumns[2+k], row[2+k])
		}
		*dst = time.Duration(s*1e9 + 0.5)
	}
	if columns == len(iterationColumns) {
		if it.Samples, err = strconv.Atoi(row[columns-1]); err != nil || it.Samples < 0 || it.Samples > samplesMax {
			return 0, it, fmt.Errorf("samples is %q, must be a number from 0 to %d", row[columns-1], samplesMax)
		}
	}
	return worker, it, nil
}

// samplesMax is the largest batch that the configuration accepts.
const samplesMax = 1_000_000_000

// secondsMax is 31 years; more than nine times as much would not fit a Duration.
const secondsMax = 1e9
