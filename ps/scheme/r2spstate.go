package scheme

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String is one line: the round, the iterations pushed by every worker, the worker with the turn, the workers that wait
// for it, and the timetable, such as
//
//	r2sp round=3 clocks=4,3,3,left turn=w1 granted ready=w2 period=40ms gap=13.333333ms
//
// A worker that takes no turns is marked out. Skips, strays and parked pulls are left out where there are none.
func (r *rotation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "r2sp round=%d clocks=", r.round)
	for i := range r.workers {
		if i > 0 {
			b.WriteByte(',')
		}
		switch w := &r.workers[i]; {
		case w.left:
			b.WriteString("left")
		case w.suspended:
			b.WriteString(strconv.FormatInt(r.clockOf(int32(i)), 10) + "(out)")
		default:
			b.WriteString(strconv.FormatInt(r.clockOf(int32(i)), 10))
		}
	}
	if r.turn != NoWorker {
		fmt.Fprintf(&b, " turn=w%d", r.turn)
	}
	if r.granted {
		b.WriteString(" granted")
	}
	b.WriteString(r.listed(" ready=", func(w int) bool { return r.workers[w].ready }))
	for k := range r.clocks {
		b.WriteString(r.listed(fmt.Sprintf(" s%d parked=", r.shards[k]), func(w int) bool { return r.clocks[k].parked[w] >= 0 }))
	}
	if r.period > 0 {
		fmt.Fprintf(&b, " period=%v gap=%v", r.period, r.gap())
	}
	if r.skips > 0 {
		fmt.Fprintf(&b, " skips=%d", r.skips)
	}
	if r.strays > 0 {
		fmt.Fprintf(&b, " strays=%d", r.strays)
	}
	return b.String()
}

// listed lists the workers that satisfy a condition, after a head; it is empty if none does.
func (r *rotation) listed(head string, is func(w int) bool) string {
	var names []string
	for w := range r.workers {
		if is(w) {
			names = append(names, fmt.Sprintf("w%d", w))
		}
	}
	if names == nil {
		return ""
	}
	return head + strings.Join(names, ",")
}

// r2spVersion is the first byte of the saved state; each new layout takes the next number.
const r2spVersion = 2

// saveNumbers writes a version byte, the letters "r2sp", then 64-bit little-endian integers.
func saveNumbers(list []number) []byte {
	b := append([]byte{r2spVersion}, "r2sp"...)
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(x.get()))
	}
	return b
}

// loadNumbers reads back as many numbers as saveNumbers wrote. what names the data in errors; bad names damage.
func loadNumbers(what string, data []byte, list []number) (bad string, err error) {
	if len(data) < 5 || data[0] != r2spVersion || string(data[1:5]) != "r2sp" {
		return "", fmt.Errorf("r2sp: the %s of %d bytes is of another scheme, or of another layout than %d; resume with "+
			"the scheme and program that wrote it", what, len(data), r2spVersion)
	}
	d := decoder{rest: data[5:]}
	for _, x := range list {
		x.set(d.between(x.low, x.high))
	}
	if len(d.rest) != 0 {
		d.fail("bytes after its end")
	}
	return d.bad, nil
}

// MarshalBinary saves the whole state.
func (r *rotation) MarshalBinary() ([]byte, error) { return saveNumbers(r.numbers()), nil }

// UnmarshalBinary restores a state that MarshalBinary saved from the same shards and number of workers. On an error the
// state is unchanged.
func (r *rotation) UnmarshalBinary(data []byte) error {
	n := r.clone()
	bad, err := loadNumbers("saved state", data, n.numbers())
	if err != nil {
		return err
	}
	if bad == "" {
		bad = n.broken()
	}
	if bad != "" {
		return fmt.Errorf("r2sp: saved state is damaged, or of other workers or shards: %s", bad)
	}
	*r = *n
	return nil
}

func (r *rotation) clone() *rotation {
	n := *r
	n.workers = append([]turnState(nil), r.workers...)
	n.clocks = nil
	for _, s := range r.clocks {
		s.clock, s.parked = append([]int64(nil), s.clock...), append([]int64(nil), s.parked...)
		n.clocks = append(n.clocks, s)
	}
	return &n
}

// number is a place in the state, with the range of its values.
type number struct {
	get       func() int64
	set       func(int64)
	low, high int64
}

// numbers lists all places of the state, in the order in which they are saved.
func (r *rotation) numbers() (list []number) {
	count := func(p *int64, low int64) {
		list = append(list, number{func() int64 { return *p }, func(x int64) { *p = x }, low, maxClock})
	}
	when := func(ps ...*time.Duration) {
		for _, p := range ps {
			list = append(list, number{func() int64 { return int64(*p) }, func(x int64) { *p = time.Duration(x) }, int64(unknown), maxClock})
		}
	}
	flag := func(ps ...*bool) {
		for _, p := range ps {
			get := func() int64 {
				if *p {
					return 1
				}
				return 0
			}
			list = append(list, number{get, func(x int64) { *p = x == 1 }, 0, 1})
		}
	}
	workers := int64(len(r.workers))
	list = append(list,
		number{func() int64 { return workers }, func(int64) {}, workers, workers},
		number{func() int64 { return int64(len(r.shards)) }, func(int64) {}, int64(len(r.shards)), int64(len(r.shards))},
		number{func() int64 { return int64(r.turn) }, func(x int64) { r.turn = int32(x) }, int64(NoWorker), workers - 1})
	count(&r.round, -1)
	count(&r.epoch, 0)
	count(&r.skips, 0)
	count(&r.strays, 0)
	count(&r.rounds, 0)
	count(&r.slotCount, 0)
	flag(&r.granted, &r.redeal)
	when(&r.turnAt, &r.wakeAt, &r.now, &r.period, &r.roundStart, &r.elsewhere)
	for i := range r.workers {
		w := &r.workers[i]
		flag(&w.left, &w.suspended, &w.ready)
		count(&w.iter, 0)
		count(&w.missed, 0)
		count(&w.samples, 0)
		count(&w.drifted, 0)
		count(&w.rank, -1)
		count(&w.measured, 0)
		when(&w.readyAt, &w.firstReadyAt, &w.grantAt, &w.landedAt, &w.sentAt, &w.cycle, &w.pushMin, &w.pull, &w.plannedCycle, &w.readyDue)
		list = append(list, number{func() int64 { return int64(w.drift) }, func(x int64) { w.drift = time.Duration(x) }, -maxClock, maxClock})
	}
	for k := range r.clocks {
		s := &r.clocks[k]
		count(&s.v, 0)
		for w := range r.workers {
			count(&s.clock[w], 0)
			count(&s.parked[w], -1)
		}
	}
	return list
}

// broken names the first invariant that a decoded state violates, and fills in the counts.
func (r *rotation) broken() string {
	switch {
	case r.period > 0 && (r.slotCount < 1 || r.period < time.Duration(r.slotCount)):
		return "a period without a gap"
	case r.turn == NoWorker && r.granted:
		return "a grant of nobody"
	case r.turn != NoWorker && (r.workers[r.turn].left || r.workers[r.turn].suspended):
		return "a turn of a worker that takes none"
	}
	for i := range r.workers {
		switch w := &r.workers[i]; {
		case w.left && (w.ready || w.suspended):
			return "a worker that has left and waits"
		case w.ready && w.suspended:
			return "a worker that waits and takes no turns"
		case w.ready && r.granted && int(r.turn) == i:
			return "a worker that waits for the grant that it has"
		case w.rank >= r.slotCount:
			return "a slot beyond the last"
		}
	}
	for k := range r.clocks {
		s := &r.clocks[k]
		for w, c := range s.clock {
			gone := r.workers[w].left
			if !gone && c < s.v || s.parked[w] >= 0 && (gone || r.keys.SkipAfter > 0 || s.parked[w] > c || s.parked[w]-s.v <= 1) {
				return "a clock below v, or a delayed pull that should be answered, or that cannot have arrived"
			}
		}
		if r.recount(s); s.atMin == 0 && r.anyLive() {
			return "no worker at v"
		}
	}
	return ""
}
