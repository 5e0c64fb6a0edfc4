package code

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// largestBySingularValues finds the same from the singular values of B, whatever its rows look like.
func largestBySingularValues(b *mat.Dense, s int, sets [][]int, limit float64) float64 {
	n, _ := b.Dims()
	var svd mat.SVD
	if !svd.Factorize(b, mat.SVDFull) {
		return math.Inf(1)
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	values := svd.Values(nil)
	a0 := make([]float64, n)
	for k := range n - s {
		sum := 0.0
		for j := range n {
			sum += v.At(j, k)
		}
		for i := range n {
			a0[i] += u.At(i, k) * sum / values[k]
		}
	}
	null := u.Slice(0, n, n-s, n).(*mat.Dense)
	most := 0.0
	part, rhs := mat.NewDense(s, s, nil), mat.NewVecDense(s, nil)
	var z, a mat.VecDense
	for _, dead := range sets {
		for k, i := range dead {
			part.SetRow(k, null.RawRowView(i))
			rhs.SetVec(k, -a0[i])
		}
		if z.SolveVec(part, rhs) != nil {
			return math.Inf(1)
		}
		a.MulVec(null, &z)
		for i := range n {
			most = max(most, math.Abs(a0[i]+a.AtVec(i)))
		}
		if most > limit {
			return most
		}
	}
	return most
}

// Both ways to the largest weight agree, for few and for many workers, and the best code is the same.
func TestLargestWeightsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.IntRange(1, 4).Draw(t, "s")
		n := rapid.IntRange(s+1, 60).Draw(t, "n")
		c := &Code{n: n, s: s, kind: Cyclic}
		for i := range n {
			c.partitions = append(c.partitions, Partitions(Spec{Kind: Cyclic, Workers: n, Stragglers: s}, i))
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		sets := deadSets(n, s, r)
		for range 3 {
			rows := c.draw(r)
			b := mat.NewDense(n, n, nil)
			for i, of := range c.partitions {
				for k, j := range of {
					b.Set(i, int(j), rows[i][k])
				}
			}
			got, want := largestWeight(rows, s, sets, math.Inf(1)), largestBySingularValues(b, s, sets, math.Inf(1))
			if want < 1e7 && math.Abs(got-want) > 1e-4*want || want >= 1e7 && got < 1e6 {
				t.Fatalf("n = %d, s = %d: the largest weight is %g, by singular values %g", n, s, got, want)
			}
			if got < 1e7 {
				for _, limit := range []float64{got / 3, got * 3} {
					if w := largestWeight(rows, s, sets, limit); (w > limit) != (got > limit) {
						t.Fatalf("n = %d, s = %d: %g with limit %g, %g without", n, s, w, limit, got)
					}
				}
			}
		}
	})
}
