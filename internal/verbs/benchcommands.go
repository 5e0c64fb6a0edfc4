package verbs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/rank/bench"
	"fluentps/kernels"
)

func benchCommCommand() *cli.Command {
	return &cli.Command{
		Name:  "comm",
		Usage: "latency, bandwidth and message rate between two ranks",
		Description: "Rank 0 and the last rank exchange messages through the transport that training uses; others wait.\n" +
			"latency: half a round trip; stream: one way, 16 messages at once up to 64 KiB, 8 up to 1 MiB, 4 above;\n" +
			"both: both ways at once, summed; rate: messages per second of the stream. GB = 1e9 bytes.",
		Flags: []cli.Flag{
			localFlag(),
			sizesFlag("8B,64B,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB"),
			&cli.DurationFlag{Name: "time", Value: 200 * time.Millisecond, Usage: "each figure is measured for `TIME`, as in 1s"},
			benchFormatFlag(),
		},
		Action: func(c *cli.Context) error {
			sizes, err := sizesOf(c, "sizes", 1, comm.MessageMax)
			if err != nil {
				return err
			}
			return benchWorld(c, 2, func(r *bench.Rank) error { return r.Comm(sizes, c.Duration("time")) })
		},
	}
}

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
			return benchWorld(c, 2, func(r *bench.Rank) error {
				for _, n := range sizes {
					if err := r.Flood(int(n), c.Int("messages"), c.Duration("pause")); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

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
			if d := c.Duration("silence"); d < 10*bench.Settled {
				return usagef("bench idle: --silence is %v, must be at least %v", d, 10*bench.Settled)
			}
			return benchWorld(c, 2, func(r *bench.Rank) error { return r.Idle(c.Int("messages"), c.Duration("silence")) })
		},
	}
}

func benchPushpullCommand() *cli.Command {
	return &cli.Command{
		Name:  "pushpull",
		Usage: "what a round of push, update and pull costs",
		Description: "Trains a model that computes nothing: every iteration pushes the whole size and pulls it, through all\n" +
			"that a real run goes through. First a short run, whose parameters must be initial + rounds times a known\n" +
			"step; then the one that is timed. Figures are of the slowest worker, in GB = 1e9 bytes pushed and pulled;\n" +
			"CPU seconds are of all ranks, for a GB of all workers.",
		Flags: []cli.Flag{
			localFlag(),
			&cli.IntFlag{Name: "servers", Value: 1, Usage: "`S` of the ranks serve, the rest work"},
			sizesFlag("4KiB,64KiB,1MiB,16MiB,64MiB"),
			&cli.StringFlag{Name: "scheme", Value: "bsp",
				Usage: "`LIST` of schemes, one after the other; their keys by --set, as in --set 'sync[0].staleness=3'"},
			&cli.StringFlag{Name: "slice", Value: "layer",
				Usage: "shards.slice; layer: a shard per layer, several on a server; even: one on each server; `HOW`"},
			&cli.StringFlag{Name: "shard-bytes", Value: "1MiB",
				Usage: "layers are as long as this, or as a server's share of the size if that is less; `SIZE`"},
			&cli.StringFlag{Name: "shared-memory", Value: "auto",
				Usage: "`HOW` of cluster.shared_memory, auto or off; both: each case with and without"},
			&cli.DurationFlag{Name: "time", Value: 500 * time.Millisecond, Usage: "how long each case is timed, `D`; at least 5 rounds"},
			&cli.IntFlag{Name: "rounds", Usage: "time this many rounds instead, `N`"},
			setFlag(),
			benchFormatFlag(),
		},
		Action: benchPushpullVerb,
	}
}

func benchPushpullVerb(c *cli.Context) error {
	sizes, err := sizesOf(c, "sizes", 4, 1<<30)
	if err != nil {
		return err
	}
	longest, err := sizesOf(c, "shard-bytes", 4, 1<<30)
	if err != nil || len(longest) != 1 {
		return usagef("bench pushpull: --shard-bytes is %q, must be one size from 4 B", c.String("shard-bytes"))
	}
	servers := c.Int("servers")
	if servers < 1 {
		return usagef("bench pushpull: --servers is %d, must be at least 1", servers)
	}
	if n := c.Int("rounds"); c.IsSet("rounds") && (n < bench.RoundsMin || n > bench.RoundsMost(1)) {
		return usagef("bench pushpull: --rounds is %d, must be %d to %d", n, bench.RoundsMin, bench.RoundsMost(1))
	}
	memories := []string{c.String("shared-memory")}
	switch memories[0] {
	case configs.SharedAuto, configs.SharedOff:
	case "both":
		memories = []string{configs.SharedAuto, configs.SharedOff}
	default:
		return usagef("bench pushpull: --shared-memory is %q, must be auto, off or both", memories[0])
	}
	table := bench.Table{
		Schemes: strings.Split(c.String("scheme"), ","), Sizes: sizes, ShardBytes: longest[0], Memories: memories, Servers: servers,
		Slice: c.String("slice"), Set: c.StringSlice("set"),
	}
	cases, err := table.Cases()
	if err != nil {
		return usagef("%v", err)
	}
	return benchWorld(c, bench.RanksMin(cases), func(r *bench.Rank) error { return r.Pushpull(cases, c.Duration("time"), c.Int("rounds")) })
}

func benchKernelsCommand() *cli.Command {
	return &cli.Command{
		Name:  "kernels",
		Usage: "time of each kernel at the sizes that networks have, beside what the device could do",
		Description: "Each kernel must first agree with its reference in float64 at sizes that fit no tile; one that does not is\n" +
			"named and not timed, and the exit code is 1. ms is per launch, many launches one after another. peak is the share\n" +
			"of min(peak GFLOP/s, flops per byte x peak GB/s), flops and bytes being what the kernel must do at least. Both\n" +
			"peaks are measured first: a large product, and axpy and scale of long vectors. Operands that fit into the caches\n" +
			"can exceed 100 %. GB = 1e9 bytes. Under a launcher the first process alone measures.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "device", Value: "auto", Usage: "`KIND` of what computes, as in device.kind"},
			&cli.IntFlag{Name: "threads", Value: 1, Usage: "`N` threads of the CPU"},
			&cli.StringFlag{Name: "only", Usage: "the kernels of these `NAMES` alone, such as gemm_nt,axpy"},
			&cli.DurationFlag{Name: "time", Value: 200 * time.Millisecond, Usage: "each figure is measured for `TIME`, as in 1s"},
			benchFormatFlag(),
		},
		Action: benchKernelsVerb,
	}
}

func benchKernelsVerb(c *cli.Context) (err error) {
	format, threads, chosen := c.String("format"), c.Int("threads"), kernels.Table
	if err := noArguments(c); err != nil {
		return err
	}
	switch {
	case format != "text" && format != "json":
		return usagef("bench kernels: --format is %q, must be text or json", format)
	case threads < 1 || threads > 1024:
		return usagef("bench kernels: --threads is %d, must be 1 to 1024", threads)
	case c.Duration("time") <= 0:
		return usagef("bench kernels: --time is %v, must be more than 0", c.Duration("time"))
	}
	if only := c.String("only"); only != "" {
		if chosen, err = kernelsNamed(strings.Split(only, ",")); err != nil {
			return err
		}
	}
	if !speaks(os.Getenv) {
		return nil
	}
	tune()
	dev, err := openDevice(c.String("device"), threads)
	if err != nil {
		return usagef("bench kernels: %v", err)
	}
	if d, ok := dev.(kernels.Describer); ok && d.Weak() != "" {
		fmt.Fprintf(c.App.ErrWriter, "WARNING: %s\n", d.Weak())
	}
	b := bench.Kernels{
		Out: c.App.Writer, Warn: func(text string) { printError(c.App.ErrWriter, text) }, Device: dev,
		Time: c.Duration("time"), JSON: format == "json",
	}
	return errors.Join(b.Run(chosen), dev.Close())
}

// kernelsNamed are the kernels with these names, in the order of the table.
func kernelsNamed(only []string) (chosen []*kernels.Kernel, err error) {
	var names []string
	for _, k := range kernels.Table {
		names = append(names, k.Name)
		if slices.Contains(only, k.Name) {
			chosen = append(chosen, k)
		}
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, usagef("bench kernels: %s", unknown("kernel", name, names))
		}
	}
	return chosen, nil
}
