// Package kerneltest is the conformance suite of devices. It runs every kernel of the Table on the
// cases of its folder and compares with correct results in float64.
package kerneltest

import (
	"fmt"
	"math"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// Epsilon is the distance from 1 to the next float32.
const Epsilon = 1.0 / (1 << 23)

// T is what Run needs of a *testing.T. This package does not import package testing, because the program checks kernels
// too.
type T[Sub any] interface {
	Helper()
	Error(args ...any)
	Logf(format string, args ...any)
	Run(name string, f func(t Sub)) bool
}

// Run fails t, a *testing.T, for every error that Check returns.
func Run[Test T[Test]](t Test, dev kernels.Device) {
	t.Helper()
	for _, k := range kernels.Table {
		t.Run(k.Name, func(t Test) { RunKernel(t, dev, k) })
	}
}

// RunKernel is Run for one kernel.
func RunKernel[Test T[Test]](t Test, dev kernels.Device, k *kernels.Kernel) {
	t.Helper()
	worst, errs := Measure(dev, k)
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 {
		return
	}
	t.Logf("%s: k is at most %.2f in %d cases, the limit is %g", k.Name, worst, len(k.Cases()), k.Tol)
}

// Check runs all cases of k on dev and returns an error for each case with a value outside the tolerance, a write past
// the sizes, a changed input, or results that differ between two runs. It also fails if there are no cases.
func Check(dev kernels.Device, k *kernels.Kernel) []error {
	_, errs := Measure(dev, k)
	return errs
}

// Measure does what Check does and also returns the largest error, in units of Kernel.Tol.
func Measure(dev kernels.Device, k *kernels.Kernel) (worst float64, errs []error) {
	var cases []kernel.Case
	if k.Cases != nil {
		cases = k.Cases()
	}
	if len(cases) == 0 {
		return 0, []error{fmt.Errorf("%s: no cases", k.Name)}
	}
	if k.Tol < 0 || k.Tol > 8 {
		errs = append(errs, fmt.Errorf("%s: Tol is %g, must lie in 0..8", k.Name, k.Tol))
	}
	for _, c := range cases {
		off, err := run(&c, dev, k)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", k.Name, c.Name, err))
		}
		worst = max(worst, off)
	}
	return worst, errs
}

// guard is the number of elements behind every vector that no kernel may write.
const guard = 5

const guardValue = -12345

// run runs a case twice and returns its largest error, in units of Kernel.Tol.
func run(c *kernel.Case, dev kernels.Device, k *kernels.Kernel) (worst float64, err error) {
	first, err := launch(c, dev, k)
	if err != nil {
		return 0, err
	}
	second, err := launch(c, dev, k)
	if err != nil {
		return 0, err
	}
	unit := Epsilon * math.Sqrt(float64(max(c.Terms, 1)))
	for v := range c.In {
		for i, got := range first[v] {
			if math.Float32bits(got) != math.Float32bits(second[v][i]) {
				return worst, fmt.Errorf("vector %d element %d is %g, then %g in a second run", v, i, got, second[v][i])
			}
			off, err := compare(c, v, i, got, unit, k.Tol)
			if err != nil {
				return worst, err
			}
			worst = max(worst, off)
		}
	}
	return worst, nil
}

// compare returns the error of an element in units. An element that must be equal to the bit has no error or fails.
func compare(c *kernel.Case, v, i int, got float32, unit, limit float64) (off float64, err error) {
	n := len(c.In[v])
	if i < n && c.Want[v] != nil {
		return compareValue(v, i, n, float64(got), c.Want[v][i], unit, limit)
	}
	want := math.Float32bits(guardValue)
	if i < n {
		want = math.Float32bits(c.In[v][i])
	}
	if bits := math.Float32bits(got); bits != want {
		return 0, fmt.Errorf("vector %d element %d of %d is %.9g (%#08x), want %.9g (%#08x)", v, i, n, got, bits,
			math.Float32frombits(want), want)
	}
	return 0, nil
}

func compareValue(v, i, n int, got, want, unit, limit float64) (off float64, err error) {
	if got == want || math.IsNaN(want) && math.IsNaN(got) {
		return 0, nil
	}
	unit *= max(1, math.Abs(want))
	if off = math.Abs(got-want) / unit; !(off <= limit) {
		return off, fmt.Errorf("vector %d element %d of %d is %.9g, want %.9g, off by %.3g, limit %.3g", v, i, n, got, want,
			math.Abs(got-want), limit*unit)
	}
	return off, nil
}

// launch uploads the inputs, runs the kernel once and downloads all vectors with their guards.
func launch(c *kernel.Case, dev kernels.Device, k *kernels.Kernel) ([kernel.VecsMax][]float32, error) {
	var out [kernel.VecsMax][]float32
	args := kernels.Args{N: c.Sizes, F: c.Scalars}
	for v, in := range c.In {
		if in == nil {
			continue
		}
		if c.Alias[v] > 0 {
			args.V[v] = args.V[c.Alias[v]-1]
			continue
		}
		vec, err := dev.Alloc(len(in) + guard)
		if err != nil {
			return out, err
		}
		padded := append(append([]float32{}, in...), guardValue, guardValue, guardValue, guardValue, guardValue)
		if err := dev.Upload(vec, padded); err != nil {
			return out, err
		}
		args.V[v] = vec
	}
	if err := dev.Launch(k, args); err != nil {
		return out, err
	}
	if err := dev.Sync(); err != nil {
		return out, err
	}
	for v, in := range c.In {
		if in == nil || c.Alias[v] > 0 {
			continue
		}
		out[v] = make([]float32, len(in)+guard)
		if err := dev.Download(out[v], args.V[v]); err != nil {
			return out, err
		}
	}
	return out, nil
}
