package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// String is one line: v, the clock of every worker, and what is held back, such as
//
//	bsp v=3 clocks=5,3,4,left staged=2 parked=w0@c5
//
// staged counts pushes that wait in their slots, pending counts pushes that are folded and not committed, and skipped
// counts iterations that were skipped. A count of 0 is left out.
func (g *gate) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s v=%d clocks=", g.name, g.v)
	for w, c := range g.clock {
		if w > 0 {
			b.WriteByte(',')
		}
		if g.left[w] {
			b.WriteString("left")
		} else {
			b.WriteString(strconv.FormatInt(c, 10))
		}
	}
	if len(g.staged) > 0 {
		fmt.Fprintf(&b, " staged=%d", len(g.staged))
	}
	if g.pendingPushes > 0 {
		fmt.Fprintf(&b, " pending=%d", g.pendingPushes)
	}
	for k, p := range g.parked {
		fmt.Fprintf(&b, "%sw%d@c%d", []string{" parked=", ","}[min(k, 1)], p.worker, p.iter)
	}
	if g.skipped > 0 {
		fmt.Fprintf(&b, " skipped=%d", g.skipped)
	}
	g.textClosings(&b)
	g.limit.text(&b)
	g.mix.text(&b)
	return b.String()
}

// gateVersion is the first byte of the saved state; each new layout takes the next number.
const gateVersion = 2

// MarshalBinary saves the whole state: the version byte, the length of the name, the name, 64-bit little-endian
// integers, and last the states of the limit and the mix.
func (g *gate) MarshalBinary() ([]byte, error) {
	b := append([]byte{gateVersion, byte(len(g.name))}, g.name...)
	put := func(xs ...int64) {
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	}
	put(int64(g.commits), int64(len(g.clock)), g.v, g.pendingPushes, g.pendingSamples, g.skipped)
	for w, c := range g.clock {
		gone := int64(0)
		if g.left[w] {
			gone = 1
		}
		put(c, gone)
	}
	put(int64(len(g.staged)))
	for _, p := range g.staged {
		put(int64(p.worker), int64(p.part), p.iter, p.samples)
	}
	put(int64(len(g.parked)))
	for _, p := range g.parked {
		put(int64(p.worker), p.iter, p.key)
	}
	return g.mix.save(g.limit.save(g.saveClosings(b))), nil
}

// UnmarshalBinary restores a state that MarshalBinary saved from the same scheme, fold order and number of workers;
// bounds and release policy may differ. On an error the state is unchanged.
func (g *gate) UnmarshalBinary(data []byte) error {
	head := len(g.name) + 2
	switch {
	case len(data) < 2:
		return fmt.Errorf("%s: saved state of %d bytes has no header; the file is damaged", g.name, len(data))
	case data[0] != gateVersion:
		return fmt.Errorf("%s: saved state has layout %d, this program reads %d; resume with the program that wrote it",
			g.name, data[0], gateVersion)
	case len(data) < head || int(data[1]) != len(g.name) || string(data[2:head]) != g.name:
		return fmt.Errorf("%s: saved state is of another scheme; resume with the scheme that wrote it", g.name)
	}
	d := decoder{rest: data[head:]}
	n := *g
	n.commits = commitMode(d.between(0, int64(byRound)))
	workers := d.count(2)
	n.v, n.pendingPushes, n.pendingSamples, n.skipped = d.natural(), d.natural(), d.natural(), d.natural()
	if d.bad == "" && (n.commits != g.commits || workers != len(g.clock)) {
		return fmt.Errorf("%s: saved state is of %d workers and commit mode %d, this run has %d and %d; resume with the "+
			"same workers, fold and strict",
			g.name, workers, n.commits, len(g.clock), g.commits)
	}
	n.clock, n.left = make([]int64, workers), make([]bool, workers)
	for w := range workers {
		n.clock[w], n.left[w] = d.natural(), d.between(0, 1) == 1
	}
	n.staged = nil
	for range d.count(4) {
		n.staged = append(n.staged,
			push{worker: int32(d.between(0, int64(workers)-1)), part: int32(d.between(0, int64(g.coded.parts())-1)),
				iter: d.natural(), samples: d.natural()})
	}
	n.parked = make([]pull, 0, workers)
	for range d.count(3) {
		n.parked = append(n.parked, pull{worker: int32(d.between(0, int64(workers)-1)), iter: d.natural(), key: d.between(noKey, maxClock)})
	}
	n.loadClosings(&d)
	n.limit = g.limit.load(&d)
	n.mix = g.mix.load(&d)
	if g.transit != nil {
		n.transit = n.limit.(*transit)
	}
	if g.rounds != nil {
		n.rounds = n.limit.(*rounds)
	}
	if g.coded != nil {
		n.coded = n.limit.(*decoding)
	}
	if len(d.rest) != 0 {
		d.fail("bytes after its end")
	}
	if d.bad == "" {
		d.bad = n.broken()
	}
	if d.bad != "" {
		return fmt.Errorf("%s: saved state is damaged: %s", g.name, d.bad)
	}
	*g = n
	return nil
}

// broken names the first invariant that a decoded state violates, and fills in the counts.
func (g *gate) broken() string {
	g.live = len(g.left)
	for w, gone := range g.left {
		if gone {
			g.live--
		} else if g.clock[w] < g.v && g.quorum == 0 {
			return "a clock below v"
		}
	}
	g.recount()
	type key struct {
		worker, part int32
		iter         int64
	}
	seen := make(map[key]bool, len(g.staged))
	for _, p := range g.staged {
		switch {
		case g.commits == byPush || g.commits == byCount || g.commits == byValue || g.commits == byRound:
			return "a staged push in a scheme that stages none"
		case p.samples == 0 || p.iter < g.v || p.iter > g.clock[p.worker] || p.iter == g.clock[p.worker] &&
			p.part == g.coded.parts()-1 || g.commits == byClose && p.iter == g.v && !g.follows:
			return "a staged push that should be folded or dropped, or that cannot have landed"
		case seen[key{p.worker, p.part, p.iter}]:
			return "a push staged twice"
		}
		seen[key{p.worker, p.part, p.iter}] = true
	}
	g.hasParked = make([]bool, len(g.left))
	for _, p := range g.parked {
		switch {
		case g.left[p.worker] || p.iter > g.clock[p.worker] || p.key >= p.iter || (p.iter <= g.v || p.key == noKey) && !g.transit.holds(p.worker):
			return "a delayed pull that should be answered, or that cannot have arrived"
		case g.hasParked[p.worker]:
			return "two open pulls of one worker"
		}
		g.hasParked[p.worker] = true
	}
	if g.transit != nil {
		if what := g.transit.broken(g); what != "" {
			return what
		}
	}
	if g.rounds != nil {
		if what := g.rounds.broken(g); what != "" {
			return what
		}
	}
	if g.coded != nil {
		if what := g.coded.broken(g); what != "" {
			return what
		}
	}
	if m, ok := g.mix.(*table); ok {
		if what := m.broken(g); what != "" {
			return what
		}
	}
	switch {
	case g.live > 0 && g.atMin == 0 && !g.follows:
		return "no worker at v"
	case len(g.closings) > 0 && g.canClose(&g.closings[0]):
		return "an iteration that should be closed"
	case g.pendingPushes > 0 && g.commits != byClose && (g.commits != byCount && g.commits != byRound || g.live == 0):
		return "pending pushes in a scheme that commits what it folds"
	case g.pendingSamples < g.pendingPushes || g.pendingPushes == 0 && g.pendingSamples > 0:
		return "pending samples that do not fit the pending pushes"
	}
	return ""
}

// decoder reads a saved state. After the first fault every read returns the smallest legal value, and bad names the
// fault, so one check at the end suffices.
type decoder struct {
	rest []byte
	bad  string
}

func (d *decoder) fail(what string) {
	if d.bad == "" {
		d.bad = what
	}
	d.rest = nil
}

func (d *decoder) integer() int64 {
	if len(d.rest) < 8 {
		d.fail("too short")
		return 0
	}
	x := int64(binary.LittleEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	return x
}

// fraction reads a floating-point number within [low, high]; NaN is in no range.
func (d *decoder) fraction(low, high float64) float64 {
	x := math.Float64frombits(uint64(d.integer()))
	if !(x >= low && x <= high) {
		d.fail(fmt.Sprintf("%v is not within [%v, %v]", x, low, high))
		return low
	}
	return x
}

func (d *decoder) between(low, high int64) int64 {
	x := d.integer()
	if x < low || x > high {
		d.fail(fmt.Sprintf("%d is not within [%d, %d]", x, low, high))
		return low
	}
	return x
}

// maxClock is the limit of every count and clock, so that sums and differences of a few cannot overflow.
const maxClock = 1 << 60

func (d *decoder) natural() int64 { return d.between(0, maxClock) }

// count reads the length of a list of records of that many integers. It refuses a length for which the rest is too
// short.
func (d *decoder) count(integers int) int {
	return int(d.between(0, int64(len(d.rest)/(8*integers))))
}
