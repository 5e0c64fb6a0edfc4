//go:build cuda

package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
	"fluentps/kernels/kernel"
	"fluentps/kernels/kerneltest"
)

// reduced is a device that takes a kernel with fewer cases for the kernel itself.
type reduced struct {
	kernels.Device
	of map[*kernels.Kernel]*kernels.Kernel
}

func (d reduced) Launch(k *kernels.Kernel, a kernels.Args) error { return d.Device.Launch(d.of[k], a) }

// measure runs one case of `of` cases of a kernel, and returns the largest error in units of its tolerance.
func measure(d kernels.Device, k *kernels.Kernel, of int) (worst float64, errs []error) {
	few := *k
	few.Cases = func() (cases []kernel.Case) {
		for i, c := range k.Cases() {
			if i%of == 0 {
				cases = append(cases, c)
			}
		}
		return cases
	}
	return kerneltest.Measure(reduced{d, map[*kernels.Kernel]*kernels.Kernel{&few: k}}, &few)
}

// conformance sends a row of all kernels that are right, and one for each that is not.
func conformance(r *gpucheck.Report) error {
	return onDevice(cuda.Options{}, func(d kernels.Device) error { return everyKernel(r, d, kernels.Table) })
}

func everyKernel(r *gpucheck.Report, d kernels.Device, table []*kernels.Kernel) error {
	right, most, name := 0, 0.0, ""
	for _, k := range table {
		worst, errs := measure(d, k, r.Sizes.Cases)
		if len(errs) > 0 {
			r.Fail(r.Name+": "+k.Name, casesOf(r.Sizes), "%v (%d of its cases fail)", errs[0], len(errs))
			continue
		}
		right++
		if share := worst / max(k.Tol, 1); share >= most {
			most, name = share, k.Name
		}
	}
	if right > 0 {
		r.OK(r.Name, fmt.Sprintf("%d kernels", right), "at most %.2f of the tolerance (%s)", most, name)
	}
	return nil
}

const suiteAid = "conformance suite"

// suite is the conformance suite alone, for a sanitizer.
func suite() error {
	r := gpucheck.NewReport(os.Stdout)
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		for _, k := range kernels.Table {
			if _, errs := measure(d, k, r.Sizes.Cases); len(errs) > 0 {
				return errs[0]
			}
		}
		fmt.Println(len(kernels.Table), "kernels")
		return nil
	})
}

// values returns n random values in [-1, 1), or in [0, 1) if positive. They repeat after a prime number of values.
func values(n int, seed uint64, positive bool) []float32 {
	const period = 65521
	drawn, random := make([]float32, n), rand.New(rand.NewPCG(seed, period))
	for i := range drawn[:min(n, period)] {
		drawn[i] = random.Float32()
		if !positive {
			drawn[i] = 2*drawn[i] - 1
		}
	}
	for done := period; done < n; done *= 2 {
		copy(drawn[done:], drawn[:done])
	}
	return drawn
}

// whole are the vectors that hold whole numbers from 0 to below: classes, and places in a block.
var whole = map[*kernels.Kernel]struct{ vector, below int }{
	kernels.SoftmaxXent: {1, 10}, kernels.SigmoidXent: {1, 2}, kernels.MaxPoolGrad: {1, 4},
}

// legal returns values that vector v of a kernel may have.
func legal(k *kernels.Kernel, v, count int) []float32 {
	if k == kernels.Adam && v == 5 { // the constants of the rule
		return []float32{0.9, 0.1, 0.999, 0.001, 1e-8}
	}
	x := values(count, uint64(v), k.Bench.Positive[v])
	if w, is := whole[k]; is && w.vector == v {
		for i := range x {
			x[i] = float32(int(x[i] * float32(w.below)))
		}
	}
	return x
}

// launched runs a kernel once on a device, with the same arguments on every device, and returns its vectors before and behind it.
func launched(d kernels.Device, k *kernels.Kernel, n kernels.Sizes) (before, after [kernels.VecsMax][]float32, err error) {
	a := kernels.Args{N: n, F: k.Bench.Scalars}
	need := k.Need(n)
	for v, count := range need {
		if count == 0 {
			continue
		}
		before[v] = legal(k, v, count)
		if a.V[v], err = d.Alloc(count); err != nil {
			return before, after, err
		}
		if err := d.Upload(a.V[v], before[v]); err != nil {
			return before, after, err
		}
	}
	if err := d.Launch(k, a); err != nil {
		return before, after, err
	}
	for v, count := range need {
		after[v] = make([]float32, count)
		if err := d.Download(after[v], a.V[v]); err != nil {
			return before, after, err
		}
	}
	return before, after, nil
}

// training compares every kernel with the CPU in the layers of networks at batch 128: the conformance suite has only small launches. A
// row for each kernel. Both sides may be off by the tolerance of the kernel.
func training(r *gpucheck.Report) error {
	host := cpu.New(processors())
	d, err := device(cuda.Options{})
	for _, k := range kernels.Table {
		if err != nil {
			return err
		}
		var sizes []string
		most := 0.0
		var wrong error
		for _, l := range k.Bench.Layers[:min(len(k.Bench.Layers), r.Sizes.LayersMax)] {
			var n kernels.Sizes
			copy(n[:], r.Sizes.Layer(l.N))
			sizes = append(sizes, gpucheck.By(n[:len(l.N)]))
			var share float64
			if share, wrong = besideCPU(d, host, k, n); wrong != nil {
				break
			}
			most = max(most, share)
		}
		if wrong != nil {
			r.Fail(k.Name+" at training sizes", sizes[len(sizes)-1], "%v", wrong)
		} else {
			r.OK(k.Name+" at training sizes", strings.Join(sizes, " "), "at most %.2f of the tolerance from the CPU", most)
		}
		if broken := (*kernels.Failure)(nil); errors.As(wrong, &broken) { // the kernels behind it need a new context
			if err = d.Close(); err == nil {
				d, err = device(cuda.Options{})
			}
		}
	}
	return d.Close()
}

// besideCPU launches a kernel on both devices. It returns the largest difference as a share of the tolerance.
func besideCPU(d, host kernels.Device, k *kernels.Kernel, n kernels.Sizes) (share float64, err error) {
	before, want, err := launched(host, k, n)
	if err != nil {
		return 0, fmt.Errorf("on the CPU: %w", err)
	}
	_, got, err := launched(d, k, n)
	if err != nil {
		return 0, err
	}
	return compare(k, n, before, want, got)
}

// compare returns the largest difference from the CPU, as a share of twice the kernel's tolerance, and an error if one is above. The
// reduction is at most as long as the operations of the launch for an element of the shortest vector that the kernel wrote. Of a
// long sum near 0 the parts were as large as other sums are, so the error is relative to the root mean square of a vector, too.
func compare(k *kernels.Kernel, n kernels.Sizes, before, want, got [kernels.VecsMax][]float32) (most float64, err error) {
	flops, _ := k.Cost(n)
	shortest := math.MaxInt
	for v := range want {
		if !slices.Equal(before[v], want[v]) {
			shortest = min(shortest, len(want[v]))
		}
	}
	unit := 2 * k.Tol * kerneltest.Epsilon * math.Sqrt(max(1, flops/float64(shortest)))
	for v := range want {
		typical := max(1, rootMeanSquare(want[v]))
		for i, w := range want[v] {
			if got[v][i] == w {
				continue
			}
			limit := unit * max(typical, math.Abs(float64(w)))
			off := math.Abs(float64(got[v][i]) - float64(w))
			if !(off <= limit) { // also if it is NaN
				return most, fmt.Errorf("vector %d element %d of %d is %.9g, %.9g on the CPU, apart by %.3g, at most %.3g", v, i,
					len(want[v]), got[v][i], w, off, limit)
			}
			most = max(most, off/limit)
		}
	}
	return most, nil
}

func rootMeanSquare(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(len(x), 1)))
}

// blas runs the cases of products through cuBLAS, and compares one product in TF32 with the exact one: there factors have 10 bits.
func blas(r *gpucheck.Report) error {
	err := onDevice(cuda.Options{Gemm: cuda.CuBLAS}, func(d kernels.Device) error {
		part := *r
		part.Name = r.Name + ", float32"
		return everyKernel(&part, d, []*kernels.Kernel{kernels.GemmNN, kernels.GemmNT, kernels.GemmTN})
	})
	if none := (*cuda.Unusable)(nil); errors.As(err, &none) {
		r.Skip(r.Name, casesOf(r.Sizes), "%v; gpu-check looked in the folders of PyTorch and of the toolkit, too", none)
		return nil
	}
	if err != nil {
		return err
	}
	return onDevice(cuda.Options{Gemm: cuda.CuBLAS, Math: cuda.TF32}, func(d kernels.Device) error {
		const m, n, terms = 64, 48, 256
		sizes := kernels.Sizes{m, n, terms}
		before, got, err := launched(d, kernels.GemmNN, sizes)
		if err != nil {
			return err
		}
		worst := 0.0
		for i, g := range got[2] {
			var want, size float64
			for t := range terms {
				x, y := float64(before[0][i/n*terms+t]), float64(before[1][t*n+i%n])
				want, size = want+x*y, size+math.Abs(x*y)
			}
			want += float64(before[3][i%n])
			worst = max(worst, math.Abs(float64(g)-want)/size)
		}
		const limit = 1e-3 // of the sum of the sizes of all terms; rounding to 10 bits makes at most 2^-10 of each
		if !(worst <= limit) {
			r.Fail(r.Name+", TF32", gpucheck.By(sizes[:3]), "off by %.2g of the terms, at most %.0g", worst, limit)
			return nil
		}
		r.OK(r.Name+", TF32", gpucheck.By(sizes[:3]), "off by at most %.2g of the terms", worst)
		return nil
	})
}
