package records

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
)

// Sink writes the records of a run. Every record is one Write of one whole line or event, or a new file, and nothing is buffered. So
// neither a killed job nor a full disk leaves a torn line. A record that cannot be written is left out, and the next
// one may be written. Close closes the writer if it is an io.Closer. A Sink belongs to one goroutine at a time.
type Sink interface {
	Record(Record) error
	Close() error
}

// The names of the sinks.
const (
	sinkJSONL       = "jsonl"
	sinkCSV         = "csv"
	sinkTensorBoard = "tensorboard"
	sinkOpenMetrics = "openmetrics"
)

var sinkNames = []string{sinkJSONL, sinkCSV, sinkTensorBoard, sinkOpenMetrics}

// SinkNames lists what Open knows.
func SinkNames() []string { return slices.Clone(sinkNames) }

// Spec says where records go and how often a line is printed.
type Spec struct {
	Sinks    []string      `yaml:"sinks" values:"@sinks" doc:"forms of the metrics"`
	Digests  int64         `yaml:"digests" min:"0" doc:"versions of a shard between two checksums of its parameters in logs/rank-*.digests, which fluentps verify compares; 0: none"`
	Interval time.Duration `yaml:"interval" min:"0.1" doc:"longest time between two rows of the metrics files, and between two progress lines; both come more often at first"`
	Trace    bool          `yaml:"trace" doc:"record when each rank does what, as trace.json.gz for Perfetto"`
}

// Defaults writes the two forms that need no other program.
func Defaults() Spec { return Spec{Sinks: []string{sinkJSONL, sinkCSV}, Interval: 30 * time.Second} }

// Subject says what the records are of.
type Subject struct {
	Run   string // name of the run
	Rules []Rule // of sync, in order
	// Began is when training began, had it gone on without a pause: At of the records counts from here.
	Began time.Time
	Now   time.Time
	Start int64 // the iteration at which this part of the run begins
}

// Rule names a rule of sync.
type Rule struct{ Match, Scheme string }

// JSONL writes one JSON object per record. Absent values are left out; values that are not finite are null.
func JSONL(w io.Writer) Sink { return &jsonl{lines{w: w}} }

// CSV writes a header and one row per record, for a run with so many rules of sync. Absent values are empty; values that are
// not finite are NaN, +Inf or -Inf.
func CSV(w io.Writer, rules int) Sink { return &csv{lines: lines{w: w}, names: ColumnNames(rules)} }

// Open creates metrics.jsonl, metrics.csv, ... in a run folder for the named sinks, and returns one Sink that writes to all of
// them. An unknown name and an existing file are errors.
func Open(in *durable.Folder, names []string, of Subject) (Sink, error) {
	var all sinks
	for _, name := range names {
		s, err := openSink(in, name, of)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, s)
	}
	return all, nil
}

func unknownSink(name string) error {
	return fmt.Errorf("metrics: sink %q is not known; use some of %s", name, strings.Join(sinkNames, ", "))
}

func openSink(in *durable.Folder, name string, of Subject) (Sink, error) {
	var sink func(io.Writer) Sink
	switch name {
	case sinkJSONL:
		sink = JSONL
	case sinkCSV:
		sink = func(w io.Writer) Sink { return CSV(w, len(of.Rules)) }
	case sinkTensorBoard:
		return openEvents(in, of.Began)
	case sinkOpenMetrics:
		return openOpenMetrics(in, of), nil
	default:
		return nil, unknownSink(name)
	}
	file, err := in.CreateLog(sinkName(name))
	if err != nil {
		return nil, fmt.Errorf("metrics: open sink: %w", err)
	}
	return sink(file), nil
}

type sinks []Sink

// Record writes r to all sinks, even if one of them fails.
func (s sinks) Record(r Record) error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.Record(r))
	}
	return errors.Join(errs...)
}

func (s sinks) Close() error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// lines writes whole lines from a buffer that it reuses.
type lines struct {
	w   io.Writer
	buf []byte
}

// flush writes the line whole or not at all: it cuts off the part that a full disk accepted.
func (l *lines) flush() error {
	n, err := l.w.Write(l.buf)
	if err == nil {
		return nil
	}
	if f, ok := l.w.(*os.File); ok && n > 0 {
		err = errors.Join(err, cutEnd(f, int64(n)))
	}
	return fmt.Errorf("metrics: write record: %w", err)
}

func cutEnd(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate(info.Size() - n)
}

func (l *lines) Close() error {
	if c, ok := l.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

type jsonl struct{ lines }

func (s *jsonl) Record(r Record) error {
	b := append(s.buf[:0], '{')
	for c, name := range ColumnNames(len(r.Rules)) {
		v, ok := r.cell(c)
		if !ok {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, name), ':')
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
		} else {
			b = appendNumber(b, v)
		}
	}
	s.buf = append(b, "}\n"...)
	return s.flush()
}

type csv struct {
	lines
	names  []string // the columns of the file
	headed bool
}

func (s *csv) Record(r Record) error {
	if err := s.head(); err != nil {
		return err
	}
	has := ColumnNames(len(r.Rules))
	b := s.buf[:0]
	for k, name := range s.names {
		if k > 0 {
			b = append(b, ',')
		}
		if v, ok := r.cell(slices.Index(has, name)); ok {
			b = appendNumber(b, v)
		}
	}
	s.buf = append(b, '\n')
	return s.flush()
}

// head writes the header once, in a Write of its own, so that every Write is one whole line.
func (s *csv) head() error {
	if s.headed {
		return nil
	}
	s.buf = append(append(s.buf[:0], strings.Join(s.names, ",")...), '\n')
	err := s.flush()
	s.headed = err == nil
	return err
}

// Close writes the header even if there was no record, so that readers find the columns.
func (s *csv) Close() error { return errors.Join(s.head(), s.lines.Close()) }

// fixedCells is the number of columns that every record has, and iterationCell one of them.
const fixedCells, iterationCell = 4, 1

// cell returns the value of column c of ColumnNames, and whether there is one. Column -1 has none.
func (r *Record) cell(c int) (float64, bool) {
	switch c {
	case -1:
		return math.NaN(), false
	case 0:
		return float64(r.At.Microseconds()) / 1e6, true
	case 1:
		return float64(r.Iteration), true
	case 2:
		return r.Epoch, true
	case 3:
		return float64(r.Samples), true
	}
	if c < fixedCells+int(columnCount) {
		return r.Get(Column(c - fixedCells))
	}
	c -= fixedCells + int(columnCount)
	of := &r.Rules[c/len(ruleColumns)]
	if of.Pushes == 0 {
		return math.NaN(), false
	}
	return float64([...]int64{of.P50, of.P99, of.Max}[c%len(ruleColumns)]), true
}

// appendNumber writes whole numbers in full and others with nine digits, which keep every float32 exact.
func appendNumber(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	if v > 1e3 && v < 1e9 { // nine digits would cut decimals off times and rates
		return strconv.AppendFloat(b, math.Round(v*1e6)/1e6, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'g', 9, 64)
}
