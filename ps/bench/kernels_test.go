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
)

// spoiling is a device that gets one kernel wrong.
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
	b := &Kernels{Out: &out, Warn: func(text string) { warned += text }, Device: spoiling{cpu.New(1), kernels.Axpy}, Time: time.Microsecond, JSON: true}
	err := b.Run([]*kernels.Kernel{kernels.Fill, kernels.Axpy, kernels.Scale})
	var wrong *WrongError
	if !errors.As(err, &wrong) || !slices.Equal(wrong.Kernels, []string{"axpy"}) {
		t.Errorf("error %v, want one that names axpy", err)
	}
	if !strings.Contains(warned, "axpy n=1 a=0: vector 1 element 0 of 1 is") {
		t.Errorf("the case that fails is not told: %s", warned)
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
	if len(rows) != 2 || rows["fill"] != len(models) || rows["scale"] != len(models) {
		t.Errorf("rows of %v, want %d of fill and of scale", rows, len(models))
	}
}

// A kernel that is added to the table gets sizes of its own, unless it has but one.
func TestEveryKernelHasSizes(t *testing.T) {
	for _, k := range kernels.Table {
		for _, l := range launchesOf(k) {
			need := k.Need(l.sizes())
			vectors := 0
			for v := range need {
				if need[v] > 0 {
					vectors = v + 1
				}
			}
			for v, n := range need[:vectors] {
				if n == 0 {
					t.Errorf("%s at %s: sizes %v leave vector %d without elements", k.Name, l.layer, l.n, v)
				}
			}
			if _, bytes := k.Cost(l.sizes()); vectors == 0 || !(bytes > 0) {
				t.Errorf("%s at %s: sizes %v are no work", k.Name, l.layer, l.n)
			}
		}
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
	bits := []*kernels.Kernel{ // words that are no numbers; and what three launches in Go would take too long for
		kernels.ToFloat16, kernels.FromFloat16, kernels.ToBFloat16, kernels.FromBFloat16, kernels.TopK,
		kernels.ConvForward, kernels.ConvBackwardData, kernels.ConvBackwardFilter,
	}
	for _, k := range kernels.Table {
		if slices.Contains(bits, k) {
			continue
		}
		args, err := b.args(k, launchesOf(k)[0])
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
