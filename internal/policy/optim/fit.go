package optim

import "math"

// Unfit finds the first value from which training could not resume. vectors are the vectors of a rule's state, after a shard's
// parameters if params is set. Values must be finite. The second moments of adam, adamw and muon must not be negative, but may be
// infinite: such an element never moves again, which is harmless.
func Unfit(r Rule, vectors [][]float32, params bool) (vector, at int, found bool) {
	moments := false
	switch r.(type) {
	case adam, adamw, muon:
		moments = true
	}
	second := 1
	if params {
		second = 2
	}
	for k, v := range vectors {
		least, most := float32(-math.MaxFloat32), float32(math.MaxFloat32)
		if moments && k == second {
			least, most = 0, float32(math.Inf(1))
		}
		for i, x := range v {
			if !(x >= least && x <= most) {
				return k, i, true
			}
		}
	}
	return 0, 0, false
}
