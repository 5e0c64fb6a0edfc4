package verbs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/comm"
)

func benchIdleCommand() *cli.Command {
	return &cli.Command{
		Name:  "idle",
		Usage: "what a rank that waits costs, and how fast it reacts",
		Description: "Rank 0 waits. First nothing comes for --silence: the share of a core that its process takes, from 10 ms on.\n" +
			"Then the last rank sends --messages, each after 15 to 25 ms of silence: the time from there to the handler.",
		Flags: []cli.Flag{
			localFlag(),
			&cli.IntFlag{Name: "messages", Value: 200, Usage: "`N` messages"},
			&cli.DurationFlag{Name: "silence", Value: time.Second, Usage: "how long nothing comes at first, `D`"},
			benchFormatFlag(),
		},
		Action: func(c *cli.Context) error {
			if n := c.Int("messages"); n < 10 {
				return usagef("bench idle: --messages is %d, must be at least 10", n)
			}
			if d := c.Duration("silence"); d < 10*settled {
				return usagef("bench idle: --silence is %v, must be at least %v", d, 10*settled)
			}
			return benchWorld(c, 2, benchIdle)
		},
	}
}

// settled is how long a rank may poll eagerly before its cost counts.
const settled = 10 * time.Millisecond

// idleRow is the outcome of bench idle.
type idleRow struct {
	What     string  `json:"what"` // idle
	Mode     string  `json:"mode"`
	Messages int     `json:"messages"`
	CPU      float64 `json:"cpu_percent"` // of one core
	ReactP50 float64 `json:"react_p50_us"`
	ReactP99 float64 `json:"react_p99_us"`
	ReactMax float64 `json:"react_max_us"`
	hostState
}

func benchIdle(b *bench) error {
	buf, err := b.t.Alloc(8)
	if err != nil {
		return err
	}
	defer buf.Free()
	if err := b.t.Barrier(); err != nil {
		return err
	}
	if b.t.Rank() == b.t.Size()-1 {
		return errors.Join(b.disturb(buf), b.t.Barrier())
	}
	if !b.lead() {
		return b.t.Barrier()
	}
	row := idleRow{What: "idle", Mode: b.mode, Messages: b.c.Int("messages")}
	if err := b.await(&row, buf); err != nil {
		return err
	}
	row.hostState = readHost()
	if b.json {
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.c.App.Writer, "%s\n", text)
	} else {
		fmt.Fprintf(b.c.App.Writer, "waiting takes %.2f %% of a core; a message is handled after %.0f us (p50), %.0f us (p99), %.0f us at most, of %d\n",
			row.CPU, row.ReactP50, row.ReactP99, row.ReactMax, row.Messages)
		printHost(b.c.App.Writer)
	}
	return b.t.Barrier()
}

// disturb is the rank that sends, with the time at which it does.
func (b *bench) disturb(buf *comm.Buf) error {
	rng := rand.New(rand.NewPCG(1, 2)) // silences that no period of the other's polls fits
	time.Sleep(b.c.Duration("silence") + settled)
	for range b.c.Int("messages") {
		time.Sleep(15*time.Millisecond + time.Duration(rng.Int64N(int64(10*time.Millisecond))))
		left := false
		var failed error
		binary.LittleEndian.PutUint64(buf.Bytes(), uint64(b.t.Now()))
		b.t.Isend(0, comm.Ctl, tagBench, buf, 0, 8, func(d comm.Done) { left, failed = true, d.Err })
		if err := errors.Join(b.t.Drive(func() bool { return left }), failed); err != nil {
			return err
		}
	}
	return nil
}

// await is the rank that waits.
func (b *bench) await(row *idleRow, buf *comm.Buf) error {
	silence := b.c.Duration("silence")
	measured := make(chan float64, 1)
	go func() { // beside the rank, which only waits
		time.Sleep(settled)
		from, used := time.Now(), usedCPU()
		time.Sleep(silence - settled)
		measured <- 100 * (usedCPU() - used).Seconds() / time.Since(from).Seconds()
	}()
	var late []time.Duration
	var failed error
	for range row.Messages {
		came := false
		b.t.Irecv(comm.Peer(b.t.Size()-1), comm.Ctl, tagBench, buf, 0, 8, func(d comm.Done) {
			came, failed = true, d.Err
			late = append(late, b.t.Now()-time.Duration(binary.LittleEndian.Uint64(buf.Bytes())))
		})
		if err := errors.Join(b.t.Drive(func() bool { return came }), failed); err != nil {
			return err
		}
	}
	row.CPU = <-measured
	slices.Sort(late)
	us := func(d time.Duration) float64 { return 1e6 * d.Seconds() }
	row.ReactP50, row.ReactP99, row.ReactMax = us(late[len(late)/2]), us(late[len(late)*99/100]), us(late[len(late)-1])
	return nil
}

// usedCPU is the processor time of this process so far.
func usedCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("fluentps: getrusage: %v", err)) // only a wrong argument fails
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
