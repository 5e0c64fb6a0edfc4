package optim

import (
	"fmt"
	"math"
	"testing"
)

// A store names where the first value that is not finite arose: in a push, in the sum of finite pushes, in the step along a finite sum,
// or before. So it does for every rule and way, for one piece and several, for a commit into other memory and in place, also when a
// flush has come between, and when the version is written around the caches.
func TestAStoreNamesWhereAValueIsNotFinite(t *testing.T) {
	inf, most := float32(math.Inf(1)), float32(math.MaxFloat32)
	for _, c := range []struct {
		name  string
		way   Way
		lr    float64
		decay float32
		plant func(pushes [][]float32, src []float32, at int)
		want  Stage
		push  int
	}{
		{"push NaN", Optimize, 0.1, 0, func(p [][]float32, _ []float32, at int) { p[1][at] = float32(math.NaN()) }, InPush, 1},
		{"push -Inf", Optimize, 0.1, 0, func(p [][]float32, _ []float32, at int) { p[2][at] = -inf }, InPush, 2},
		{"sum", Optimize, 0.1, 0, func(p [][]float32, _ []float32, at int) { p[0][at], p[1][at] = most, most }, InSum, 0},
		{"lr", Optimize, 1e38, 0, func(p [][]float32, _ []float32, at int) { p[0][at] = 1e9 }, InStep, 0},
		{"decay", Optimize, 0.1, 1e30, func(_ [][]float32, w []float32, at int) { w[at] = 1e20 }, InStep, 0},
		{"params", Optimize, 0.1, 0, func(_ [][]float32, w []float32, at int) { w[at] = inf }, InParams, 0},
		{"added", Add, 0.1, 0, func(p [][]float32, w []float32, at int) { p[0][at], w[at] = most, most }, InStep, 0},
		{"averaged push", Average, 0.1, 0, func(p [][]float32, _ []float32, at int) { p[1][at] = inf }, InPush, 1},
		{"averaged sum", Average, 0.1, 0, func(p [][]float32, _ []float32, at int) { p[0][at], p[2][at] = most, most }, InSum, 0},
	} {
		for _, rule := range []string{"sgd", "momentum", "nesterov", "adam"} {
			if rule == "adam" && c.want == InStep && c.way == Optimize {
				continue // its steps are bounded by the rate
			}
			for _, n := range []int{100, 3*blockElements + 5, 2*pieceMin + 1, streamMin + 3} {
				if n > 2*pieceMin && (rule != "sgd" || testing.Short()) {
					continue
				}
				for _, flush := range []bool{false, true} {
					name := fmt.Sprintf("%s/%s/%d/flush=%t", c.name, rule, n, flush)
					s := NewStore(n, []Run{{Lo: 0, Hi: n, Decay: c.decay}},
						Update{Rule: mustNew(t, spec(rule)), LR: c.lr, Sched: ScheduleDefaults()}, c.way)
					s.Spread(2, nil)
					pushes := [][]float32{make([]float32, n), make([]float32, n), make([]float32, n)}
					src, dst := make([]float32, n), make([]float32, n)
					commit := func() {
						for _, p := range pushes {
							if s.Fold(0, p, 1, 1); flush {
								s.Flush()
							}
						}
						s.Commit(dst, src, 1, 1, 1)
					}
					if commit(); s.Fault() != nil {
						t.Fatalf("%s: a healthy commit has the fault %+v", name, *s.Fault())
					}
					at := n - 2
					c.plant(pushes, src, at)
					commit()
					f := s.Fault()
					if f == nil || f.Stage != c.want || f.At != at || f.Push != c.push || magnitude(f.Value) < Infinite {
						t.Fatalf("%s: fault %+v; want stage %d, element %d, push %d", name, f, c.want, at, c.push)
					}
				}
			}
		}
	}
}
