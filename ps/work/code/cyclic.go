package code

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// setsMax is the number of survivor sets up to which all are tested. Of more sets, so many random ones are tested, and all
// in which the missing workers are neighbours: these share most partitions.
const setsMax = 1000

// drawBest draws cyclic codes and keeps the one whose largest weight is the smallest.
func (c *Code) drawBest(s Spec) {
	if c.s == 0 {
		c.b = mat.NewDense(c.n, c.n, nil)
		for i := range c.n {
			c.b.Set(i, i, 1)
			c.rows = append(c.rows, []float64{1})
		}
		return
	}
	r := rand.New(rand.NewPCG(s.Seed, uint64(c.n)<<32|uint64(c.s)))
	sets := deadSets(c.n, c.s, r)
	c.setsTested, c.weightMax = len(sets), math.Inf(1)
	for range s.Draws {
		b := c.draw(r)
		if b == nil {
			continue
		}
		if w := largestWeight(b, c.s, sets, c.weightMax); w < c.weightMax || c.b == nil {
			c.b, c.weightMax = b, w
		}
	}
	if c.b == nil {
		return
	}
	for i, of := range c.partitions {
		var row []float64
		for _, j := range of {
			row = append(row, c.b.At(i, int(j)))
		}
		c.rows = append(c.rows, row)
	}
}

// draw makes B from a random H with H 1 = 0: row i has 1 at partition i, and what makes H times it 0. It returns nil if H is singular.
func (c *Code) draw(r *rand.Rand) *mat.Dense {
	n, s := c.n, c.s
	h := mat.NewDense(s, n, nil)
	for i := range s {
		sum := 0.0
		for j := range n - 1 {
			x := r.NormFloat64()
			h.Set(i, j, x)
			sum += x
		}
		h.Set(i, n-1, -sum)
	}
	b := mat.NewDense(n, n, nil)
	part := mat.NewDense(s, s, nil)
	for i, of := range c.partitions {
		for k, j := range of[1:] {
			part.SetCol(k, mat.Col(nil, int(j), h))
		}
		var x mat.VecDense
		if x.SolveVec(part, mat.NewVecDense(s, mat.Col(nil, int(of[0]), h))) != nil {
			return nil
		}
		b.Set(i, i, 1)
		for k, j := range of[1:] {
			b.Set(i, int(j), -x.AtVec(k))
		}
	}
	return b
}

// largestWeight is the largest absolute weight over the sets, or one above limit.
//
// Weights of a set are found from those of all workers: a = a0 + N z, where a0 B = 1, and the columns of N span the vectors with y B = 0. z is
// chosen such that the dead have weight 0. So a set costs the solution of s equations.
func largestWeight(b *mat.Dense, s int, sets [][]int, limit float64) float64 {
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

// deadSets lists the sets of s of n workers that are tested.
func deadSets(n, s int, r *rand.Rand) (sets [][]int) {
	if chooses(n, s) <= setsMax {
		return subsets(n, s)
	}
	for i := range n {
		var dead []int
		for j := range s {
			dead = append(dead, (i+j)%n)
		}
		sets = append(sets, dead)
	}
	for range setsMax {
		sets = append(sets, r.Perm(n)[:s])
	}
	return sets
}

// chooses is the number of sets of s of n, or some number above setsMax.
func chooses(n, s int) int {
	c := 1
	for k := range min(s, n-s) {
		if c = c * (n - k) / (k + 1); c > setsMax {
			break
		}
	}
	return c
}

// subsets lists all sets of s of n.
func subsets(n, s int) (sets [][]int) {
	set := make([]int, s)
	for i := range set {
		set[i] = i
	}
	for {
		sets = append(sets, slices.Clone(set))
		k := s - 1
		for k >= 0 && set[k] == n-s+k {
			k--
		}
		if k < 0 {
			return sets
		}
		set[k]++
		for i := k + 1; i < s; i++ {
			set[i] = set[i-1] + 1
		}
	}
}
