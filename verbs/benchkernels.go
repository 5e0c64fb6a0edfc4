package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/kernels"
	"fluentps/kernels/kerneltest"
)

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
	switch {
	case c.NArg() > 0:
		return usagef("bench kernels takes no arguments, got%s", listed(c.Args().Slice()))
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
	b := &kernelBench{out: c.App.Writer, warn: c.App.ErrWriter, dev: dev, total: c.Duration("time"), json: format == "json"}
	return errors.Join(b.run(chosen), dev.Close())
}

// kernelsNamed are those of the table with these names, in its order.
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

// kernelBench measures kernels on one device.
type kernelBench struct {
	out, warn io.Writer
	dev       kernels.Device
	total     time.Duration // for each figure
	json      bool
	room      kernels.Vecs // memory of the arguments, as long as the longest so far; devices free none
	flops     float64      // the device's peak, per second
	bytes     float64
}

// kernelRow is one kernel at one size.
type kernelRow struct {
	What       string  `json:"what"` // kernels
	Device     string  `json:"device"`
	Kernel     string  `json:"kernel"`
	Layer      string  `json:"layer"`
	Sizes      []int   `json:"sizes"` // in the order that the kernel documents
	MS         float64 `json:"ms"`
	GBPerS     float64 `json:"gb_per_s"`
	GFLOPPerS  float64 `json:"gflop_per_s"`
	PeakShare  float64 `json:"peak_share"` // of the roofline at this size
	PeakGFLOPS float64 `json:"peak_gflop_per_s"`
	PeakGBPerS float64 `json:"peak_gb_per_s"`
	hostState
}

// run checks and times the chosen kernels. Wrong ones are told at once, and in the error.
func (b *kernelBench) run(chosen []*kernels.Kernel) error {
	if err := b.peaks(); err != nil {
		return err
	}
	if !b.json {
		fmt.Fprintf(b.out, "%s: peak %.1f GFLOP/s, %.1f GB/s\n", b.dev.Name(), 1e-9*b.flops, 1e-9*b.bytes)
		fmt.Fprintf(b.out, "%-22s %-22s %-26s %10s %9s %9s %7s\n", "kernel", "layer", "sizes", "ms", "GB/s", "GFLOP/s", "peak %")
	}
	var wrong []string
	for _, k := range chosen {
		if errs := kerneltest.Check(b.dev, k); len(errs) > 0 {
			wrong = append(wrong, k.Name)
			printError(b.warn, fmt.Sprintf("%v (%d of its cases fail)", errs[0], len(errs)))
			continue
		}
		for _, l := range launchesOf(k) {
			if err := b.measure(k, l); err != nil {
				return fmt.Errorf("%s at %s: %w", k.Name, l.layer, err)
			}
		}
	}
	if !b.json {
		printHost(b.out)
	}
	if len(wrong) > 0 {
		return &exitError{codeFailed, fmt.Sprintf("bench kernels: wrong values, so not timed: %s", strings.Join(wrong, ", "))}
	}
	return nil
}

// measure prints one row.
func (b *kernelBench) measure(k *kernels.Kernel, l kernelLaunch) error {
	seconds, err := b.time(k, l, 0.5)
	if err != nil {
		return err
	}
	flops, bytes := k.Cost(l.sizes())
	row := kernelRow{
		What: "kernels", Device: b.dev.Name(), Kernel: k.Name, Layer: l.layer, Sizes: l.n, MS: 1e3 * seconds,
		GBPerS: 1e-9 * bytes / seconds, GFLOPPerS: 1e-9 * flops / seconds,
		PeakShare:  math.Max(flops/b.flops, bytes/b.bytes) / seconds,
		PeakGFLOPS: 1e-9 * b.flops, PeakGBPerS: 1e-9 * b.bytes, hostState: readHost(),
	}
	if b.json {
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "%s\n", text)
		return nil
	}
	sizes := strings.ReplaceAll(strings.Trim(fmt.Sprint(l.n), "[]"), " ", "x")
	fmt.Fprintf(b.out, "%-22s %-22s %-26s %10.4f %9.2f %9.2f %7.1f\n",
		k.Name, l.layer, sizes, row.MS, row.GBPerS, row.GFLOPPerS, 100*row.PeakShare)
	return nil
}

// peaks finds what the device does at most: ever larger products and vectors, until one takes long.
func (b *kernelBench) peaks() error {
	const long = 0.05 // seconds
	for n := 256; n <= 4096; n *= 2 {
		l := kernelLaunch{n: []int{n, n, n}}
		seconds, err := b.time(kernels.GemmNN, l, 0)
		if err != nil {
			return err
		}
		flops, _ := kernels.GemmNN.Cost(l.sizes())
		b.flops = max(b.flops, flops/seconds)
		if seconds > long {
			break
		}
	}
	for n := 1 << 20; n <= 1<<24; n *= 4 {
		var slowest float64
		b.bytes = 0 // shorter vectors lie in caches
		for _, k := range []*kernels.Kernel{kernels.Axpy, kernels.Scale} {
			l := kernelLaunch{n: []int{n}}
			seconds, err := b.time(k, l, 0)
			if err != nil {
				return err
			}
			_, bytes := k.Cost(l.sizes())
			b.bytes = max(b.bytes, bytes/seconds)
			slowest = max(slowest, seconds)
		}
		if slowest > long {
			break
		}
	}
	return nil
}

// time is how many seconds one of many launches takes: quantile q of up to 5 passes.
func (b *kernelBench) time(k *kernels.Kernel, l kernelLaunch, q float64) (float64, error) {
	args, err := b.args(k, l)
	if err != nil {
		return 0, err
	}
	pass := func(times int) (time.Duration, error) {
		from := time.Now()
		for range times {
			if err := b.dev.Launch(k, args); err != nil {
				return 0, err
			}
		}
		err := b.dev.Sync()
		return max(time.Since(from), 1), err
	}
	if _, err := pass(1); err != nil { // the first one may find its memory and code
		return 0, err
	}
	const passes, growth, most = 5, 4, 1 << 20
	times, took := 1, time.Duration(0)
	for {
		if took, err = pass(times); err != nil {
			return 0, err
		}
		if took > b.total/(passes*growth) || times >= most {
			break
		}
		times *= growth
	}
	if took < b.total {
		times = timesFor(b.total/passes, took/time.Duration(times), 1, most)
	}
	left := timesFor(b.total, took, 1, passes)
	var all rounds
	for range left {
		d, err := pass(times)
		if err != nil {
			return 0, err
		}
		all = append(all, d)
	}
	return all.quantile(q).Seconds() / float64(times), nil
}

// args fills the vectors of a launch with values that the kernel may get, the same at each call.
func (b *kernelBench) args(k *kernels.Kernel, l kernelLaunch) (kernels.Args, error) {
	a := kernels.Args{N: l.sizes(), F: scalarsOf(k)}
	for v, n := range k.Need(a.N) {
		if n == 0 {
			continue
		}
		if b.room[v].Len() < n {
			room, err := b.dev.Alloc(n)
			if err != nil {
				return a, err
			}
			b.room[v] = room
		}
		a.V[v] = b.room[v].Slice(0, n)
		if err := b.dev.Upload(a.V[v], benchValues(n, uint64(v), isPositive(k, v))); err != nil {
			return a, err
		}
	}
	return a, nil
}

// benchValues are in [-1, 1), or in [0, 1); they come again after a prime number of them.
func benchValues(n int, seed uint64, positive bool) []float32 {
	const period = 8191
	values, r := make([]float32, n), rand.New(rand.NewPCG(seed, period))
	for i := range values[:min(n, period)] {
		values[i] = r.Float32()
		if !positive {
			values[i] = 2*values[i] - 1
		}
	}
	for done := period; done < n; done *= 2 {
		copy(values[done:], values[:done])
	}
	return values
}
