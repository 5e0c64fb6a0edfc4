package verbs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/mpi"
	"fluentps/internal/rank/bench"
	ps "fluentps/internal/rank/runtime"
	"fluentps/kernels/cpu"
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

// ranked is one rank of a benchmark.
type ranked struct {
	bench.Rank
	c *cli.Context
}

// benchWorld runs body on every rank of the world. The first rank that fails ends all; a mistake that all ranks
// find alike is told once.
func benchWorld(c *cli.Context, ranksMin int, body func(*bench.Rank) error) error {
	format := c.String("format")
	if format != "text" && format != "json" {
		return usagef("%s: --format is %q, must be text or json", verbOf(c), format)
	}
	if err := noArguments(c); err != nil {
		return err
	}
	tune()
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := ranked{c: c, Rank: bench.Rank{Host: host, Mode: "mpi", Build: buildText(), JSON: format == "json",
		Out: c.App.Writer, Err: c.App.ErrWriter, NewDevice: newCPU}}
	if c.IsSet("local") {
		n := c.Int("local")
		if n < ranksMin || n > localMax {
			return usagef("%s: --local is %d, must be %d to %d ranks", verbOf(c), n, ranksMin, localMax)
		}
		if err := localUnderLauncher(n, os.Getenv); err != nil {
			return err
		}
		b.Mode = "local"
		return benchLocal(b, n, body)
	}
	if !mpi.UnderLauncher(os.Getenv) || !withMPI() {
		return usagef("%s: start it with mpirun -n RANKS and a binary with MPI (make build), or with --local RANKS", verbOf(c))
	}
	_ = cpu.Open() // before the threads of MPI; who computes asks again, and has the error
	if b.Transport, err = mpi.Init(mpi.Options{PoolMax: poolMax}); err != nil {
		return usagef("%v", err)
	}
	if n := b.Transport.Size(); n < ranksMin {
		err = usagef("%s: %d ranks, needs at least %d", verbOf(c), n, ranksMin)
	} else {
		err = b.rank(body)
	}
	return b.leave(err)
}

// benchLocal runs n ranks as goroutines.
func benchLocal(b ranked, n int, body func(*bench.Rank) error) error {
	ends := make([]error, n)
	var done sync.WaitGroup
	for i, t := range inproc.New(n, inproc.Options{PoolMax: poolMax}) {
		mine := b
		mine.Transport = t
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
func (b *ranked) rank(body func(*bench.Rank) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = crash(p)
		}
	}()
	if err := b.Settle(); err != nil {
		return err
	}
	return body(&b.Rank)
}

// leave closes the transport, or ends the world after an error that only this rank has.
func (b *ranked) leave(err error) error {
	var agreed *ps.ExitError
	var exit *exitError
	var aborted *comm.AbortError
	switch {
	case errors.As(err, &aborted): // by another rank, which has said why
		return &exitError{code: aborted.Code}
	case errors.As(err, &agreed):
		exit = &exitError{code: agreed.Code}
		if b.Lead() {
			exit.text = agreed.Text
		}
	case errors.As(err, &exit): // a mistake in what was typed, which all ranks read
		if !b.Lead() {
			exit = &exitError{code: exit.code}
		}
	case err != nil:
		printError(b.c.App.ErrWriter, fmt.Sprintf("rank %d: %v", b.Transport.Rank(), err))
		b.Transport.Abort(codeFailed)
		return &exitError{code: codeFailed}
	}
	if err := b.Transport.Close(); errors.Is(err, comm.ErrStuck) { // all has been measured and said
		if exit == nil {
			exit = &exitError{}
		} else if exit.text != "" {
			printError(b.c.App.ErrWriter, exit.text)
		}
		b.Transport.Abort(exit.code)
	} else if err != nil && !errors.As(err, &aborted) {
		return err
	}
	if exit != nil {
		return exit
	}
	return nil
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
