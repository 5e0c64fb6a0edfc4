package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
)

// floodRow is one size of bench flood.
type floodRow struct {
	What           string  `json:"what"` // flood
	Mode           string  `json:"mode"`
	Bytes          int     `json:"bytes"`
	Senders        int     `json:"senders"`
	Messages       int     `json:"messages"` // of each sender
	Lost           int     `json:"lost"`
	Seconds        float64 `json:"seconds"`
	ReceiverGrowth int64   `json:"receiver_growth_bytes"` // of peak memory
	SenderGrowth   int64   `json:"sender_growth_bytes"`   // of the sender that grew most
	Limit          int64   `json:"limit_bytes"`           // for each process
	hostState
}

const (
	floodWindow = 1024 // messages in flight from each sender
	floodRing   = 64   // receives that rank 0 posts
	tagFloodEnd = 1
	mpiRoom     = 16 << 20 // bytes that MPI's own pools may take at first use
)

// flood is one rank of the benchmark.
type flood struct {
	r      *Rank
	pause  time.Duration
	n      int // bytes of a message
	count  int // messages of each sender
	buf    *comm.Buf
	failed error
}

// Flood measures backpressure: every rank except 0 sends that many messages of n bytes to rank 0. Rank 0 handles
// nothing for the pause after a tenth of the messages. Flood fails if a message is lost or a process grows beyond the
// limit.
func (r *Rank) Flood(n, messages int, pause time.Duration) error {
	f := &flood{r: r, n: n, count: messages, pause: pause}
	// Both ends' limit counts the larger ring or window, so that it is one number.
	held := int64(max(floodWindow, floodRing)*n + (r.Transport.Size()-1)*comm.BacklogMax*comm.CtlMax)
	row := floodRow{What: "flood", Mode: r.Mode, Bytes: n, Senders: r.Transport.Size() - 1, Messages: f.count, Limit: held + mpiRoom}
	var err error
	if f.buf, err = r.Transport.Alloc(floodWindow * n); err != nil {
		return err
	}
	defer f.buf.Free()
	if r.Lead() {
		fmt.Fprintf(r.Err, "rank 0 is process %d\n", os.Getpid())
	}
	before, _ := resident()
	if err := r.Transport.Barrier(); err != nil {
		return err
	}
	from := r.Transport.Now()
	if r.Lead() {
		row.Lost, err = f.receive()
	} else {
		err = f.send()
	}
	if err = errors.Join(err, f.failed); err != nil {
		return err
	}
	row.Seconds = (r.Transport.Now() - from).Seconds()
	_, peak := resident()
	row.ReceiverGrowth = peak - before
	if row.SenderGrowth, err = f.largest(peak - before); err != nil || !r.Lead() {
		return err
	}
	row.hostState = readHost()
	return row.print(r)
}

func (row *floodRow) print(r *Rank) error {
	if r.JSON {
		if err := writeJSON(r.Out, row); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(r.Out, "%d messages of %s from each of %d senders in %.2f s, %d lost; rank 0 grew by %.1f MiB, a "+
			"sender by at most %.1f MiB, limit %.1f MiB\n",
			row.Messages, configs.FormatSize(int64(row.Bytes)), row.Senders, row.Seconds, row.Lost, mib(row.ReceiverGrowth),
			mib(row.SenderGrowth), mib(row.Limit))
		printHost(r.Out)
	}
	if grown := max(row.ReceiverGrowth, row.SenderGrowth); grown > row.Limit || row.Lost > 0 {
		return fmt.Errorf("flood: %d messages lost, a process grew by %d bytes, limit %d", row.Lost, grown, row.Limit)
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// at returns the i-th slot of the buffer.
func (f *flood) at(i int) []byte { return f.buf.Bytes()[i*f.n : (i+1)*f.n] }

// mark writes the number of a message at both of its ends.
func mark(p []byte, number int) {
	binary.LittleEndian.PutUint64(p, uint64(number))
	p[len(p)-1] = byte(number)
}

func (f *flood) fail(err error) { f.failed = errors.Join(f.failed, err) }

// send keeps floodWindow messages in flight until all are complete.
func (f *flood) send() error {
	next, done := 0, 0
	var refill func(place int)
	completed := make([]comm.Handler, floodWindow)
	for i := range completed {
		completed[i] = func(d comm.Done) {
			done++
			f.fail(d.Err)
			refill(i)
		}
	}
	refill = func(place int) {
		if next < f.count {
			mark(f.at(place), next)
			next++
			f.r.Transport.Isend(0, comm.Ctl, 0, f.buf, place*f.n, f.n, completed[place])
		}
	}
	for i := range floodWindow {
		refill(i)
	}
	return f.r.Transport.Drive(func() bool { return done == f.count || f.failed != nil })
}

// receive receives all messages, and returns how many numbers of a sender were skipped.
func (f *flood) receive() (lost int, err error) {
	senders := f.r.Transport.Size() - 1
	total, got, posted := f.count*senders, 0, 0
	next := make([]int, senders+1)
	var listen func(place int)
	arrived := make([]comm.Handler, floodRing)
	for i := range arrived {
		arrived[i] = func(d comm.Done) {
			p := f.at(i)
			number := int(binary.LittleEndian.Uint64(p))
			if d.Err != nil || d.N != f.n || p[f.n-1] != byte(number) || number < next[d.Peer] {
				f.fail(fmt.Errorf("flood: message %d of rank %d arrived with %d bytes after number %d: %w", number, d.Peer, d.N, next[d.Peer], d.Err))
				return
			}
			lost += number - next[d.Peer]
			next[d.Peer] = number + 1
			got++
			listen(i)
		}
	}
	listen = func(place int) {
		if posted < total {
			posted++
			f.r.Transport.Irecv(comm.AnyPeer, comm.Ctl, 0, f.buf, place*f.n, f.n, arrived[place])
		}
	}
	for i := range floodRing {
		listen(i)
	}
	if err := f.r.Transport.Drive(func() bool { return got >= total/10 || f.failed != nil }); err != nil {
		return lost, err
	}
	time.Sleep(f.pause)
	return lost, f.r.Transport.Drive(func() bool { return got == total || f.failed != nil })
}

// largest returns the largest number of the senders, on rank 0.
func (f *flood) largest(mine int64) (most int64, err error) {
	open := 1
	done := func(d comm.Done) {
		open--
		f.fail(d.Err)
	}
	if !f.r.Lead() {
		binary.LittleEndian.PutUint64(f.buf.Bytes(), uint64(mine))
		f.r.Transport.Isend(0, comm.Data, tagFloodEnd, f.buf, 0, 8, done)
	} else {
		open = f.r.Transport.Size() - 1
		for from := 1; from <= open; from++ {
			f.r.Transport.Irecv(comm.Peer(from), comm.Data, tagFloodEnd, f.buf, 8*from, 8, done)
		}
	}
	if err := f.r.Transport.Drive(func() bool { return open == 0 }); err != nil || !f.r.Lead() {
		return 0, errors.Join(err, f.failed)
	}
	for from := 1; from < f.r.Transport.Size(); from++ {
		most = max(most, int64(binary.LittleEndian.Uint64(f.buf.Bytes()[8*from:])))
	}
	return most, f.failed
}

// resident returns the resident memory of this process now and at its peak, in bytes; 0 if the system does not report it.
func resident() (now, peak int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			now = kb << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			peak = kb << 10
		}
	}
	return now, peak
}
