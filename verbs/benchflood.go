package verbs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/comm"
)

func benchFloodCommand() *cli.Command {
	return &cli.Command{
		Name:  "flood",
		Usage: "many small messages to a rank that looks away: what it costs in memory, and whether all arrive",
		Description: "All ranks but 0 send control messages to rank 0 as fast as the transport takes them. Rank 0 looks away\n" +
			"for --pause after a tenth of them, or whenever it is stopped from outside (kill -STOP; it names its process).\n" +
			"Numbers and order are checked. The growth of each process is held against a limit: its own buffers, the\n" +
			"messages that the transport may keep unreceived, and 16 MiB for MPI itself. Over the limit the exit code is 1.",
		Flags: []cli.Flag{
			localFlag(),
			&cli.IntFlag{Name: "messages", Value: 1_000_000, Usage: "`N` messages of each sender"},
			sizesFlag("1KiB"),
			&cli.DurationFlag{Name: "pause", Value: time.Second, Usage: "how long rank 0 looks away, `D`; 0: not at all"},
			benchFormatFlag(),
		},
		Action: func(c *cli.Context) error {
			sizes, err := sizesOf(c, "sizes", 9, comm.CtlMax)
			if err != nil {
				return err
			}
			if n := c.Int("messages"); n < 1 {
				return usagef("bench flood: --messages is %d, must be at least 1", n)
			}
			if d := c.Duration("pause"); d < 0 {
				return usagef("bench flood: --pause is %v, must not be negative", d)
			}
			return benchWorld(c, 2, func(b *bench) error {
				for _, n := range sizes {
					if err := benchFlood(b, int(n)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// floodRow is one size of bench flood.
type floodRow struct {
	What           string  `json:"what"` // flood
	Mode           string  `json:"mode"`
	Bytes          int     `json:"bytes"`
	Senders        int     `json:"senders"`
	Messages       int     `json:"messages"` // of each
	Lost           int     `json:"lost"`
	Seconds        float64 `json:"seconds"`
	ReceiverGrowth int64   `json:"receiver_growth_bytes"` // at its peak
	SenderGrowth   int64   `json:"sender_growth_bytes"`   // of the one that grew most
	Limit          int64   `json:"limit_bytes"`           // of each
	hostState
}

const (
	floodWindow = 1024 // messages that a sender has handed over and that are not complete
	floodRing   = 64   // receives of rank 0
	tagFloodEnd = 1
	mpiRoom     = 16 << 20 // what MPI's own pools may take at first use, for a peer
)

// flood is one end.
type flood struct {
	b      *bench
	n      int // bytes of a message
	count  int // messages of each sender
	buf    *comm.Buf
	failed error
}

func benchFlood(b *bench, n int) error {
	f := &flood{b: b, n: n, count: b.c.Int("messages")}
	// Both ends' limit counts the larger ring or window, so that it is one number.
	held := int64(max(floodWindow, floodRing)*n + (b.t.Size()-1)*comm.BacklogMax*comm.CtlMax)
	row := floodRow{What: "flood", Mode: b.mode, Bytes: n, Senders: b.t.Size() - 1, Messages: f.count, Limit: held + mpiRoom}
	var err error
	if f.buf, err = b.t.Alloc(floodWindow * n); err != nil {
		return err
	}
	defer f.buf.Free()
	if b.lead() {
		fmt.Fprintf(b.c.App.ErrWriter, "rank 0 is process %d\n", os.Getpid())
	}
	before, _ := resident()
	if err := b.t.Barrier(); err != nil {
		return err
	}
	from := b.t.Now()
	if b.lead() {
		row.Lost, err = f.receive()
	} else {
		err = f.send()
	}
	if err = errors.Join(err, f.failed); err != nil {
		return err
	}
	row.Seconds = (b.t.Now() - from).Seconds()
	_, peak := resident()
	row.ReceiverGrowth = peak - before
	if row.SenderGrowth, err = f.largest(peak - before); err != nil || !b.lead() {
		return err
	}
	row.hostState = readHost()
	return row.print(b)
}

func (row *floodRow) print(b *bench) error {
	if b.json {
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.c.App.Writer, "%s\n", text)
	} else {
		fmt.Fprintf(b.c.App.Writer, "%d messages of %s from each of %d senders in %.2f s, %d lost; rank 0 grew by %.1f MiB, a sender by at most %.1f MiB, limit %.1f MiB\n",
			row.Messages, sizeText(int64(row.Bytes)), row.Senders, row.Seconds, row.Lost, mib(row.ReceiverGrowth), mib(row.SenderGrowth), mib(row.Limit))
		printHost(b.c.App.Writer)
	}
	if grown := max(row.ReceiverGrowth, row.SenderGrowth); grown > row.Limit || row.Lost > 0 {
		return fmt.Errorf("flood: %d messages lost, a process grew by %d bytes, limit %d", row.Lost, grown, row.Limit)
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// at is the i-th place of the buffer.
func (f *flood) at(i int) []byte { return f.buf.Bytes()[i*f.n : (i+1)*f.n] }

// mark writes a message's number at both ends of it.
func mark(p []byte, number int) {
	binary.LittleEndian.PutUint64(p, uint64(number))
	p[len(p)-1] = byte(number)
}

func (f *flood) fail(err error) { f.failed = errors.Join(f.failed, err) }

// send keeps floodWindow messages under way until all are complete.
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
			f.b.t.Isend(0, comm.Ctl, 0, f.buf, place*f.n, f.n, completed[place])
		}
	}
	for i := range floodWindow {
		refill(i)
	}
	return f.b.t.Drive(func() bool { return done == f.count || f.failed != nil })
}

// receive takes all messages, and returns how many were not there in their turn.
func (f *flood) receive() (lost int, err error) {
	senders := f.b.t.Size() - 1
	total, got, posted := f.count*senders, 0, 0
	next := make([]int, senders+1)
	var listen func(place int)
	arrived := make([]comm.Handler, floodRing)
	for i := range arrived {
		arrived[i] = func(d comm.Done) {
			p := f.at(i)
			number := int(binary.LittleEndian.Uint64(p))
			if d.Err != nil || d.N != f.n || p[f.n-1] != byte(number) || number < next[d.Peer] {
				f.fail(fmt.Errorf("flood: message %d of rank %d came with %d bytes after number %d: %w", number, d.Peer, d.N, next[d.Peer], d.Err))
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
			f.b.t.Irecv(comm.AnyPeer, comm.Ctl, 0, f.buf, place*f.n, f.n, arrived[place])
		}
	}
	for i := range floodRing {
		listen(i)
	}
	if err := f.b.t.Drive(func() bool { return got >= total/10 || f.failed != nil }); err != nil {
		return lost, err
	}
	time.Sleep(f.b.c.Duration("pause"))
	return lost, f.b.t.Drive(func() bool { return got == total || f.failed != nil })
}

// largest brings the largest number of the senders to rank 0.
func (f *flood) largest(mine int64) (most int64, err error) {
	open := 1
	done := func(d comm.Done) {
		open--
		f.fail(d.Err)
	}
	if !f.b.lead() {
		binary.LittleEndian.PutUint64(f.buf.Bytes(), uint64(mine))
		f.b.t.Isend(0, comm.Data, tagFloodEnd, f.buf, 0, 8, done)
	} else {
		open = f.b.t.Size() - 1
		for from := 1; from <= open; from++ {
			f.b.t.Irecv(comm.Peer(from), comm.Data, tagFloodEnd, f.buf, 8*from, 8, done)
		}
	}
	if err := f.b.t.Drive(func() bool { return open == 0 }); err != nil || !f.b.lead() {
		return 0, errors.Join(err, f.failed)
	}
	for from := 1; from < f.b.t.Size(); from++ {
		most = max(most, int64(binary.LittleEndian.Uint64(f.buf.Bytes()[8*from:])))
	}
	return most, f.failed
}

// resident is the memory of this process that is in RAM now, and the most that ever was, in bytes; 0 where the system
// does not tell.
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
