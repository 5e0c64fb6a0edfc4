package scheme

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// median sorts xs, which are at least one, and returns the one in the middle, of an even number the lower one.
func median(xs []time.Duration) time.Duration {
	slices.Sort(xs)
	return xs[(len(xs)-1)/2]
}

// text shows the version, the workers that have arrived, those that say that they wait elsewhere, and the end of the grace
// period, such as
//
//	version=3 arrived=w0,w2 waits=w1 until=130ms
func (l *rounds) text(b *strings.Builder) {
	fmt.Fprintf(b, " version=%d", l.version)
	head := " arrived="
	for w, ok := range l.arrived {
		if ok {
			fmt.Fprintf(b, "%sw%d", head, w)
			head = ","
		}
	}
	head = " waits="
	for w, ok := range l.waits {
		if ok {
			fmt.Fprintf(b, "%sw%d", head, w)
			head = ","
		}
	}
	if l.until != unknown {
		fmt.Fprintf(b, " until=%v", l.until)
	}
}

// save writes 64-bit integers: the version, the times of the round, per worker whether it has arrived (1), was asked (2)
// and waits elsewhere (4), and the landing of the first push of its version, and the lags. A time that is not known is -1.
func (l *rounds) save(b []byte) []byte {
	put := func(x int64) { b = binary.LittleEndian.AppendUint64(b, uint64(x)) }
	flag := func(ok bool) {
		if ok {
			put(1)
		} else {
			put(0)
		}
	}
	put(l.version)
	put(int64(l.began))
	put(int64(l.first))
	put(int64(l.until))
	flag(l.twice)
	for w := range l.arrived {
		bits := int64(0)
		for k, is := range []bool{l.arrived[w], l.asked[w], l.waits[w]} {
			if is {
				bits |= 1 << k
			}
		}
		put(bits)
		put(int64(l.since[w]))
	}
	return l.saveLags(b)
}

func (l *rounds) load(d *decoder) limit {
	when := func() time.Duration { return time.Duration(d.between(int64(unknown), maxClock)) }
	n := l.blank()
	n.version, n.began, n.first, n.until = d.natural(), when(), when(), when()
	n.twice = d.between(0, 1) == 1
	for w := range n.arrived {
		bits := d.between(0, 7)
		n.arrived[w], n.asked[w], n.waits[w], n.since[w] = bits&1 != 0, bits&2 != 0, bits&4 != 0, when()
	}
	n.readLags(d)
	return n
}

// blank is a limit with the keys of this one, and nothing else.
func (l *rounds) blank() *rounds {
	return &rounds{fixed: l.fixed, keys: l.keys, quorum: l.quorum, arrived: make([]bool, len(l.arrived)), asked: make([]bool, len(l.arrived)),
		waits: make([]bool, len(l.arrived)), since: make([]time.Duration, len(l.since))}
}

// saveLags writes the lags, the oldest first: the memory of quorum, which a resumed run can use.
func (l *rounds) saveLags(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(l.lags)))
	for k := range l.lags {
		b = binary.LittleEndian.AppendUint64(b, uint64(l.lags[(l.oldestLag+k)%len(l.lags)]))
	}
	return b
}

// loadLags returns a copy of this limit with other lags.
func (l *rounds) loadLags(d *decoder) limit {
	n := *l
	n.arrived, n.asked, n.waits, n.since, n.sorted = slices.Clone(l.arrived), slices.Clone(l.asked),
		slices.Clone(l.waits), slices.Clone(l.since), nil
	n.readLags(d)
	return &n
}

func (l *rounds) readLags(d *decoder) {
	l.lags, l.oldestLag = nil, 0
	for range d.between(0, int64(min(l.window(), len(d.rest)/8))) {
		l.lags = append(l.lags, time.Duration(d.natural()))
	}
}

// broken names the first invariant that a decoded state violates, and fills in the counts.
func (l *rounds) broken(g *gate) string {
	l.arrivals, l.missing, l.waiting = 0, 0, 0
	for w, ok := range l.arrived {
		if l.waits[w] {
			l.waiting++
		}
		switch {
		case l.waits[w] && (!l.asked[w] || ok || g.left[w]) || l.asked[w] && (g.left[w] || !l.twice):
			return "a worker that was not asked whether it waits elsewhere"
		}
		switch {
		case ok:
			l.arrivals++
		case !g.left[w]:
			l.missing++
		}
	}
	for _, p := range g.parked {
		if !l.arrived[p.worker] {
			return "a delayed pull of a worker that has not arrived"
		}
	}
	switch {
	case l.arrivals > 0 && (l.missing == 0 || g.live == 0):
		return "a round that should have ended"
	case l.arrivals == 0 && (l.twice || l.until != unknown):
		return "a grace period before anybody has arrived"
	case l.arrivals > 0 && l.first == unknown:
		return "an arrival before the first push"
	}
	return ""
}
