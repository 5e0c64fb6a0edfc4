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
		rows := c.draw(r)
		if rows == nil {
			continue
		}
		if w := largestWeight(rows, c.s, sets, c.weightMax); w < c.weightMax || c.rows == nil {
			c.rows, c.weightMax = rows, w
		}
	}
	if c.rows == nil {
		return
	}
	c.b = mat.NewDense(c.n, c.n, nil)
	for i, of := range c.partitions {
		for k, j := range of {
			c.b.Set(i, int(j), c.rows[i][k])
		}
	}
}

// draw makes the rows of B from a random H with H 1 = 0: row i has 1 at partition i, and what makes H times it 0. It
// returns nil if H is singular.
func (c *Code) draw(r *rand.Rand) (rows [][]float64) {
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
	part := mat.NewDense(s, s, nil)
	for _, of := range c.partitions {
		for k, j := range of[1:] {
			part.SetCol(k, mat.Col(nil, int(j), h))
		}
		var x mat.VecDense
		if x.SolveVec(part, mat.NewVecDense(s, mat.Col(nil, int(of[0]), h))) != nil {
			return nil
		}
		row := []float64{1}
		for k := range s {
			row = append(row, -x.AtVec(k))
		}
		rows = append(rows, row)
	}
	return rows
}

// largestWeight is the largest absolute weight over the sets, or one above limit. rows are those of B, by position in partitions.
//
// Weights of a set are found from any that decode: a = a0 + N z, where a0 B = 1, and the columns of N span the vectors with y B = 0. z is
// chosen such that the dead have weight 0. So a set costs the solution of s equations. a0 and N come from the first n
// - s rows of B: what decodes or vanishes at the first n - s partitions does so at all, because all rows are in the
// null space of H. These rows form a triangle with s + 1 diagonals, so that a code costs O(n s^2), and not the O(n^3)
// of singular values.
func largestWeight(rows [][]float64, s int, sets [][]int, limit float64) float64 {
	n := len(rows)
	a0 := byRows(rows, s, slices.Repeat([]float64{1}, n-s))
	if most := largest(a0); !(most <= limit) { // they are the weights if the last s are dead
		return most
	}
	null := nullVectors(rows, s)
	if null == nil {
		return math.Inf(1)
	}
	for _, y := range null { // smaller weights lose fewer digits
		addTo(a0, y, -dot(a0, y))
	}
	most := 0.0
	part, rhs := mat.NewDense(s, s, nil), mat.NewVecDense(s, nil)
	var z mat.VecDense
	a := make([]float64, n)
	for _, dead := range sets {
		for k, i := range dead {
			for c, y := range null {
				part.Set(k, c, y[i])
			}
			rhs.SetVec(k, -a0[i])
		}
		if z.SolveVec(part, rhs) != nil {
			return math.Inf(1)
		}
		copy(a, a0)
		for c, y := range null {
			addTo(a, y, z.AtVec(c))
		}
		if most = max(most, largest(a)); !(most <= limit) {
			return most
		}
	}
	return most
}

// byRows returns x with x B = v at the first n - s partitions, and 0 for the last s rows.
func byRows(rows [][]float64, s int, v []float64) []float64 {
	x := make([]float64, len(rows))
	for j, sum := range v {
		for k := 1; k <= min(s, j); k++ {
			sum -= x[j-k] * rows[j-k][k]
		}
		x[j] = sum / rows[j][0]
	}
	return x
}

// nullVectors are orthonormal vectors with y B = 0, as many as there are stragglers: each of the last rows is a sum
// of the others. nil: they are not finite.
func nullVectors(rows [][]float64, s int) (null [][]float64) {
	n := len(rows)
	for r := n - s; r < n; r++ {
		v := make([]float64, n-s)
		for k, x := range rows[r] {
			if j := (r + k) % n; j < n-s {
				v[j] = x
			}
		}
		y := byRows(rows, s, v)
		y[r] = -1
		for range 2 { // the second time removes what rounding has left
			for _, other := range null {
				addTo(y, other, -dot(y, other))
			}
			norm := math.Sqrt(dot(y, y))
			if !(norm > 0) || math.IsInf(norm, 1) {
				return nil
			}
			for i := range y {
				y[i] /= norm
			}
		}
		null = append(null, y)
	}
	return null
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func addTo(x, y []float64, factor float64) {
	for i := range x {
		x[i] += factor * y[i]
	}
}

// largest is the largest absolute value, NaN if one is NaN.
func largest(x []float64) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(v))
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
