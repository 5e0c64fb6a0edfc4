package optim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// One commit of the pushes of all workers, as under bsp, gives their mean. A commit of each push with the share of its samples, as
// under asp, stays between the parameters and the pushed values.
func TestStatisticsAreAverages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		optimizer := rapid.SampledFrom(Names()).Draw(t, "rule")
		u := Update{Rule: mustNewRapid(t, optimizer), LR: 7, Sched: Schedule{Name: "constant"}}
		whole, single := NewStore(1, []Run{{Hi: 1, Decay: 0.5}}, u, Average), NewStore(1, []Run{{Hi: 1, Decay: 0.5}}, u, Average)
		was := []float32{rapid.Float32Range(0, 9).Draw(t, "was")}
		now, read := []float32{was[0]}, []float32{was[0]}
		low, high := was[0], was[0]
		var sum, all float64
		for w := range workers {
			value := rapid.Float32Range(0, 9).Draw(t, "value")
			samples := float64(rapid.IntRange(1, 64).Draw(t, "samples"))
			push := []float32{float32(samples) * value}
			low, high = min(low, value), max(high, value)
			sum, all = sum+float64(push[0]), all+samples
			whole.Fold(0, push, float64(min(w, 1)), 1)
			whole.Flush()
			single.Fold(0, push, 0, 1)
			single.Commit(now, now, 0, 1/float64(workers), 1/samples)
			AddValue(read, push, 1/float64(workers), 1/samples)
			if read[0] != now[0] {
				t.Fatalf("a worker that adds its own push has %g, the server %g", read[0], now[0])
			}
			if now[0] < low*(1-1e-6) || now[0] > high*(1+1e-6) {
				t.Fatalf("%g is not within %g and %g", now[0], low, high)
			}
		}
		mean := []float32{float32(math.NaN())}
		whole.Commit(mean, was, 0, 1, 1/all)
		if want := sum / all; math.Abs(float64(mean[0])-want) > 1e-6*want {
			t.Fatalf("%g committed, the mean of the workers is %g", mean[0], want)
		}
		if n := len(whole.state); n > 0 {
			t.Fatalf("statistics have %d vectors of the optimizer %s", n, optimizer)
		}
	})
}

func mustNewRapid(t *rapid.T, name string) Rule {
	r, err := New(spec(name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Without the limit on scale, a commit with weight 2 would step past the value, and a variance below 0.
func TestAnAverageStaysBetween(t *testing.T) {
	s := NewStore(1, nil, Update{}, Average)
	dst := []float32{0}
	s.Fold(0, []float32{4}, 0, 1)
	s.Commit(dst, []float32{10}, 0, 2, 0.25)
	if dst[0] != 1 {
		t.Errorf("%g committed, want 1", dst[0])
	}
	s.Fold(0, []float32{4}, 0, 1)
	s.Commit(dst, []float32{10}, 0, 0.25, 0.25)
	if dst[0] != 7.75 {
		t.Errorf("%g committed, want 7.75", dst[0])
	}
}

// The norms of a push of values are those of the change that it would make.
func TestNormsOfStatisticsAreOfTheirChange(t *testing.T) {
	push, params := []float32{40, 8, 12}, []float32{10, 5, -1} // means 10, 2, 3
	norm2, normInf, normW := NewStore(3, nil, Update{}, Average).Norms(push, params, 0.25)
	if norm2 != 5 || normInf != 4 || math.Abs(float64(normW)-math.Sqrt(126)) > 1e-6 {
		t.Errorf("norms %g %g %g, want 5, 4 and %g", norm2, normInf, normW, math.Sqrt(126))
	}
	if _, normInf, _ := NewStore(3, nil, Update{}, Add).Norms(push, params, 0.25); normInf != 10 {
		t.Errorf("the largest element of a delta is %g, want 10", normInf)
	}
	if _, normInf, _ := NewStore(1, nil, Update{}, Average).Norms([]float32{float32(math.NaN())}, []float32{1},
		1); !math.IsNaN(float64(normInf)) {
		t.Errorf("the norm of a NaN is %g", normInf)
	}
}
