package optim

import "math"

// Unfit finds the first number that training could not go on from, among a shard's parameters and the vectors of a rule's
// state behind them, or among the vectors of a state alone where params is false. Numbers must be finite. The second moments of
// adam must not be negative, and may be infinite: such an element moves no more, and harms nothing.
func Unfit(r Rule, vectors [][]float32, params bool) (vector, at int, found bool) {
	_, moments := r.(adam)
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
