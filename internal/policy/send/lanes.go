package send

import (
	"cmp"
	"slices"
)

// lanes hold the waiting pieces, separately for each destination. For one destination the first layer is the most
// urgent, and within a layer the piece that was handed first. This order has no ties, whatever the order of handing.
//
// Where whole is set, a shard that has begun to leave is not interrupted: its waiting pieces go first. A server answers
// a shard when all of it has landed. While backward takes less time for a layer than the link does, each new layer is
// more urgent than the one that is leaving. It would interrupt that layer, and so on with every layer until backward is
// over.
type lanes struct {
	whole         bool
	byDestination []lane // indexed by destination; as long as the largest destination seen
	held          int    // pieces that wait, over all destinations
}

type lane struct {
	waiting     []waiting // the most urgent last, since backward hands the most urgent piece last
	inFlight    int64     // bytes released and not Sent
	lastShard   int32     // the shard of the piece that was released last, -1: none
	restOfShard int       // waiting pieces of that shard
}

type waiting struct {
	piece, layer, shard int32
	bytes               int64
}

// note notes an event and returns the lane of its destination.
func (q *lanes) note(ev Event) *lane {
	for int(ev.To) >= len(q.byDestination) {
		q.byDestination = append(q.byDestination, lane{lastShard: -1})
	}
	l := &q.byDestination[ev.To]
	switch ev.Kind {
	case Handed:
		at, _ := slices.BinarySearchFunc(l.waiting, ev.Layer, func(w waiting, layer int32) int { return cmp.Compare(layer, w.layer) })
		l.waiting = slices.Insert(l.waiting, at, waiting{ev.Piece, ev.Layer, ev.Shard, ev.Bytes})
		q.held++
		if ev.Shard == l.lastShard {
			l.restOfShard++
		}
	case Sent:
		l.inFlight -= ev.Bytes
	case Forgotten:
		q.held -= len(l.waiting)
		l.waiting, l.restOfShard = l.waiting[:0], 0
	}
	return l
}

// next is the index in waiting of the piece that leaves next, and the piece's size.
func (q *lanes) next(l *lane) (at int, bytes int64, ok bool) {
	at = len(l.waiting) - 1
	if at < 0 {
		return 0, 0, false
	}
	if q.whole && l.restOfShard > 0 {
		for l.waiting[at].shard != l.lastShard {
			at--
		}
	}
	return at, l.waiting[at].bytes, true
}

// release releases the waiting piece at an index.
func (q *lanes) release(l *lane, at int, out []int32) []int32 {
	w := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.inFlight += w.bytes
	q.held--
	if q.whole {
		l.noteShard(w.shard)
	}
	return append(out, w.piece)
}

// noteShard notes that a piece of a shard leaves.
func (l *lane) noteShard(shard int32) {
	if shard == l.lastShard {
		l.restOfShard--
		return
	}
	l.lastShard, l.restOfShard = shard, 0
	for i := range l.waiting {
		if l.waiting[i].shard == shard {
			l.restOfShard++
		}
	}
}

func (q *lanes) Held() int { return q.held }

// inFlight is the number of bytes in flight, over all destinations.
func (q *lanes) inFlight() (bytes int64) {
	for i := range q.byDestination {
		bytes += q.byDestination[i].inFlight
	}
	return bytes
}
