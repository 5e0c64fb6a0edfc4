package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/comm"
	"fluentps/comm/inproc"
	"fluentps/comm/mpi"
	"fluentps/kernels/cpu"
	ps "fluentps/ps/runtime"
)

func benchCommand() *cli.Command {
	what := []*cli.Command{benchCommCommand(), benchPushpullCommand(), benchIdleCommand(), benchFloodCommand(), benchKernelsCommand()}
	var names []string
	for _, c := range what {
		names = append(names, c.Name)
	}
	return &cli.Command{
		Name:      "bench",
		Usage:     "measure what moving bytes and computing cost: " + strings.Join(names, ", "),
		ArgsUsage: strings.Join(names, " | "),
		Description: "Under mpirun or srun every process is one rank; with --local N the ranks are goroutines of this\n" +
			"process; kernels needs neither. Values are checked before anything is timed. make bench runs comm and\n" +
			"pushpull beside references in C.",
		Subcommands: what,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usagef("bench: name what to measure, one of %s; see fluentps bench -h", strings.Join(names, ", "))
			}
			return usagef("bench: %s", unknown("benchmark", c.Args().First(), names))
		},
	}
}

func localFlag() cli.Flag {
	return &cli.IntFlag{Name: "local", Usage: "start `N` ranks as goroutines of this process; needs no MPI"}
}

func sizesFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "sizes", Value: value, Usage: "`LIST` of sizes, such as 4KiB,1MiB"}
}

func benchFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "format", Value: "text", Usage: "`FORM` of the output: text, or json, one line per case"}
}

// bench is one rank of a benchmark.
type bench struct {
	c    *cli.Context
	t    comm.Transport
	mode string // mpi, local
	host string
	json bool
}

// lead says whether this rank prints.
func (b *bench) lead() bool { return b.t.Rank() == 0 }

// benchWorld runs body on every rank of the world. The first rank that fails ends all; a mistake that all ranks
// find alike is told once.
func benchWorld(c *cli.Context, ranksMin int, body func(*bench) error) error {
	format := c.String("format")
	if format != "text" && format != "json" {
		return usagef("%s: --format is %q, must be text or json", verbOf(c), format)
	}
	if c.NArg() > 0 {
		return usagef("%s takes no arguments, got%s", verbOf(c), listed(c.Args().Slice()))
	}
	tune()
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := bench{c: c, host: host, json: format == "json", mode: "mpi"}
	if c.IsSet("local") {
		n := c.Int("local")
		if n < ranksMin || n > localMax {
			return usagef("%s: --local is %d, must be %d to %d ranks", verbOf(c), n, ranksMin, localMax)
		}
		if err := localUnderLauncher(n, os.Getenv); err != nil {
			return err
		}
		b.mode = "local"
		return benchLocal(b, n, body)
	}
	if !mpi.UnderLauncher(os.Getenv) || !withMPI() {
		return usagef("%s: start it with mpirun -n RANKS and a binary with MPI (make build), or with --local RANKS", verbOf(c))
	}
	_ = cpu.Open() // before the threads of MPI; who computes asks again, and has the error
	if b.t, err = mpi.Init(mpi.Options{PoolMax: poolMax}); err != nil {
		return usagef("%v", err)
	}
	if n := b.t.Size(); n < ranksMin {
		err = usagef("%s: %d ranks, needs at least %d", verbOf(c), n, ranksMin)
	} else {
		err = b.rank(body)
	}
	return b.leave(err)
}

// benchLocal runs n ranks as goroutines.
func benchLocal(b bench, n int, body func(*bench) error) error {
	ends := make([]error, n)
	var done sync.WaitGroup
	for i, t := range inproc.New(n, inproc.Options{PoolMax: poolMax}) {
		mine := b
		mine.t = t
		done.Go(func() { ends[i] = mine.leave(mine.rank(body)) })
	}
	done.Wait()
	for _, err := range ends {
		if err != nil {
			return err
		}
	}
	return nil
}

// rank is body with a panic, which is a bug of ours, turned into an error.
func (b *bench) rank(body func(*bench) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = crash(p)
		}
	}()
	if err := b.settle(); err != nil {
		return err
	}
	return body(b)
}

// settleFor is how long ranks play before anything is measured.
const settleFor = 200 * time.Millisecond

// settle lets the system find a core for each rank: the first tenths of a second may have two on one.
func (b *bench) settle() error {
	from := b.t.Now()
	for more := 1; more > 0; {
		if err := b.t.Barrier(); err != nil {
			return err
		}
		if b.t.Now()-from > settleFor {
			more = 0
		}
		var err error
		if more, err = b.tell(more); err != nil {
			return err
		}
	}
	return nil
}

// leave closes the transport, or ends the world after an error that only this rank has.
func (b *bench) leave(err error) error {
	var agreed *ps.ExitError
	var exit *exitError
	var aborted *comm.AbortError
	switch {
	case errors.As(err, &aborted): // by another rank, which has said why
		return &exitError{code: aborted.Code}
	case errors.As(err, &agreed):
		exit = &exitError{code: agreed.Code}
		if b.lead() {
			exit.text = agreed.Text
		}
	case errors.As(err, &exit): // a mistake in what was typed, which all ranks read
		if !b.lead() {
			exit = &exitError{code: exit.code}
		}
	case err != nil:
		printError(b.c.App.ErrWriter, fmt.Sprintf("rank %d: %v", b.t.Rank(), err))
		b.t.Abort(codeFailed)
		return &exitError{code: codeFailed}
	}
	if err := b.t.Close(); errors.Is(err, comm.ErrStuck) { // all has been measured and said
		if exit == nil {
			exit = &exitError{}
		} else if exit.text != "" {
			printError(b.c.App.ErrWriter, exit.text)
		}
		b.t.Abort(exit.code)
	} else if err != nil && !errors.As(err, &aborted) {
		return err
	}
	if exit != nil {
		return exit
	}
	return nil
}

// tagTell is the tag of what rank 0 tells the others between two measurements.
const tagTell = 1 << 20

// tell gives every rank the number that rank 0 has.
func (b *bench) tell(value int) (int, error) {
	buf, err := b.t.Alloc(8)
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
	if b.lead() {
		binary.LittleEndian.PutUint64(buf.Bytes(), uint64(value))
		for to := 1; to < b.t.Size(); to++ {
			open++
			b.t.Isend(comm.Peer(to), comm.Data, tagTell, buf, 0, 8, done)
		}
	} else {
		open++
		b.t.Irecv(0, comm.Data, tagTell, buf, 0, 8, done)
	}
	if err := b.t.Drive(func() bool { return open == 0 }); err != nil {
		return 0, err
	}
	return int(binary.LittleEndian.Uint64(buf.Bytes())), failed
}

// sizesOf reads a list of sizes.
func sizesOf(c *cli.Context, flag string, least, most int64) ([]int64, error) {
	var sizes []int64
	for _, text := range strings.Split(c.String(flag), ",") {
		n, err := sizeOf(strings.TrimSpace(text))
		if err != nil || n < least || n > most {
			return nil, usagef("%s: --%s: %q, must be sizes from %d B to %d MiB, such as 4KiB,1MiB", verbOf(c), flag, text, least, most>>20)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

var sizeUnits = []struct {
	name  string
	shift int
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}

func sizeOf(text string) (int64, error) {
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseInt(digits, 10, 32)
			return n << u.shift, err
		}
	}
	return 0, nil // the empty unit always fits
}

// sizeText writes a size in the largest unit that divides it.
func sizeText(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// hostState is what figures depend on beside the program.
type hostState struct {
	Cores int     `json:"cores"`
	Load  float64 `json:"load"` // of the last minute, where the system tells
}

func readHost() hostState {
	h := hostState{Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		h.Load, _ = strconv.ParseFloat(first, 64) // 0 if the kernel writes something else
	}
	return h
}

// timesFor is how often a thing that takes each is repeated to fill a time, within limits.
func timesFor(total, each time.Duration, least, most int) int {
	n := float64(total) / float64(max(each, 1))
	return int(min(max(n, float64(least)), float64(most)))
}

// printHost ends a text table.
func printHost(w io.Writer) {
	h := readHost()
	fmt.Fprintf(w, "%d cores, load average %.2f\n", h.Cores, h.Load)
}
