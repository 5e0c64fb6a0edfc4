package optim

// shrink is the proximal step of a penalty on the sum of magnitudes: each element goes towards 0 by limit, and stays
// there if that takes it past 0 (soft thresholding). After a gradient step with rate r, and with r times the penalty for
// limit, it is FOBOS (Duchi and Singer, JMLR 2009, section 3) and leaves elements that are exactly 0.
func shrink(x []float32, limit float32) {
	for i, v := range x {
		switch {
		case v > limit:
			x[i] = v - limit
		case v < -limit:
			x[i] = v + limit
		case v == v: // NaN stays: a run that has diverged must look so
			x[i] = 0
		}
	}
}
