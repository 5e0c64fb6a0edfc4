package tasks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// A worker of dropcompute begins no micro-batch after tau. work.time is tau; 0: the workers measure it.
//
//	each worker   computes its first `profile` iterations in full, and tells the chooser when each micro-batch ended: marks
//	chooser       the first worker that is in the run; when it has all profiles, it chooses tau (speedup.go): chosen
//	each worker   begins with tau at the iteration that the chooser has set; one that hears of it later begins with its next one
//
// A worker keeps its own profile until it knows tau. If the chooser leaves or is lost, all tell the next one what they have:
// their profile, or tau. A worker that starts, also after a pause or in another life, tells all others: hello.
// Those that know tau answer. Workers that know no chooser choose for themselves at last. If several have chosen, the tau of the
// first of them counts, so those that are in the run agree.
const (
	marks  uint8 = iota // Version, Samples, Correct, Blocked, Clock: numbers Part and next ones of row Iter
	chosen              // Blocked: tau; Iter: from this iteration on; Owner: who has chosen it
	hello               // I am in the run; Part 1: and do not know tau; 0: all of chosen
)

// Limits of a profile: the micro-batches of an iteration that are told apart, and numbers of one worker.
const (
	marksMax   = 64
	numbersMax = 4096
	perMessage = 5
)

// chosenLead is how many iterations after the chooser's current one tau begins. In step no worker is two iterations ahead of it.
const chosenLead = 3

type dropCompute struct {
	timed
	me      int32
	batch   int32
	length  int64 // iterations of the profile
	left    bool
	gone    []bool // per worker: it has left or was lost
	isKnown bool   // tau was chosen; it is timed.until
	by      int32  // who has chosen it
	begin   int64  // the first iteration with tau

	iter     int64 // the current iteration
	started  int64 // iterations that this policy has seen, and those of the one whose memory it has
	isNew    bool  // nothing has started
	isPaired bool  // the current row lacks the time without computing
	from, to time.Duration
	all      []profile // by worker; what is missing is -1
}

func newDropCompute(s work.Spec, e Env) core.Work {
	if s.Time > 0 {
		return newTimed(s, e)
	}
	p := &dropCompute{timed: timed{step: stepOf(s, e.Batches[e.Me])}, me: e.Me, batch: int32(e.Batches[e.Me]),
		length: s.Profile, gone: make([]bool, len(e.Batches)), isNew: true}
	p.all = make([]profile, len(e.Batches))
	for w, b := range e.Batches {
		p.all[w].samples = samplesOf(int64(b), int64(stepOf(s, b)))
	}
	rows := p.length
	for i := range p.all { // the same number of all
		rows = min(rows, int64(numbersMax/(len(p.all[i].samples)+1)))
	}
	if rows == p.length && rows > 1 {
		rows-- // in the first iteration caches are cold
	}
	for i := range p.all {
		p.all[i].clear(int(rows))
	}
	return p
}

// samplesOf returns how many samples are computed by the end of each micro-batch. Of many, some in a row count as one.
func samplesOf(batch, step int64) (all []int64) {
	steps := (batch + step - 1) / step
	step *= (steps + marksMax - 1) / marksMax
	for n := step; n < batch; n += step {
		all = append(all, n)
	}
	return append(all, batch)
}

// clear forgets all numbers.
func (p *profile) clear(rows int) {
	p.rows = make([][]int64, rows)
	for k := range p.rows {
		p.rows[k] = make([]int64, len(p.samples)+1)
		for j := range p.rows[k] {
			p.rows[k][j] = -1
		}
	}
}

// isWhole says whether no number is missing.
func (p *profile) isWhole() bool {
	return !slices.ContainsFunc(p.rows, func(row []int64) bool { return slices.Contains(row, -1) })
}

func (p *dropCompute) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Starting:
		return p.starting(ev.Task, out)
	case core.Stepped:
		return p.stepped(ev, out)
	case core.Computed:
		p.mark(p.batch, ev.At)
		p.to, p.isPaired = ev.At, true
	case core.Came:
		return p.came(&ev.Msg, out)
	case core.Gone:
		before := p.chooser()
		p.gone[ev.Task.Owner] = true
		if p.chooser() != before {
			return p.tellAll(out)
		}
		return p.choose(out)
	case core.Leaves:
		p.left = true
	}
	return out
}

// chooser is the worker that chooses, as far as this one knows.
func (p *dropCompute) chooser() int32 {
	for w, gone := range p.gone {
		if !gone || int32(w) == p.me {
			return int32(w)
		}
	}
	return p.me
}

func (p *dropCompute) starting(own core.Task, out []core.Order) []core.Order {
	p.iter = own.Iter
	own.Grain = p.step
	if p.isKnown && own.Iter >= p.begin {
		own.Until = p.until
	}
	out = append(out, core.Order{Kind: core.Assign, Task: own})
	if p.isNew {
		p.isNew = false
		out = p.tellAll(p.greet(out))
	}
	p.started++
	return p.choose(out)
}

// row is the row of the iteration that was started last; nil: none.
func (p *dropCompute) row() []int64 {
	rows := p.all[p.me].rows
	if k := p.started - 1 - (p.length - int64(len(rows))); !p.isKnown && k >= 0 && k < int64(len(rows)) {
		return rows[k]
	}
	return nil
}

// mark notes that the samples before n were computed.
func (p *dropCompute) mark(n int32, at time.Duration) {
	row := p.row()
	if row == nil {
		return
	}
	for j, of := range p.all[p.me].samples {
		if of == int64(n) {
			row[j] = int64(at - p.from)
		}
	}
}

// stepped notes the end of the step before, or of the time without computing.
func (p *dropCompute) stepped(ev core.WorkEvent, out []core.Order) []core.Order {
	before := int32(ev.Samples) - 1
	before -= before % p.step // the step's first sample
	if before > 0 {
		p.mark(before, ev.At)
		return out
	}
	rows := p.all[p.me].rows
	if k := p.started - 2 - (p.length - int64(len(rows))); p.isPaired && !p.isKnown && k >= 0 && k < int64(len(rows)) {
		rows[k][len(rows[k])-1] = int64(ev.At - p.to)
		out = p.tellRows(int(k), out)
	}
	p.isPaired, p.from = false, ev.At
	return p.choose(out)
}

// greet tells the others that the worker is in the run: they may have heard that it has left.
func (p *dropCompute) greet(out []core.Order) []core.Order {
	m := wire.Header{Part: 1}
	if p.isKnown {
		m = p.tau()
	}
	for w := range p.gone {
		if to := int32(w); to != p.me {
			out = append(out, tell(to, hello, m))
		}
	}
	return out
}

// tellAll tells the chooser what this worker knows; the chooser itself tells all others of tau.
func (p *dropCompute) tellAll(out []core.Order) []core.Order {
	to := p.chooser()
	switch {
	case p.isKnown && to == p.me:
		return p.tellOthers(out)
	case p.isKnown:
		return p.tellTau(to, out)
	}
	for k, row := range p.all[p.me].rows {
		if row[len(row)-1] >= 0 {
			out = p.tellRows(k, out)
		}
	}
	return p.choose(out)
}

func (p *dropCompute) tellOthers(out []core.Order) []core.Order {
	for w := range p.gone {
		out = p.tellTau(int32(w), out)
	}
	return out
}

func (p *dropCompute) tellTau(to int32, out []core.Order) []core.Order {
	if to == p.me || p.gone[to] {
		return out
	}
	return append(out, tell(to, chosen, p.tau()))
}

// tau is what is told of tau.
func (p *dropCompute) tau() wire.Header {
	return wire.Header{Iter: p.begin, Blocked: int64(p.until), Owner: p.by}
}

// tellRows tells the chooser a row.
func (p *dropCompute) tellRows(k int, out []core.Order) []core.Order {
	to := p.chooser()
	if to == p.me {
		return out
	}
	row := p.all[p.me].rows[k]
	for j := 0; j < len(row); j += perMessage {
		var x [perMessage]int64
		copy(x[:], row[j:])
		out = append(out, tell(to, marks,
			wire.Header{Iter: int64(k), Part: int32(j), Version: x[0], Samples: x[1], Correct: x[2], Blocked: x[3], Clock: x[4]}))
	}
	return out
}

func (p *dropCompute) came(m *wire.Header, out []core.Order) []core.Order {
	if m.Flags == hello {
		p.gone[m.Worker] = false
	}
	switch of := &p.all[m.Worker]; {
	case m.Flags == hello && m.Part == 1 && p.isKnown:
		return p.tellTau(m.Worker, out)
	case m.Flags == hello && m.Part == 1:
	case m.Flags == marks && p.isKnown && m.Part == 0:
		return p.tellTau(m.Worker, out)
	case m.Flags == marks && !p.isKnown && m.Iter >= 0 && m.Iter < int64(len(of.rows)) && m.Part >= 0 && int(m.Part) < len(of.rows[m.Iter]):
		copy(of.rows[m.Iter][m.Part:], []int64{m.Version, m.Samples, m.Correct, m.Blocked, m.Clock})
		return p.choose(out)
	case m.Flags == chosen, m.Flags == hello:
		order, isNew := p.compare(m), !p.isKnown
		if order > 0 {
			return p.tellTau(m.Worker, out)
		}
		p.isKnown, p.by, p.begin, p.until = true, m.Owner, m.Iter, time.Duration(m.Blocked)
		if order < 0 && (!isNew || p.chooser() == p.me) { // others may know the one that this worker knew, or wait for this worker
			return p.tellOthers(out)
		}
	}
	return out
}

// compare is negative if a tau counts before the one that is known, and 0 if it is that one.
func (p *dropCompute) compare(m *wire.Header) int {
	if !p.isKnown {
		return -1
	}
	return cmp.Or(cmp.Compare(m.Owner, p.by), cmp.Compare(m.Iter, p.begin), cmp.Compare(m.Blocked, int64(p.until)))
}

// choose chooses tau if this worker is the chooser and has all profiles. If it has waited for the length of another profile, it
// leaves out the workers that it lacks. One that has waited for two takes the chooser's place.
func (p *dropCompute) choose(out []core.Order) []core.Order {
	if p.isKnown || p.left || p.chooser() != p.me && p.started <= 3*p.length || !p.all[p.me].isWhole() {
		return out
	}
	var of []profile
	for w := range p.all {
		switch {
		case p.gone[w] && int32(w) != p.me:
		case p.all[w].isWhole():
			of = append(of, p.all[w])
		case p.started <= 2*p.length:
			return out
		}
	}
	p.until, _ = bestTau(of)
	p.isKnown, p.by, p.begin = true, p.me, p.iter+chosenLead
	return p.tellOthers(out)
}

// Memory is what is known of tau and the worker's own profile: batch, step, who has chosen tau (-1: nobody), tau, its first iteration,
// iterations that were started, and the rows.
func (p *dropCompute) Memory() []float64 {
	m := []float64{float64(p.batch), float64(p.step), -1, float64(p.until), float64(p.begin), float64(p.started)}
	if p.isKnown {
		m[2] = float64(p.by)
		return m
	}
	for _, row := range p.all[p.me].rows {
		for _, x := range row {
			m = append(m, float64(x))
		}
	}
	return m
}

// Recall goes on with a memory. One of another batch or step says nothing of the times of this one: then a new profile begins.
func (p *dropCompute) Recall(m []float64) error {
	for i, x := range m {
		if x != math.Trunc(x) || x < -1 || x > 1<<62 {
			return fmt.Errorf("number %d of what dropcompute has learned is %v, and must be a whole number of -1 or more", i, x)
		}
	}
	if len(m) < 6 {
		return fmt.Errorf("dropcompute has learned %d numbers, and needs 6 at least", len(m))
	}
	rows := p.all[p.me].rows
	isKnown := m[2] >= 0 && m[2] < float64(len(p.gone))
	if m[0] != float64(p.batch) || m[1] != float64(p.step) || !isKnown && len(m) != 6+len(rows)*len(rows[0]) {
		return nil
	}
	if m[3] < 0 || m[4] < 0 || m[5] < 0 || isKnown && len(m) != 6 {
		return fmt.Errorf("dropcompute has learned %d numbers that begin with %v, and of them the fourth to the sixth "+
			"must be 0 or more", len(m), m[:6])
	}
	p.isKnown, p.by, p.until, p.begin, p.started = isKnown, int32(m[2]), time.Duration(m[3]), int64(m[4]), int64(m[5])
	for i, x := range m[6:] {
		rows[i/len(rows[0])][i%len(rows[0])] = int64(x)
	}
	if p.isKnown {
		return nil
	}
	for k := range rows { // a row that is not whole is measured again
		if slices.Contains(rows[k], -1) {
			p.started = min(p.started, p.length-int64(len(rows)-k))
		}
	}
	return nil
}
