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

	"fluentps/ps/durable"
)

// IterationsName is the file of a run folder that says how long each iteration of each worker took.
const IterationsName = "iterations.csv"

// IterationsMax bounds the rows of IterationsName, and IterationsOfWorkerMax those of one worker.
const (
	IterationsMax         = 1_000_000
	IterationsOfWorkerMax = 100_000
	iterationsBytesMax    = 200 * IterationsMax // more than the longest rows have
)

// IterationBytes is what one Iteration takes in memory.
const IterationBytes = 56

// Iteration is one iteration of one worker, and the wait behind it.
type Iteration struct {
	Iter     int64         // index of the iteration
	Start    time.Duration // since training began; later by what forward waited for layers, which counts to the iteration before
	Compute  time.Duration // forward and backward, with the injected slowness
	Injected time.Duration // of that, what was slept because faults asked for it, as the clock says
	Push     time.Duration // handing gradients to the transport, between the layers of backward
	Blocked  time.Duration // then, and between layers of the next forward: until the last reply began
	Pull     time.Duration // then: until the parameters were in
}

// Own is how long the worker computed, without the slowness that was injected.
func (i *Iteration) Own() time.Duration { return max(0, i.Compute+i.Push-i.Injected) }

// End is when the last gradient was ready, since training began.
func (i *Iteration) End() time.Duration { return i.Start + i.Compute + i.Push }

// Recorder keeps the first iterations of one worker. It belongs to one goroutine at a time.
type Recorder struct {
	Max     int   // no more iterations are kept
	LeftOut int64 // iterations that found no room

	blocks [][]Iteration // all but the last are full, so that nothing is ever copied
	n      int
}

// recorderBlock is the iterations that a Recorder takes memory for at a time, and puts into one text.
const recorderBlock = 4096

// Add keeps an iteration whose wait is not known yet.
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

// Waited says how long the worker waited after the iteration that was added last.
func (r *Recorder) Waited(blocked, pull time.Duration) {
	if r.n == 0 || r.LeftOut > 0 {
		return
	}
	last := r.blocks[len(r.blocks)-1]
	last[len(last)-1].Blocked, last[len(last)-1].Pull = blocked, pull
}

// Len is the number of iterations kept.
func (r *Recorder) Len() int { return r.n }

// Chunks is the number of texts that Chunk makes.
func (r *Recorder) Chunks() int { return len(r.blocks) }

// ChunksOf is the number of texts that n iterations make.
func ChunksOf(n int) int { return (n + recorderBlock - 1) / recorderBlock }

// Chunk is the k-th text of the rows of a worker, without the header.
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
		b = append(b, '\n')
	}
	return b
}

// iterationColumns are the columns of the file; the times are those of Iteration.times, in its order.
var iterationColumns = []string{"worker", "iter", "start_s", "compute_s", "injected_s", "push_s", "blocked_s", "pull_s"}

func (i *Iteration) times() []*time.Duration {
	return []*time.Duration{&i.Start, &i.Compute, &i.Injected, &i.Push, &i.Blocked, &i.Pull}
}

// IterationsFile is IterationsName while it is written: under another name, so that a reader finds it whole or
// not at all.
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

// Close gives the file its name if all went well, else removes it.
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

// parseIterations reads what a file of iterations holds: some of every worker.
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
		return nil, errors.New("it has a header and no iterations")
	}
	return all, nil
}

// FirstRows are the first rows of a text of rows, at most so many; n is how many those are, and left how many are behind them.
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

// ParseIterations reads the text of a file of iterations: those of each worker up to the last that has any.
func ParseIterations(from io.Reader) ([][]Iteration, error) {
	lines := bufio.NewScanner(from)
	head := strings.Join(iterationColumns, ",")
	if !lines.Scan() && lines.Err() != nil {
		return nil, lines.Err()
	}
	if lines.Text() != head {
		return nil, fmt.Errorf("line 1 is not the header of iterations: %s", head)
	}
	var all [][]Iteration
	for n := 2; lines.Scan(); n++ {
		if n-1 > IterationsMax {
			return nil, fmt.Errorf("more than %d rows, which no run writes", IterationsMax)
		}
		worker, it, err := parseIteration(strings.Split(lines.Text(), ","))
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

// workersMax is more workers than a file may have rows.
const workersMax = IterationsMax

func parseIteration(row []string) (worker int, it Iteration, err error) {
	if len(row) != len(iterationColumns) {
		return 0, it, fmt.Errorf("%d columns, must be %d", len(row), len(iterationColumns))
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
	return worker, it, nil
}

// secondsMax is 31 years; more than nine times as much would not fit a Duration.
const secondsMax = 1e9
