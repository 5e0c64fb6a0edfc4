// Package bench measures messages, pushes and pulls, waiting, and kernels. Each benchmark runs on every rank, and rank 0 prints. Values are
// checked before they are timed.
package bench

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/comm"
	"fluentps/kernels"
)

// Rank is one rank of a benchmark.
type Rank struct {
	Transport comm.Transport
	Mode      string // mpi, local
	Host      string
	Build     string // the version of the program, the same on all ranks
	JSON      bool   // one line of JSON for each case; otherwise a table
	Out, Err  io.Writer
	NewDevice func(threads int) (kernels.Device, error)
}

// Lead reports whether this rank prints.
func (r *Rank) Lead() bool { return r.Transport.Rank() == 0 }

// settleFor is how long Settle keeps the ranks busy before the first measurement.
const settleFor = 200 * time.Millisecond

// Settle gives the system time to move each rank to a core of its own. In the first tenths of a second, two ranks may share a core.
func (r *Rank) Settle() error {
	from := r.Transport.Now()
	for more := 1; more > 0; {
		if err := r.Transport.Barrier(); err != nil {
			return err
		}
		if r.Transport.Now()-from > settleFor {
			more = 0
		}
		var err error
		if more, err = r.tell(more); err != nil {
			return err
		}
	}
	return nil
}

// tagTell is the tag of the number that tell sends.
const tagTell = 1 << 20

// tell broadcasts the value of rank 0. Every rank returns that value.
func (r *Rank) tell(value int) (int, error) {
	buf, err := r.Transport.Alloc(8)
	if err != nil {
		return 0, err
	}
	defer buf.Free()
	open := 0
	var failed error
	done := func(d comm.Done) {
		open--
		failed = errors.Join(failed, d.Err)
	}
	if r.Lead() {
		binary.LittleEndian.PutUint64(buf.Bytes(), uint64(value))
		for to := 1; to < r.Transport.Size(); to++ {
			open++
			r.Transport.Isend(comm.Peer(to), comm.Data, tagTell, buf, 0, 8, done)
		}
	} else {
		open++
		r.Transport.Irecv(0, comm.Data, tagTell, buf, 0, 8, done)
	}
	if err := r.Transport.Drive(func() bool { return open == 0 }); err != nil {
		return 0, err
	}
	return int(binary.LittleEndian.Uint64(buf.Bytes())), failed
}

// hostState is the state of the host, on which the figures depend.
type hostState struct {
	Cores int     `json:"cores"`
	Load  float64 `json:"load"` // average of the last minute; 0 if the system does not report it
}

func readHost() hostState {
	h := hostState{Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		h.Load, _ = strconv.ParseFloat(first, 64) // 0 if the kernel writes something else
	}
	return h
}

// timesFor returns how many repetitions of duration each fill total, from least to most.
func timesFor(total, each time.Duration, least, most int) int {
	n := float64(total) / float64(max(each, 1))
	return int(min(max(n, float64(least)), float64(most)))
}

// printHost prints the last line of a text table.
func printHost(w io.Writer) {
	h := readHost()
	fmt.Fprintf(w, "%d cores, load average %.2f\n", h.Cores, h.Load)
}

// writeJSON writes a row as one line.
func writeJSON(w io.Writer, row any) error {
	text, err := json.Marshal(row)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}
