package cpu_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/kerneltest"
)

func TestConformance(t *testing.T) {
	for _, threads := range []int{1, 3} {
		dev := cpu.New(threads)
		t.Run(dev.Name(), func(t *testing.T) { kerneltest.Run(t, dev) })
	}
	cpu.New(1)
}

func TestName(t *testing.T) {
	if got := cpu.Backend(); !regexp.MustCompile(`^(Go|oneDNN [23]\.\S+ \S+|OpenBLAS 0\.\S+ \S+), own (none|avx2|avx512)$`).MatchString(got) {
		t.Errorf("Backend() = %q", got)
	}
	if got, want := cpu.New(0).Name(), "cpu ("+cpu.Backend()+", 1 thread)"; got != want {
		t.Errorf("Name() = %q, want %q", got, want)
	}
}

func TestShortArgumentsAreErrors(t *testing.T) {
	dev := cpu.New(1)
	short, full := vec(t, dev, 5), vec(t, dev, 6)
	for _, c := range []struct {
		name string
		k    *kernels.Kernel
		a    kernels.Args
		want string
	}{
		{"A", kernels.GemmNN, kernels.Args{V: kernels.Vecs{short, full, full}, N: kernels.Sizes{2, 2, 3}},
			"vector 0 has 5 elements, sizes [2 2 3 0 0 0 0 0] need 6"},
		{"C", kernels.GemmNT, kernels.Args{V: kernels.Vecs{full, full, short}, N: kernels.Sizes{2, 3, 2}}, "vector 2 has 5"},
		{"bias", kernels.GemmTN, kernels.Args{V: kernels.Vecs{full, full, full, short}, N: kernels.Sizes{1, 6, 1}}, "vector 3 has 5"},
		{"labels", kernels.SoftmaxXent, kernels.Args{V: kernels.Vecs{full, {}, {}, full, full}, N: kernels.Sizes{2, 3}}, "vector 1 has 0"},
		{"negative", kernels.Fill, kernels.Args{V: kernels.Vecs{full}, N: kernels.Sizes{-1}}, "size 0 is -1"},
	} {
		if err := dev.Launch(c.k, c.a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
	if err := dev.Upload(short, make([]float32, 6)); err == nil {
		t.Error("an upload past the end was accepted")
	}
	if err := dev.Download(make([]float32, 6), short); err == nil {
		t.Error("a download past the end was accepted")
	}
	if _, err := dev.Alloc(-1); err == nil {
		t.Error("a negative size was allocated")
	}
}

func TestWrapIsTheSameMemory(t *testing.T) {
	dev := cpu.New(1)
	mine := make([]float32, 3)
	v, err := dev.Wrap(mine)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{3}, F: kernels.Scalars{2.5}}); err != nil {
		t.Fatal(err)
	}
	if mine[2] != 2.5 {
		t.Errorf("wrapped memory holds %v after fill", mine)
	}
}

func TestLossOfNaNIsNaNAndNoHit(t *testing.T) {
	dev := cpu.New(1)
	nan := float32(math.NaN())
	z, labels := kernels.Vec{Host: []float32{nan, nan}}, kernels.Vec{Host: []float32{0, 0}}
	loss, hit := vec(t, dev, 2), kernels.Vec{Host: []float32{7, 7}}
	for _, k := range []*kernels.Kernel{kernels.SoftmaxXent, kernels.SigmoidXent} {
		a := kernels.Args{V: kernels.Vecs{z, labels, {}, loss, hit}, N: kernels.Sizes{1, 2}}
		if err := dev.Launch(k, a); err != nil {
			t.Fatal(err)
		}
		if !math.IsNaN(float64(loss.Host[0])) || hit.Host[0] != 0 {
			t.Errorf("%s: loss %g hit %g, want NaN and 0", k.Name, loss.Host[0], hit.Host[0])
		}
	}
}

func vec(t *testing.T, dev kernels.Device, n int) kernels.Vec {
	t.Helper()
	v, err := dev.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The shapes of an MLP 784-256-128-10 at batch 32: forward, gradient of the weights, of the input.
func BenchmarkGemm(b *testing.B) {
	for _, c := range []struct {
		k *kernels.Kernel
		n kernels.Sizes
	}{
		{kernels.GemmNT, kernels.Sizes{32, 256, 784}},
		{kernels.GemmTN, kernels.Sizes{256, 784, 32}},
		{kernels.GemmNN, kernels.Sizes{32, 256, 128}},
		{kernels.GemmNT, kernels.Sizes{256, 256, 256}},
	} {
		b.Run(c.k.Name+"/"+strings.Join(strings.Fields(sizes(c.n)), "x"), func(b *testing.B) {
			dev := cpu.New(1)
			need := c.k.Need(c.n)
			var a kernels.Args
			a.N = c.n
			for i := range 3 {
				a.V[i] = kernels.Vec{Host: make([]float32, need[i])}
				for j := range a.V[i].Host {
					a.V[i].Host[j] = float32(j%17) - 8
				}
			}
			for b.Loop() {
				if err := dev.Launch(c.k, a); err != nil {
					b.Fatal(err)
				}
			}
			flops, _ := c.k.Cost(c.n)
			b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func sizes(n kernels.Sizes) string { return fmt.Sprintf("%d %d %d", n[0], n[1], n[2]) }
