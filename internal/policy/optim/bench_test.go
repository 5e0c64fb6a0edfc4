package optim

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The MB/s column counts the bytes of one operand: n elements of 4 bytes, however many are read and written. go stands for the
// plain loops, which a machine without AVX2 runs.

var benchBytes = []int{64 << 10, 1 << 20, 16 << 20}

func size(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%dKiB", bytes>>10)
	}
	return fmt.Sprintf("%dMiB", bytes>>20)
}

// benchVectors gives run five vectors of each size.
func benchVectors(b *testing.B, name string, run func(v [5][]float32)) {
	for _, bytes := range benchBytes {
		b.Run(name+"/"+size(bytes), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 8))
			var v [5][]float32
			for i := range v {
				v[i] = gaussian(rng, bytes/4)
			}
			b.SetBytes(int64(bytes))
			for b.Loop() {
				run(v)
			}
		})
	}
}

func BenchmarkBlend(b *testing.B) {
	for _, c := range []struct {
		name          string
		scale, weight float32
	}{{"copy", 0, 1}, {"scaled", 0, 0.5}, {"add", 1, 1}, {"blend", 0.9, 0.1}} {
		benchVectors(b, c.name, func(v [5][]float32) { blend(v[0], v[0], v[1], c.scale, c.weight) })
	}
	benchVectors(b, "add-go", func(v [5][]float32) { sumGo(v[0], v[0], v[1], 1) })
}

func BenchmarkStep(b *testing.B) {
	for _, name := range Names() {
		r := mustNew(b, spec(name))
		benchVectors(b, name, func(v [5][]float32) {
			r.Step(v[0], v[1], v[2], v[3:3+r.State()], Args{LR: 1e-3, GradScale: 1e-2, Decay: 1e-4, Step: 10})
		})
	}
	benchVectors(b, "sgd-go", func(v [5][]float32) { sgdGo(v[0], v[1], v[2], 1e-3, 1e-2, 1e-4) })
	benchVectors(b, "momentum-go", func(v [5][]float32) { momentumGo(v[0], v[1], v[2], v[3], 1e-3, 1e-2, 1e-4, 0.9) })
	c := mustNew(b, spec("adam")).(adam).scalars(Args{LR: 1e-3, GradScale: 1e-2, Decay: 1e-4, Step: 10})
	benchVectors(b, "adam-go", func(v [5][]float32) { adamGo(v[0], v[1], v[2], v[3], v[4], &c) })
}

// BenchmarkFoldCommit measures the work of a server on one version of one or two pushes. In the case apart each fold and commit is
// done at once, through memory that holds the sums.
func BenchmarkFoldCommit(b *testing.B) {
	for _, name := range []string{"sgd", "momentum"} {
		for pushes := 1; pushes <= 2; pushes++ {
			for _, apart := range []bool{false, true} {
				full := fmt.Sprintf("%s/pushes=%d/apart=%v", name, pushes, apart)
				var s *Store
				benchVectors(b, full, func(v [5][]float32) {
					if s == nil || s.n != len(v[0]) {
						n := len(v[0])
						s = NewStore(n, []Run{{Hi: n}}, Update{Rule: mustNew(b, spec(name)), LR: 1e-3, Sched: Schedule{Name: "constant"}}, Optimize)
					}
					for k := range pushes {
						s.Fold(0, v[2+k], float64(min(k, 1)), 1)
						if apart {
							s.Flush()
						}
					}
					s.Commit(v[0], v[1], 0, 1, 1e-2)
				})
			}
		}
	}
}

func BenchmarkNorms(b *testing.B) {
	benchVectors(b, "norms", func(v [5][]float32) { Norms(v[0], v[1], 1) })
	benchVectors(b, "norms-go", func(v [5][]float32) { normsGo(v[0], v[1], new(lanes)) })
}
