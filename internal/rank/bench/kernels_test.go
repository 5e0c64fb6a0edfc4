package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/kernel"
)

// spoiling is a device that computes wrong values for one kernel.
type spoiling struct {
	kernels.Device
	k *kernels.Kernel
}

func (d spoiling) Launch(k *kernels.Kernel, a kernels.Args) error {
	err := d.Device.Launch(k, a)
	if k == d.k && a.N[0] > 0 {
		a.V[1].Host[0]++
	}
	return err
}

func TestAWrongKernelIsNamedAndNotTimed(t *testing.T) {
	var out bytes.Buffer
	var warned string
	b := &Kernels{Out: &out, Warn: func(text string) { warned += text }, Device: spoiling{cpu.New(1), kernels.Axpy},
		Time: time.Microsecond, JSON: true}
	err := b.Run([]*kernels.Kernel{kernels.Fill, kernels.Axpy, kernels.Scale})
	var wrong *WrongError
	if !errors.As(err, &wrong) || !slices.Equal(wrong.Kernels, []string{"axpy"}) {
		t.Errorf("error %v, want one that names axpy", err)
	}
	if !strings.Contains(warned, "axpy n=1 a=0: vector 1 element 0 of 1 is") {
		t.Errorf("no warning about the case that fails: %s", warned)
	}
	rows := map[string]int{}
	for dec := json.NewDecoder(&out); ; {
		var row kernelRow
		if err := dec.Decode(&row); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rows[row.Kernel]++
		flops, bytes := kernels.Scale.Cost(kernels.Sizes{row.Sizes[0]})
		if row.Kernel != "scale" {
			flops, bytes = 0, 4*float64(row.Sizes[0])
		}
		roof := math.Max(flops/row.PeakGFLOPS, bytes/row.PeakGBPerS) / 1e6 // ms
		if math.Abs(row.GBPerS*row.MS*1e6/bytes-1) > 1e-6 || math.Abs(row.PeakShare*row.MS/roof-1) > 1e-6 {
			t.Errorf("%+v: figures do not fit together", row)
		}
	}
	if len(rows) != 2 || rows["fill"] != len(kernel.Models) || rows["scale"] != len(kernel.Models) {
		t.Errorf("rows of %v, want %d of fill and of scale", rows, len(kernel.Models))
	}
}

// The row of a kernel has everything that the verb needs.
func TestARowIsEnough(t *testing.T) {
	right := 2.
	twice := &kernels.Kernel{
		Name: "twice", Tol: 1, Cost: kernel.ElementCost(1, 1, 2), Need: kernel.Vectors(1),
		CPU: func(a kernels.Args) {
			for i := range a.V[0].Host[:a.N[0]] {
				a.V[0].Host[i] *= 2 * a.F[0]
			}
		},
		Cases: func() []kernel.Case {
			return []kernel.Case{{
				Name: "one", Sizes: kernels.Sizes{1}, Scalars: kernels.Scalars{1}, In: [kernel.VecsMax][]float32{{3}},
				Want: [kernel.VecsMax][]float64{{3 * right}},
			}}
		},
		Bench: kernel.Bench{Layers: []kernel.Layer{{Name: "small", N: []int{7}}, {Name: "large", N: []int{99}}}, Scalars: kernels.Scalars{0.5}},
	}
	var out bytes.Buffer
	var warned string
	b := &Kernels{Out: &out, Warn: func(text string) { warned += text }, Device: cpu.New(1), Time: time.Microsecond}
	if err := b.Run([]*kernels.Kernel{twice}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"\ntwice                  small                  7 ",
		"\ntwice                  large                  99 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row begins with %q:\n%s", want, out.String())
		}
	}
	right = 3
	if err := b.Run([]*kernels.Kernel{twice}); err == nil || !strings.Contains(warned, "twice one: vector 0 element 0 of 1 is 6, want 9") {
		t.Errorf("error %v, said %q: its case must fail", err, warned)
	}
}

func TestBenchValues(t *testing.T) {
	for _, n := range []int{0, 1, 8191, 30_001} {
		for i, v := range benchValues(n, 3, false) {
			if v < -1 || v >= 1 || v == 0 {
				t.Fatalf("value %d of %d is %g", i, n, v)
			}
		}
		for i, v := range benchValues(n, 3, true) {
			if v < 0 || v >= 1 {
				t.Fatalf("positive value %d of %d is %g", i, n, v)
			}
		}
	}
}

// Values that are not finite would be timed at another speed.
func TestValuesStayFinite(t *testing.T) {
	b := &Kernels{Device: cpu.New(1)}
	for _, k := range kernels.Table {
		args, err := b.args(k, k.Bench.Layers[0])
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := b.Device.Launch(k, args); err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
		}
		for v := range args.V {
			for i, x := range args.V[v].Host {
				if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
					t.Fatalf("%s: vector %d element %d is %g after three launches", k.Name, v, i, x)
				}
			}
		}
	}
}
