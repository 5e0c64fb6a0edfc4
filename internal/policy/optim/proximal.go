package optim

// shrink is the proximal step of a penalty on the sum of magnitudes: each element moves towards 0 by limit, but not past 0 (soft
// thresholding). After a gradient step with rate r, and with r times the penalty as limit, it is FOBOS (Duchi and Singer, JMLR
// 2009, section 3), which makes elements exactly 0.
func shrink(x []float32, limit float32) {
	for i, v := range x {
		switch {
		case v > limit:
			x[i] = v - limit
		case v < -limit:
			x[i] = v + limit
		case v == v: // NaN stays, so that a diverged run can be recognized
			x[i] = 0
		}
	}
}
