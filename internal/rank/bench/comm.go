package bench

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
)

// commRow is one size of bench comm.
type commRow struct {
	What         string  `json:"what"` // comm
	Who          string  `json:"who"`  // fluentps
	Mode         string  `json:"mode"`
	Bytes        int64   `json:"bytes"`
	LatencyUS    float64 `json:"latency_us"`
	GBPerS       float64 `json:"gb_per_s"`
	BothGBPerS   float64 `json:"both_gb_per_s"`
	MessagesPerS float64 `json:"messages_per_s"`
	hostState
}

// Comm measures messages of each size between the first and the last rank, each size for the time total.
func (r *Rank) Comm(sizes []int64, total time.Duration) error {
	if r.Lead() && !r.JSON {
		fmt.Fprintf(r.Out, "%10s %12s %12s %12s %14s\n", "size", "latency us", "stream GB/s", "both GB/s", "messages/s")
	}
	for _, n := range sizes {
		row := commRow{What: "comm", Who: "fluentps", Mode: r.Mode, Bytes: n}
		if err := r.commSize(&row, total); err != nil {
			return err
		}
		row.hostState = readHost()
		if !r.Lead() {
			continue
		}
		if r.JSON {
			if err := writeJSON(r.Out, row); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(r.Out, "%10s %12.2f %12.3f %12.3f %14.0f\n", configs.FormatSize(n), row.LatencyUS, row.GBPerS,
			row.BothGBPerS, row.MessagesPerS)
	}
	if r.Lead() && !r.JSON {
		printHost(r.Out)
	}
	return r.Transport.Barrier()
}

// commSize measures one size between the first and the last rank. The other ranks only take part in the barriers.
func (r *Rank) commSize(row *commRow, total time.Duration) error {
	n := int(row.Bytes)
	p := &pair{r: r, n: n, total: total}
	if me := r.Transport.Rank(); me == 0 {
		p.peer = comm.Peer(r.Transport.Size() - 1)
	} else if me != r.Transport.Size()-1 {
		p.idle = true
	}
	if err := p.open(); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	round, err := p.each(p.pingpong)
	if err != nil {
		return err
	}
	one, err := p.each(func(times int) error { return p.stream(times, r.Lead(), !r.Lead()) })
	if err != nil {
		return err
	}
	both, err := p.each(func(times int) error { return p.stream(times, true, true) })
	if err != nil {
		return err
	}
	p.out.Free()
	p.in.Free()
	row.LatencyUS = 1e6 * round / 2
	row.GBPerS = 1e-9 * float64(n) / one
	row.BothGBPerS = 2e-9 * float64(n) / both
	row.MessagesPerS = 1 / one
	return nil
}

// pair is one end of two ranks that exchange messages of n bytes.
type pair struct {
	r       *Rank
	total   time.Duration // time for one size
	n       int
	peer    comm.Peer
	idle    bool // this rank only takes part in the barriers
	out, in *comm.Buf
	busy    int // operations in flight
	failed  error
}

const (
	tagBench = 1 + iota
	tagBenchEnd
)

func (p *pair) open() (err error) {
	if p.out, err = p.r.Transport.Alloc(p.n); err != nil {
		return err
	}
	p.in, err = p.r.Transport.Alloc(p.n)
	return err
}

func (p *pair) done(d comm.Done) {
	p.busy--
	p.failed = errors.Join(p.failed, d.Err)
}

func (p *pair) send() {
	p.busy++
	p.r.Transport.Isend(p.peer, comm.Data, tagBench, p.out, 0, p.n, p.done)
}

// receive posts a receive, and calls then when the message has landed.
func (p *pair) receive(then comm.Handler) {
	p.busy++
	p.r.Transport.Irecv(p.peer, comm.Data, tagBench, p.in, 0, p.n, then)
}

func (p *pair) drive() error {
	if err := p.r.Transport.Drive(func() bool { return p.busy == 0 || p.failed != nil }); err != nil {
		return err
	}
	return p.failed
}

// pingpong makes round trips. A rank posts the receive of the answer before it sends a message.
func (p *pair) pingpong(times int) error {
	left := times
	var next comm.Handler
	next = func(d comm.Done) {
		p.done(d)
		if left--; left > 0 {
			p.receive(next)
		}
		if left > 0 || !p.r.Lead() {
			p.send()
		}
	}
	p.receive(next)
	if p.r.Lead() {
		p.send()
	}
	return p.drive()
}

func window(n int) int {
	switch {
	case n <= 64<<10:
		return 16
	case n <= 1<<20:
		return 8
	}
	return 4
}

// stream keeps a window of sends, receives, or both in flight. A stream in one direction ends with a short message back.
func (p *pair) stream(times int, sends, receives bool) error {
	toSend, toReceive := 0, 0
	var sent, received comm.Handler
	sent = func(d comm.Done) {
		p.done(d)
		if toSend > 0 {
			toSend--
			p.busy++
			p.r.Transport.Isend(p.peer, comm.Data, tagBench, p.out, 0, p.n, sent)
		}
	}
	received = func(d comm.Done) {
		p.done(d)
		if toReceive > 0 {
			toReceive--
			p.receive(received)
			return
		}
		if p.busy == 0 && !sends {
			p.busy++
			p.r.Transport.Isend(p.peer, comm.Data, tagBenchEnd, p.out, 0, 1, p.done)
		}
	}
	first := min(window(p.n), times)
	if receives {
		toReceive = times - first
		for range first {
			p.receive(received)
		}
	} else {
		p.busy++
		p.r.Transport.Irecv(p.peer, comm.Data, tagBenchEnd, p.in, 0, 1, p.done)
	}
	if sends {
		toSend = times - first
		for range first {
			p.busy++
			p.r.Transport.Isend(p.peer, comm.Data, tagBench, p.out, 0, p.n, sent)
		}
	}
	return p.drive()
}

// check verifies the bytes of a message in each direction before the first measurement.
func (p *pair) check() error {
	if p.idle {
		return p.r.Transport.Barrier()
	}
	pattern := func(rank int) []byte {
		want := make([]byte, p.n)
		for i := range want {
			want[i] = byte(i*7 + rank)
		}
		return want
	}
	me := p.r.Transport.Rank()
	copy(p.out.Bytes(), pattern(me))
	if err := p.pingpong(1); err != nil {
		return err
	}
	if !bytes.Equal(p.in.Bytes(), pattern(int(p.peer))) {
		return fmt.Errorf("bench comm: the %d bytes from rank %d are not those that it sent", p.n, p.peer)
	}
	return p.r.Transport.Barrier()
}

// each returns the seconds that one repetition of f takes, on rank 0: the median of 5 passes if there are many repetitions. Shorter passes,
// each longer than the one before, find how many repetitions fill total, so that a single delay has little effect.
func (p *pair) each(f func(times int) error) (seconds float64, err error) {
	const least, many, most, growth, passes = 5, 500, 10_000_000, 8, 5
	total := p.total
	times := least
	for {
		took, err := p.pass(f, times)
		if err != nil {
			return 0, err
		}
		next := growth * times
		if took > total/growth || next > most {
			next = -timesFor(total, took/time.Duration(times), least, most) // negative: the last of the shorter passes
		}
		if next, err = p.r.tell(next); err != nil {
			return 0, err
		}
		if times = next; times < 0 {
			break
		}
	}
	times = -times
	left := 1
	if times >= many {
		left, times = passes, times/passes
	}
	var took rounds
	for range left {
		d, err := p.pass(f, times)
		if err != nil {
			return 0, err
		}
		took = append(took, d)
	}
	return max(1, float64(took.quantile(0.5))) / float64(times) / 1e9, nil
}

// pass times one call of f. It starts on all ranks at the same time.
func (p *pair) pass(f func(times int) error, times int) (time.Duration, error) {
	if err := p.r.Transport.Barrier(); err != nil {
		return 0, err
	}
	from := p.r.Transport.Now()
	if p.idle {
		return 0, nil
	}
	err := f(times)
	return p.r.Transport.Now() - from, err
}
