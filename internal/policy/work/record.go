package work

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// RecordName is the file of a run folder with the plans that have ended, and what each rank measured under them. Another run can replay it.
const RecordName = "work.csv"

// RecordBytesMax is the size of the longest record that is read.
const RecordBytesMax = 256 << 20

// recordHeader is the first line of a record. until is the first iteration after the plan.
const recordHeader = "until,worker,batch,iterations,samples,compute_s,median_s\n"

// RecordHeader is the first line of a record.
func RecordHeader() []byte { return []byte(recordHeader) }

// AppendRecord appends the rows of a plan that has ended.
func AppendRecord(b []byte, a *Assignment, measured []Measured) []byte {
	for w, m := range measured {
		b = fmt.Appendf(b, "%d,%d,%d,%d,%d,%s,%s\n", a.Until, w, a.Batches[w], m.Iterations, m.Samples, seconds(m.Took), seconds(m.Median))
	}
	return b
}

// seconds writes a duration exactly.
func seconds(d time.Duration) string { return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second) }

// RecordBefore returns the header and the rows of plans that end before an iteration. A last line that is not whole is left out.
func RecordBefore(text []byte, until int64) []byte {
	kept := RecordHeader()
	for line := range bytes.Lines(text) {
		cell, _, _ := bytes.Cut(line, []byte{','})
		if n, err := strconv.ParseInt(string(cell), 10, 64); err == nil && n < until && bytes.HasSuffix(line, []byte{'\n'}) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// Record holds plans that have ended, by the iteration after each.
type Record map[int64]Recorded

// Recorded is a plan, by worker.
type Recorded struct {
	Batches  []int
	Measured []Measured
}

// ParseRecord reads a record of so many workers.
func ParseRecord(text []byte, workers int) (Record, error) {
	rows, ok := bytes.CutPrefix(text, RecordHeader())
	if !ok {
		return nil, fmt.Errorf("line 1 is not the header of %s: %s", RecordName, strings.TrimSpace(recordHeader))
	}
	all, n := Record{}, 1
	for line := range bytes.Lines(rows) {
		n++
		until, worker, batch, m, err := parseRow(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		of := all[until]
		if worker != len(of.Measured) || worker >= workers {
			return nil, fmt.Errorf("line %d: worker %d, but the next one of iteration %d is %d, of %d workers; take the "+
				"record of a run of %d, whole", n, worker, until, len(of.Measured), workers, workers)
		}
		all[until] = Recorded{append(of.Batches, batch), append(of.Measured, m)}
	}
	for until, of := range all {
		if n := len(of.Measured); n != workers {
			return nil, fmt.Errorf("it has %d workers at iteration %d, but %d compute; take the record of a run of %d, whole",
				n, until, workers, workers)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it has a header but no plan that has ended")
	}
	return all, nil
}

func parseRow(line string) (until int64, worker, batch int, m Measured, err error) {
	cells := strings.Split(line, ",")
	if n := strings.Count(recordHeader, ",") + 1; len(cells) != n {
		return 0, 0, 0, m, fmt.Errorf("%d cells, want %d", len(cells), n)
	}
	count := func(k int) (n int64) {
		if n, err2 := strconv.ParseInt(cells[k], 10, 64); err2 == nil && n >= 0 {
			return n
		}
		err = fmt.Errorf("cell %d is %.40q, want a count", k+1, cells[k])
		return 0
	}
	length := func(k int) time.Duration {
		if d, err2 := time.ParseDuration(cells[k] + "s"); err2 == nil && d >= 0 {
			return d
		}
		err = fmt.Errorf("cell %d is %.40q, want seconds", k+1, cells[k])
		return 0
	}
	until, worker, batch = count(0), int(min(count(1), math.MaxInt32)), int(min(count(2), math.MaxInt32))
	m = Measured{Iterations: count(3), Samples: count(4), Took: length(5), Median: length(6)}
	return until, worker, batch, m, err
}
