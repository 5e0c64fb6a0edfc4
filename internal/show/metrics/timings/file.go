package timings

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
)

// FileName is the file of a run folder with the times of each iteration of each worker.
const FileName = "iterations.csv"

// RowsMax bounds the rows of FileName, and RowsOfWorkerMax those of one worker.
const (
	RowsMax         = 1_000_000
	RowsOfWorkerMax = 100_000
	bytesMax        = 200 * RowsMax // no row is as long as 200 bytes
)

// columnNames are the columns of the file. The times have the order of Iteration.times. Earlier versions wrote no samples.
var columnNames = []string{"worker", "iter", "start_s", "compute_s", "injected_s", "push_s", "blocked_s", "pull_s", "samples"}

// headers are the first lines that a file may have, by the number of columns.
var headers = map[int]string{
	len(columnNames):     strings.Join(columnNames, ","),
	len(columnNames) - 1: strings.Join(columnNames[:len(columnNames)-1], ","),
}

// File is FileName while it is written, under another name, so that a reader finds a whole file or none.
type File struct {
	draft *durable.Draft
	w     *bufio.Writer
}

// Create begins the file in a run folder, with its header.
func Create(in *durable.Folder) (*File, error) {
	draft, err := in.Draft(FileName)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	i := &File{draft: draft, w: bufio.NewWriter(draft)}
	return i, i.Append(Header())
}

// Header is the first line of the file.
func Header() []byte { return []byte(strings.Join(columnNames, ",") + "\n") }

// Append writes whole rows.
func (i *File) Append(rows []byte) error {
	if _, err := i.w.Write(rows); err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	return nil
}

// Close gives the file its name if ok, otherwise removes it.
func (i *File) Close(ok bool) error {
	var err error
	if ok {
		err = i.draft.End(i.w.Flush())
	} else {
		err = i.draft.Abandon()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	return nil
}

// Kept returns the rows of the iterations file that a run keeps when it resumes: those of each worker w before iteration
// starts[w]. lacks is the number of iterations before these that have no row. A part of a run writes the file when it ends, so a
// part that was killed leaves no rows, and perhaps no file.
func Kept(in *durable.Folder, starts []int64) (kept []byte, lacks int64, err error) {
	for _, n := range starts {
		lacks += n
	}
	text, err := in.ReadFile(FileName, bytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lacks, nil
	}
	if err != nil {
		return nil, lacks, fmt.Errorf("%s: %w; make it readable, or remove it, which loses the times of the earlier "+
			"iterations", FileName, err)
	}
	rows, found := bytes.CutPrefix(text, Header())
	samples := ""
	if !found { // rows of an earlier version
		samples = ",0"
		rows, found = bytes.CutPrefix(text, []byte(headers[len(columnNames)-1]+"\n"))
	}
	if !found {
		return nil, lacks, fmt.Errorf("%s: line 1 is not the header of iterations, so no rows are added to it; remove "+
			"the file, or resume with the program that wrote it", FileName)
	}
	for row := range bytes.Lines(rows) {
		cells := bytes.SplitN(row, []byte{','}, 3)
		if len(cells) < 3 {
			continue
		}
		worker, errW := strconv.Atoi(string(cells[0]))
		iter, errI := strconv.ParseInt(string(cells[1]), 10, 64)
		if errW == nil && errI == nil && worker >= 0 && worker < len(starts) && iter < starts[worker] {
			kept = append(append(append(kept, bytes.TrimSuffix(row, []byte{'\n'})...), samples...), '\n')
			lacks--
		}
	}
	return kept, lacks, nil
}

// Read reads a file of iterations: those of each worker, in the order in which it computed them.
func Read(path string) ([][]Iteration, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := parseAll(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// parseAll is Parse for a file that must have iterations of every worker.
func parseAll(from io.Reader) ([][]Iteration, error) {
	all, err := Parse(from)
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

// Parse reads the text of an iterations file. It returns the iterations of each worker, up to the last one with any.
func Parse(from io.Reader) ([][]Iteration, error) {
	lines := bufio.NewScanner(from)
	if !lines.Scan() && lines.Err() != nil {
		return nil, lines.Err()
	}
	columns := strings.Count(lines.Text(), ",") + 1
	if lines.Text() != headers[columns] || lines.Text() == "" {
		return nil, fmt.Errorf("line 1 is not the header of iterations: %s", strings.Join(columnNames, ","))
	}
	var all [][]Iteration
	for n := 2; lines.Scan(); n++ {
		if n-1 > RowsMax {
			return nil, fmt.Errorf("more than %d rows, which no run writes", RowsMax)
		}
		worker, it, err := parseRow(strings.Split(lines.Text(), ","), columns)
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
const workersMax = RowsMax

func parseRow(row []string, columns int) (worker int, it Iteration, err error) {
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
			return 0, it, fmt.Errorf("%s is %q, must be seconds from 0", columnNames[2+k], row[2+k])
		}
		*dst = time.Duration(s*1e9 + 0.5)
	}
	if columns == len(columnNames) {
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
