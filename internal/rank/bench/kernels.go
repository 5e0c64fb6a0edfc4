package bench

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
	"fluentps/kernels/kerneltest"
)

// Kernels measures kernels on one device.
type Kernels struct {
	Out    io.Writer
	Warn   func(text string) // prints a line for the user
	Device kernels.Device
	Time   time.Duration // for each figure
	JSON   bool          // one line of JSON for each kernel and size; otherwise a table

	room  kernels.Vecs // memory of the arguments, as long as the longest so far; devices never free memory
	flops float64      // peak of the device, FLOP/s
	bytes float64      // peak of the device, bytes/s
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

// WrongError names the kernels whose values are wrong.
type WrongError struct{ Kernels []string }

func (e *WrongError) Error() string {
	return "bench kernels: wrong values, so not timed: " + strings.Join(e.Kernels, ", ")
}

// Run checks and times the chosen kernels. It warns of a kernel with wrong values at once, and returns a WrongError at the end.
func (b *Kernels) Run(chosen []*kernels.Kernel) error {
	if err := b.peaks(); err != nil {
		return err
	}
	if !b.JSON {
		fmt.Fprintf(b.Out, "%s: peak %.1f GFLOP/s, %.1f GB/s\n", b.Device.Name(), 1e-9*b.flops, 1e-9*b.bytes)
		fmt.Fprintf(b.Out, "%-22s %-22s %-26s %10s %9s %9s %7s\n", "kernel", "layer", "sizes", "ms", "GB/s", "GFLOP/s", "peak %")
	}
	var wrong []string
	for _, k := range chosen {
		if errs := kerneltest.Check(b.Device, k); len(errs) > 0 {
			wrong = append(wrong, k.Name)
			b.Warn(fmt.Sprintf("%v (%d of its cases fail)", errs[0], len(errs)))
			continue
		}
		for _, l := range k.Bench.Layers {
			if err := b.measure(k, l); err != nil {
				return fmt.Errorf("%s at %s: %w", k.Name, l.Name, err)
			}
		}
	}
	if !b.JSON {
		printHost(b.Out)
	}
	if len(wrong) > 0 {
		return &WrongError{wrong}
	}
	return nil
}

// measure prints one row.
func (b *Kernels) measure(k *kernels.Kernel, l kernel.Layer) error {
	seconds, err := b.time(k, l, 0.5)
	if err != nil {
		return err
	}
	flops, bytes := k.Cost(l.Sizes())
	row := kernelRow{
		What: "kernels", Device: b.Device.Name(), Kernel: k.Name, Layer: l.Name, Sizes: l.N, MS: 1e3 * seconds,
		GBPerS: 1e-9 * bytes / seconds, GFLOPPerS: 1e-9 * flops / seconds,
		PeakShare:  math.Max(flops/b.flops, bytes/b.bytes) / seconds,
		PeakGFLOPS: 1e-9 * b.flops, PeakGBPerS: 1e-9 * b.bytes, hostState: readHost(),
	}
	if b.JSON {
		return writeJSON(b.Out, row)
	}
	sizes := strings.ReplaceAll(strings.Trim(fmt.Sprint(l.N), "[]"), " ", "x")
	fmt.Fprintf(b.Out, "%-22s %-22s %-26s %10.4f %9.2f %9.2f %7.1f\n",
		k.Name, l.Name, sizes, row.MS, row.GBPerS, row.GFLOPPerS, 100*row.PeakShare)
	return nil
}

// peaks measures the peak rates of the device, with larger and larger matrices and vectors until one takes long.
func (b *Kernels) peaks() error {
	const long = 0.05 // seconds
	for n := 256; n <= 4096; n *= 2 {
		l := kernel.Layer{N: []int{n, n, n}}
		seconds, err := b.time(kernels.GemmNN, l, 0)
		if err != nil {
			return err
		}
		flops, _ := kernels.GemmNN.Cost(l.Sizes())
		b.flops = max(b.flops, flops/seconds)
		if seconds > long {
			break
		}
	}
	for n := 1 << 20; n <= 1<<24; n *= 4 {
		var slowest float64
		b.bytes = 0 // shorter vectors fit in caches and do not count
		for _, k := range []*kernels.Kernel{kernels.Axpy, kernels.Scale} {
			l := kernel.Layer{N: []int{n}}
			seconds, err := b.time(k, l, 0)
			if err != nil {
				return err
			}
			_, bytes := k.Cost(l.Sizes())
			b.bytes = max(b.bytes, bytes/seconds)
			slowest = max(slowest, seconds)
		}
		if slowest > long {
			break
		}
	}
	return nil
}

// time returns the seconds that one launch takes: quantile q of up to 5 passes of many launches.
func (b *Kernels) time(k *kernels.Kernel, l kernel.Layer, q float64) (float64, error) {
	args, err := b.args(k, l)
	if err != nil {
		return 0, err
	}
	pass := func(times int) (time.Duration, error) {
		from := time.Now()
		for range times {
			if err := b.Device.Launch(k, args); err != nil {
				return 0, err
			}
		}
		err := b.Device.Sync()
		return max(time.Since(from), 1), err
	}
	if _, err := pass(1); err != nil { // the first launch loads code and touches memory
		return 0, err
	}
	const passes, growth, most = 5, 4, 1 << 20
	times, took := 1, time.Duration(0)
	for {
		if took, err = pass(times); err != nil {
			return 0, err
		}
		if took > b.Time/(passes*growth) || times >= most {
			break
		}
		times *= growth
	}
	if took < b.Time {
		times = timesFor(b.Time/passes, took/time.Duration(times), 1, most)
	}
	left := timesFor(b.Time, took, 1, passes)
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

// args makes the arguments of a launch, with legal values for the kernel. They are the same at each call.
func (b *Kernels) args(k *kernels.Kernel, l kernel.Layer) (kernels.Args, error) {
	a := kernels.Args{N: l.Sizes(), F: k.Bench.Scalars}
	for v, n := range k.Need(a.N) {
		if n == 0 {
			continue
		}
		if b.room[v].Len() < n {
			room, err := b.Device.Alloc(n)
			if err != nil {
				return a, err
			}
			b.room[v] = room
		}
		a.V[v] = b.room[v].Slice(0, n)
		if err := b.Device.Upload(a.V[v], benchValues(n, uint64(v), k.Bench.Positive[v])); err != nil {
			return a, err
		}
	}
	return a, nil
}

// benchValues returns n random values in [-1, 1), or in [0, 1) if positive. They repeat after period values, a prime number.
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
