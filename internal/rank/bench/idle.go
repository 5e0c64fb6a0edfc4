package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"fluentps/internal/comm"
)

// Settled is how long an idle rank may poll eagerly before its CPU time counts.
const Settled = 10 * time.Millisecond

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

// Idle measures the cost of waiting on rank 0. First no message arrives for the silence (at least 10 * Settled), then the last rank sends
// messages.
func (r *Rank) Idle(messages int, silence time.Duration) error {
	buf, err := r.Transport.Alloc(8)
	if err != nil {
		return err
	}
	defer buf.Free()
	if err := r.Transport.Barrier(); err != nil {
		return err
	}
	if r.Transport.Rank() == r.Transport.Size()-1 {
		return errors.Join(r.disturb(buf, messages, silence), r.Transport.Barrier())
	}
	if !r.Lead() {
		return r.Transport.Barrier()
	}
	row := idleRow{What: "idle", Mode: r.Mode, Messages: messages}
	if err := r.await(&row, buf, silence); err != nil {
		return err
	}
	row.hostState = readHost()
	if r.JSON {
		if err := writeJSON(r.Out, row); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(r.Out, "waiting takes %.2f %% of a core; a message is handled after %.0f us (p50), %.0f us (p99), %.0f us at most, of %d\n",
			row.CPU, row.ReactP50, row.ReactP99, row.ReactMax, row.Messages)
		printHost(r.Out)
	}
	return r.Transport.Barrier()
}

// disturb sends the messages. Each message carries the time at which it was sent.
func (r *Rank) disturb(buf *comm.Buf, messages int, silence time.Duration) error {
	rng := rand.New(rand.NewPCG(1, 2)) // random pauses, so that they fit no polling period of rank 0
	time.Sleep(silence + Settled)
	for range messages {
		time.Sleep(15*time.Millisecond + time.Duration(rng.Int64N(int64(10*time.Millisecond))))
		left := false
		var failed error
		binary.LittleEndian.PutUint64(buf.Bytes(), uint64(r.Transport.Now()))
		r.Transport.Isend(0, comm.Ctl, tagBench, buf, 0, 8, func(d comm.Done) { left, failed = true, d.Err })
		if err := errors.Join(r.Transport.Drive(func() bool { return left }), failed); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the messages and fills the row.
func (r *Rank) await(row *idleRow, buf *comm.Buf, silence time.Duration) error {
	measured := make(chan float64, 1)
	go func() { // measures while the rank waits
		time.Sleep(Settled)
		from, used := time.Now(), usedCPU()
		time.Sleep(silence - Settled)
		measured <- 100 * (usedCPU() - used).Seconds() / time.Since(from).Seconds()
	}()
	var late []time.Duration
	var failed error
	for range row.Messages {
		arrived := false
		r.Transport.Irecv(comm.Peer(r.Transport.Size()-1), comm.Ctl, tagBench, buf, 0, 8, func(d comm.Done) {
			arrived, failed = true, d.Err
			late = append(late, r.Transport.Now()-time.Duration(binary.LittleEndian.Uint64(buf.Bytes())))
		})
		if err := errors.Join(r.Transport.Drive(func() bool { return arrived }), failed); err != nil {
			return err
		}
	}
	row.CPU = <-measured
	slices.Sort(late)
	us := func(d time.Duration) float64 { return 1e6 * d.Seconds() }
	row.ReactP50, row.ReactP99, row.ReactMax = us(late[len(late)/2]), us(late[len(late)*99/100]), us(late[len(late)-1])
	return nil
}

// usedCPU returns the processor time of this process so far.
func usedCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("fluentps: getrusage: %v", err)) // only a wrong argument fails
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
