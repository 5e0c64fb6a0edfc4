// Package timelinetest reads traces back, strictly, by the description of Chrome's trace event format
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). It shares nothing with the writer.
package timelinetest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Span is an event of phase X. Times are in nanoseconds.
type Span struct {
	Name, Category string
	Pid, Tid       int
	From, Till     int64
	Iteration      int64
	Worker         int // -1: none
}

// Arrow is the way of one push: the events of phases s, t and f, in order of their times.
type Arrow struct {
	Phases string // s, t, f, in the order of their times
	Spans  []Span // in which they lie
}

// Clock is the metadata of a rank's clock.
type Clock struct {
	Aligned    bool    `json:"aligned"`
	ErrorUs    float64 `json:"error_us"`
	DriftUs    float64 `json:"drift_us"`
	DriftKnown bool    `json:"drift_known"`
	Why        string  `json:"why"`
}

// Trace is a trace that passed the check.
type Trace struct {
	Spans     []Span
	Arrows    map[string]*Arrow      // by id
	Processes map[int]string         // names by pid
	Threads   map[[2]int]string      // names by pid and tid
	Clocks    map[int]Clock          // by pid
	Other     map[string]any         // otherData, of a whole trace
	Closed    bool                   // the list has an end
	touches   map[string][]touchedAt // of arrows
}

type touchedAt struct {
	phase    string
	pid, tid int
	at       int64
}

// Read checks the file of a trace.
func Read(path string) (*Trace, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse checks the bytes of a trace: whole gzip members, and in them an object with a list of events, or a list that need not have an end.
func Parse(data []byte) (*Trace, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return ParseText(text)
}

// ParseText is Parse without gzip.
func ParseText(text []byte) (*Trace, error) {
	t := &Trace{Arrows: map[string]*Arrow{}, Processes: map[int]string{}, Threads: map[[2]int]string{},
		Clocks: map[int]Clock{}, touches: map[string][]touchedAt{}}
	list := bytes.TrimSpace(text)
	if bytes.HasPrefix(list, []byte("{")) {
		var whole struct {
			Unit   string          `json:"displayTimeUnit"`
			Other  map[string]any  `json:"otherData"`
			Events json.RawMessage `json:"traceEvents"`
		}
		if err := strict(list, &whole); err != nil {
			return nil, err
		}
		if whole.Unit != "ms" && whole.Unit != "ns" {
			return nil, fmt.Errorf("displayTimeUnit is %q", whole.Unit)
		}
		t.Other, t.Closed, list = whole.Other, true, whole.Events
	} else if t.Closed = bytes.HasSuffix(list, []byte("]")); !t.Closed {
		list = append(slices.Clone(list), ']')
	}
	var events []json.RawMessage
	if err := json.Unmarshal(list, &events); err != nil {
		return nil, err
	}
	for i, e := range events {
		if err := t.event(e); err != nil {
			return nil, fmt.Errorf("event %d, %s: %w", i, e, err)
		}
	}
	return t, errors.Join(t.named(), t.nested(), t.led())
}

func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows")
	}
	return nil
}

func (t *Trace) event(text []byte) error {
	var phase struct {
		Ph string `json:"ph"`
	}
	if err := json.Unmarshal(text, &phase); err != nil {
		return err
	}
	switch phase.Ph {
	case "X":
		return t.span(text)
	case "s", "t", "f":
		return t.touch(text)
	case "M":
		return t.meta(text)
	}
	return fmt.Errorf("phase %q", phase.Ph)
}

// nanos reads microseconds, which must have a whole number of nanoseconds.
func nanos(us json.Number) (int64, error) {
	whole, part, _ := strings.Cut(us.String(), ".")
	if len(part) > 3 {
		return 0, fmt.Errorf("%s us is no whole number of nanoseconds", us)
	}
	n, err := json.Number(whole + (part + "000")[:3]).Int64()
	return n, err
}

func (t *Trace) span(text []byte) error {
	var e struct {
		Ph, Name, Cat string
		Pid, Tid      *int
		Ts, Dur       json.Number
		Args          struct {
			Iteration *int64
			Worker    *int
		}
	}
	if err := strict(text, &e); err != nil {
		return err
	}
	from, err := nanos(e.Ts)
	dur, err2 := nanos(e.Dur)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if e.Pid == nil || e.Tid == nil || e.Name == "" || e.Cat == "" || dur < 0 || from < 0 || e.Args.Iteration == nil {
		return errors.New("a field is missing or negative")
	}
	s := Span{Name: e.Name, Category: e.Cat, Pid: *e.Pid, Tid: *e.Tid, From: from, Till: from + dur, Iteration: *e.Args.Iteration, Worker: -1}
	if e.Args.Worker != nil {
		s.Worker = *e.Args.Worker
	}
	t.Spans = append(t.Spans, s)
	return nil
}

func (t *Trace) touch(text []byte) error {
	var e struct {
		Ph, Name, Cat, ID string
		Bp                *string
		Pid, Tid          *int
		Ts                json.Number
	}
	if err := strict(text, &e); err != nil {
		return err
	}
	at, err := nanos(e.Ts)
	if err != nil {
		return err
	}
	if e.Pid == nil || e.Tid == nil || e.Name == "" || e.Cat == "" || e.ID == "" || (e.Bp != nil) != (e.Ph == "f") ||
		e.Bp != nil && *e.Bp != "e" {
		return errors.New("a field is missing, or bp is wrong")
	}
	t.touches[e.ID] = append(t.touches[e.ID], touchedAt{e.Ph, *e.Pid, *e.Tid, at})
	return nil
}

func (t *Trace) meta(text []byte) error {
	var e struct {
		Ph, Name string
		Pid, Tid *int
		Args     json.RawMessage
	}
	if err := strict(text, &e); err != nil {
		return err
	}
	var name struct{ Name string }
	if e.Pid == nil || json.Unmarshal(e.Args, &name) != nil {
		return errors.New("no pid, or args are no object")
	}
	switch {
	case e.Name == "process_name" && e.Tid == nil && name.Name != "" && t.Processes[*e.Pid] == "":
		t.Processes[*e.Pid] = name.Name
	case e.Name == "thread_name" && e.Tid != nil && name.Name != "" && t.Threads[[2]int{*e.Pid, *e.Tid}] == "":
		t.Threads[[2]int{*e.Pid, *e.Tid}] = name.Name
	case e.Name == "fluentps_clock" && e.Tid == nil:
		var c Clock
		if err := strict(e.Args, &c); err != nil {
			return err
		}
		t.Clocks[*e.Pid] = c
	case slices.Contains([]string{"process_labels", "process_sort_index", "thread_sort_index", "fluentps_run"}, e.Name):
	default:
		return errors.New("unknown, or told twice")
	}
	return nil
}

// named checks that every rank and every row has a name, and every rank a clock.
func (t *Trace) named() error {
	for _, s := range t.Spans {
		if _, hasClock := t.Clocks[s.Pid]; t.Processes[s.Pid] == "" || t.Threads[[2]int{s.Pid, s.Tid}] == "" || !hasClock {
			return fmt.Errorf("pid %d, tid %d has no name or no clock", s.Pid, s.Tid)
		}
	}
	return nil
}

// nested checks that two spans of a row lie apart, or one in the other.
func (t *Trace) nested() error {
	slices.SortStableFunc(t.Spans, func(a, b Span) int {
		for _, d := range []int64{int64(a.Pid - b.Pid), int64(a.Tid - b.Tid), a.From - b.From, b.Till - a.Till} {
			if d != 0 {
				return int(max(-1, min(1, d)))
			}
		}
		return 0
	})
	var open []Span
	for _, s := range t.Spans {
		for len(open) > 0 && (open[len(open)-1].Pid != s.Pid || open[len(open)-1].Tid != s.Tid || open[len(open)-1].Till <= s.From) {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 && s.Till > open[n-1].Till {
			return fmt.Errorf("two spans of a row overlap: %+v and %+v", open[n-1], s)
		}
		open = append(open, s)
	}
	return nil
}

// led checks that each end of an arrow lies in a span, that an arrow begins once and ends at most once, and that it leads on in time where
// all clocks are aligned.
func (t *Trace) led() error {
	for id, all := range t.touches {
		slices.SortStableFunc(all, func(a, b touchedAt) int { return int(max(-1, min(1, a.at-b.at))) })
		a := &Arrow{}
		for _, q := range all {
			s, ok := t.at(q)
			if !ok {
				return fmt.Errorf("arrow %s: %+v lies in no span", id, q)
			}
			a.Phases += q.phase
			a.Spans = append(a.Spans, s)
		}
		if strings.Count(a.Phases, "s") > 1 || strings.Count(a.Phases, "f") > 1 || strings.LastIndex(a.Phases, "s") > 0 ||
			strings.Contains(a.Phases, "f") && strings.Index(a.Phases, "f") != len(a.Phases)-1 {
			return fmt.Errorf("arrow %s has the phases %s: %+v", id, a.Phases, all)
		}
		t.Arrows[id] = a
	}
	return nil
}

// at finds the innermost span of a row at a time.
func (t *Trace) at(q touchedAt) (Span, bool) {
	// The first span behind the time; those before it begin at the time or earlier.
	n, _ := slices.BinarySearchFunc(t.Spans, q, func(s Span, q touchedAt) int {
		for _, d := range []int64{int64(s.Pid - q.pid), int64(s.Tid - q.tid), s.From - q.at} {
			if d != 0 {
				return int(max(-1, min(1, d)))
			}
		}
		return -1
	})
	for n--; n >= 0 && t.Spans[n].Pid == q.pid && t.Spans[n].Tid == q.tid; n-- {
		if t.Spans[n].Till >= q.at {
			return t.Spans[n], true
		}
	}
	return Span{}, false
}

// Figures are counts of what a trace shows.
type Figures struct {
	Ranks, Spans int
	Pushes       int // spans of pushes
	Overlapped   int // of these: begun and handed over while backward of their iteration still ran
	Whole        int // arrows from a push by a fold and a reply to a pull
	Loose        int // arrows that do not begin at a push
}

// Figures counts.
func (t *Trace) Figures() (f Figures) {
	f.Ranks, f.Spans = len(t.Processes), len(t.Spans)
	type pass struct {
		pid  int
		iter int64
	}
	backward := map[pass]Span{}
	for _, s := range t.Spans {
		if s.Name == "backward" {
			backward[pass{s.Pid, s.Iteration}] = s
		}
	}
	for _, s := range t.Spans {
		if s.Category != "push" {
			continue
		}
		f.Pushes++
		if b, ok := backward[pass{s.Pid, s.Iteration}]; ok && b.From < s.From && s.From < b.Till {
			f.Overlapped++
		}
	}
	for _, a := range t.Arrows {
		switch {
		case !strings.HasPrefix(a.Phases, "s"):
			f.Loose++
		case strings.HasSuffix(a.Phases, "f") && a.passes("fold") && a.passes("reply"):
			f.Whole++
		}
	}
	return f
}

func (a *Arrow) passes(what string) bool {
	return slices.ContainsFunc(a.Spans, func(s Span) bool { return strings.HasPrefix(s.Name, what+" ") })
}
