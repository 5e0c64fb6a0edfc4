package send

import (
	"cmp"
	"slices"
)

// lanes keep what waits, each destination's pieces apart. Of one destination the first layer is the most urgent, and of
// one layer what was handed first: an order without ties, whatever the order of handing.
//
// Where shards are whole, one that has begun to leave is not interrupted: what waits of it goes before all else. A server
// answers a shard when all of it has landed. While backward takes less time for a layer than the link, each new layer is
// more urgent than the one that is leaving, and would leave it half sent, and so every layer, until backward is over.
type lanes struct {
	whole bool
	of    []lane // by destination; as many as have been named
	held  int    // pieces that wait, over all of them
}

type lane struct {
	waiting []waiting // the most urgent last: backward hands the most urgent piece last
	flying  int64     // bytes let go and not Sent
	begun   int32     // the shard of the piece that was let go last, -1: none
	rest    int       // pieces of that shard that wait
}

type waiting struct {
	piece, layer, shard int32
	bytes               int64
}

// take notes an event of one destination.
func (q *lanes) take(ev Event) *lane {
	for int(ev.To) >= len(q.of) {
		q.of = append(q.of, lane{begun: -1})
	}
	l := &q.of[ev.To]
	switch ev.Kind {
	case Handed:
		at, _ := slices.BinarySearchFunc(l.waiting, ev.Layer, func(w waiting, layer int32) int { return cmp.Compare(layer, w.layer) })
		l.waiting = slices.Insert(l.waiting, at, waiting{ev.Piece, ev.Layer, ev.Shard, ev.Bytes})
		q.held++
		if ev.Shard == l.begun {
			l.rest++
		}
	case Sent:
		l.flying -= ev.Bytes
	case Forgotten:
		q.held -= len(l.waiting)
		l.waiting, l.rest = l.waiting[:0], 0
	}
	return l
}

// next is the place of the piece that is to go next, and its size.
func (q *lanes) next(l *lane) (at int, bytes int64, ok bool) {
	at = len(l.waiting) - 1
	if at < 0 {
		return 0, 0, false
	}
	if q.whole && l.rest > 0 {
		for l.waiting[at].shard != l.begun {
			at--
		}
	}
	return at, l.waiting[at].bytes, true
}

// let lets the piece at a place go.
func (q *lanes) let(l *lane, at int, out []int32) []int32 {
	w := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.flying += w.bytes
	q.held--
	if q.whole {
		l.begin(w.shard)
	}
	return append(out, w.piece)
}

// begin notes that a piece of a shard leaves.
func (l *lane) begin(shard int32) {
	if shard == l.begun {
		l.rest--
		return
	}
	l.begun, l.rest = shard, 0
	for i := range l.waiting {
		if l.waiting[i].shard == shard {
			l.rest++
		}
	}
}

func (q *lanes) Held() int { return q.held }

// flying is what is in flight, over all destinations, in bytes.
func (q *lanes) flying() (bytes int64) {
	for i := range q.of {
		bytes += q.of[i].flying
	}
	return bytes
}
