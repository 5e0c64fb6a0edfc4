package timeline

import (
	"encoding/json"
	"strconv"
	"time"
)

// The text of a trace: one event a line. A line is an object behind a comma, so that lines of several ranks follow each other in one
// list. Times are in microseconds with three decimals.
//
//	X        a span          ts, dur
//	s, t, f  an arrow        s begins it, t leads it on, f ends it; id names it; it belongs to the span of its stream around ts
//	M        names and order of ranks and streams

// About says what a rank is, and how well its clock is known.
type About struct {
	Role, Host string
	Clock      Clock
	// Apart says of each worker that its clock is not aligned, so that no arrow leads to it; nil: of none.
	Apart []bool
}

// writer makes the text of one rank.
type writer struct {
	r      *Rank
	about  About
	arrows bool           // of this rank are drawn
	named  map[int16]bool // streams whose names were written
	layers []string       // names as the inside of a JSON text
	shards []string
}

func newWriter(r *Rank, about About) *writer {
	return &writer{r: r, about: about, arrows: about.Clock.Aligned, named: map[int16]bool{}, layers: escaped(r.Layers),
		shards: escaped(r.Shards)}
}

// escaped returns texts as they stand between the quotes of a JSON text.
func escaped(texts []string) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		q := quoted(t)
		all[i] = q[1 : len(q)-1]
	}
	return all
}

// quoted is a text in JSON. Nothing in it can end the text, and no byte of it is a command to a terminal.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text always has a JSON form
	}
	return string(b)
}

// looks are the names and categories of the kinds, and what their What is.
var looks = [kinds]struct {
	name, category string
	of             byte // layer, shard or bucket: 'l', 's', 'b'; 0: nothing
}{
	Forward: {"forward", "compute", 0}, Backward: {"backward", "compute", 0}, LayerForward: {"forward", "compute", 'l'},
	LayerBackward: {"backward", "compute", 'l'},
	HandOver:      {"hand over", "compute", 'l'}, Blocked: {"blocked", "wait", 0}, Read: {"pull", "wait", 0},
	Step: {"step", "compute", 0}, Task: {"compute", "compute", 0},
	Push: {"push", "push", 's'}, Pull: {"pull", "pull", 's'}, Sum: {"sum bucket", "push", 'b'},
	Fold: {"fold", "serve", 's'}, Commit: {"commit", "serve", 's'}, Reply: {"reply", "serve", 's'},
}

// head are the first lines of a rank: its name, and how well its clock is known.
func (w *writer) head(b []byte) []byte {
	name := "rank " + strconv.Itoa(w.r.Me) + " " + w.about.Role
	if w.about.Host != "" {
		name += " on " + w.about.Host
	}
	b = w.meta(b, -1, "process_name", `"name":`+quoted(name))
	b = w.meta(b, -1, "process_labels", `"labels":`+quoted(w.about.Clock.Text()))
	b = w.meta(b, -1, "process_sort_index", `"sort_index":`+strconv.Itoa(w.r.Me))
	return w.meta(b, -1, "fluentps_clock", w.about.Clock.fields())
}

func (w *writer) meta(b []byte, stream int16, name, args string) []byte {
	b = append(append(append(b, `,{"ph":"M","name":"`...), name...), `","pid":`...)
	b = strconv.AppendInt(b, int64(w.r.Me), 10)
	if stream >= 0 {
		b = strconv.AppendInt(append(b, `,"tid":`...), int64(stream), 10)
	}
	return append(append(append(b, `,"args":{`...), args...), "}}\n"...)
}

func streamName(s int16) string {
	switch {
	case s == streamCompute:
		return "compute"
	case s == streamServe:
		return "serve"
	case s >= streamPull:
		return "pulls " + strconv.Itoa(int(s-streamPull)+1)
	}
	return "pushes " + strconv.Itoa(int(s-streamPush)+1)
}

// lines appends the lines of events from..till-1, up to the first that is not written. It returns the first event without lines.
func (w *writer) lines(b []byte, from, till int) ([]byte, int) {
	for ; from < till && w.r.events[from].ready.Load(); from++ {
		b = w.line(b, &w.r.events[from].span)
	}
	return b, from
}

func (w *writer) line(b []byte, e *span) []byte {
	if !w.named[e.stream] {
		w.named[e.stream] = true
		b = w.meta(b, e.stream, "thread_name", `"name":"`+streamName(e.stream)+`"`)
		b = w.meta(b, e.stream, "thread_sort_index", `"sort_index":`+strconv.Itoa(int(e.stream)))
	}
	kind := &looks[e.kind]
	b = append(append(b, `,{"ph":"X","name":"`...), kind.name...)
	switch {
	case kind.of == 'l' && int(e.what) < len(w.layers):
		b = append(append(b, ' '), w.layers[e.what]...)
	case kind.of == 's' && int(e.what) < len(w.shards):
		b = append(append(b, ' '), w.shards[e.what]...)
	case kind.of != 0:
		b = strconv.AppendInt(append(b, ' '), int64(e.what), 10)
	}
	b = append(append(append(b, `","cat":"`...), kind.category...), '"')
	b = w.place(b, e.stream, e.from)
	b = appendMicros(append(b, `,"dur":`...), w.about.Clock.At(e.till)-w.about.Clock.At(e.from))
	b = strconv.AppendInt(append(b, `,"args":{"iteration":`...), e.iter, 10)
	if e.worker >= 0 && kind.of == 's' {
		b = strconv.AppendInt(append(b, `,"worker":`...), int64(e.worker), 10)
	}
	b = append(b, "}}\n"...)
	if e.arrow && w.arrows && (int(e.worker) >= len(w.about.Apart) || !w.about.Apart[e.worker]) {
		b = w.arrow(b, e)
	}
	return b
}

// place appends where an event belongs, and its time.
func (w *writer) place(b []byte, stream int16, at time.Duration) []byte {
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(w.r.Me), 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), int64(stream), 10)
	return appendMicros(append(b, `,"ts":`...), w.about.Clock.At(at))
}

// arrow appends the event of an arrow: its start at a push, its way through a fold and a reply, its end at a pull.
func (w *writer) arrow(b []byte, e *span) []byte {
	phase := byte('t')
	switch e.kind {
	case Push:
		phase = 's'
	case Pull:
		phase = 'f'
	}
	b = append(append(append(b, `,{"ph":"`...), phase), `","name":"push","cat":"way","id":"0x`...)
	id := (uint64(e.worker)*uint64(len(w.shards))+uint64(e.what))<<40 | uint64(e.push)
	b = append(strconv.AppendUint(b, id, 16), '"') // Perfetto reads a number to the base 16
	if phase == 'f' {
		b = append(b, `,"bp":"e"`...)
	}
	return append(w.place(b, e.stream, e.tip), "}\n"...)
}

// appendMicros appends a time in microseconds with three decimals, which JSON readers keep exactly for years.
func appendMicros(b []byte, d time.Duration) []byte {
	n := int64(d)
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, n/1000, 10)
	return append(b, '.', byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
}
