package send

import (
	"cmp"
	"slices"
)

// lanes keep what waits, each destination's pieces apart. Of one destination the first layer is the most urgent, and of
// one layer what was handed first: an order without ties, whatever the order of handing.
type lanes struct {
	of   []lane // by destination; as many as have been named
	held int    // pieces that wait, over all of them
}

type lane struct {
	waiting []waiting // the most urgent last: backward hands the most urgent piece last
	flying  int64     // bytes let go and not Sent
}

type waiting struct {
	piece, layer int32
	bytes        int64
}

// take notes an event of one destination.
func (q *lanes) take(ev Event) *lane {
	for int(ev.To) >= len(q.of) {
		q.of = append(q.of, lane{})
	}
	l := &q.of[ev.To]
	switch ev.Kind {
	case Handed:
		at, _ := slices.BinarySearchFunc(l.waiting, ev.Layer, func(w waiting, layer int32) int { return cmp.Compare(layer, w.layer) })
		l.waiting = slices.Insert(l.waiting, at, waiting{ev.Piece, ev.Layer, ev.Bytes})
		q.held++
	case Sent:
		l.flying -= ev.Bytes
	case Forgotten:
		q.held -= len(l.waiting)
		l.waiting = l.waiting[:0]
	}
	return l
}

// next is the size of the most urgent piece that waits.
func (l *lane) next() (bytes int64, ok bool) {
	if n := len(l.waiting); n > 0 {
		return l.waiting[n-1].bytes, true
	}
	return 0, false
}

// let lets the most urgent piece go.
func (q *lanes) let(l *lane, out []int32) []int32 {
	n := len(l.waiting) - 1
	out = append(out, l.waiting[n].piece)
	l.flying += l.waiting[n].bytes
	l.waiting = l.waiting[:n]
	q.held--
	return out
}

func (q *lanes) Held() int { return q.held }

// flying is what is in flight, over all destinations, in bytes.
func (q *lanes) flying() (bytes int64) {
	for i := range q.of {
		bytes += q.of[i].flying
	}
	return bytes
}
