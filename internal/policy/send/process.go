package send

import "math"

// The prior of the Gaussian process, over places 0 to 1 and costs scaled to mean 0 and deviation 1 [R]. Costs change
// over about a quarter of the range, and a measured cost is off by about a tenth of the costs' spread.
const (
	lengthScale = 0.25
	noise       = 0.01 // variance
	grid        = 100  // places that are considered for the next point
)

// bestPlace is the place with the greatest expected improvement on the smallest cost so far.
func bestPlace(tried []point) float64 {
	y, best := scaled(tried)
	l := cholesky(tried)
	alpha := backward(l, forward(l, y))
	at, most := 0.0, math.Inf(-1)
	for i := range grid + 1 {
		x := float64(i) / grid
		k := make([]float64, len(tried))
		for j := range tried {
			k[j] = kernel(x, tried[j].at)
		}
		v := forward(l, k)
		mean, spread := dot(k, alpha), math.Sqrt(max(1e-12, 1-dot(v, v)))
		z := (best - mean) / spread
		gain := float64((best-mean)*0.5*math.Erfc(-z/math.Sqrt2)) + float64(spread*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
		if gain > most {
			at, most = x, gain
		}
	}
	return at
}

// scaled returns the costs scaled to mean 0 and deviation 1, and the smallest of them.
func scaled(tried []point) (y []float64, best float64) {
	n := float64(len(tried))
	var sum, squares float64
	for _, p := range tried {
		sum += p.cost
	}
	for _, p := range tried {
		squares += float64((p.cost - sum/n) * (p.cost - sum/n))
	}
	deviation := math.Sqrt(squares / n)
	if deviation == 0 {
		deviation = 1
	}
	best = math.Inf(1)
	for _, p := range tried {
		y = append(y, (p.cost-sum/n)/deviation)
		best = min(best, y[len(y)-1])
	}
	return y, best
}

func kernel(a, b float64) float64 {
	return math.Exp(-(a - b) * (a - b) / (2 * lengthScale * lengthScale))
}

// dot rounds each product, so that machines that fuse multiplication and addition compute the same bits.
func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// cholesky is the lower triangle L of the points' covariance L*L', row by row; the noise keeps it positive definite.
func cholesky(tried []point) [][]float64 {
	l := make([][]float64, len(tried))
	for i := range l {
		l[i] = make([]float64, i+1)
		for j := range i + 1 {
			k := kernel(tried[i].at, tried[j].at) - dot(l[i][:j], l[j][:j])
			if i == j {
				l[i][i] = math.Sqrt(k + noise)
			} else {
				l[i][j] = k / l[j][j]
			}
		}
	}
	return l
}

// forward solves L*x = y.
func forward(l [][]float64, y []float64) []float64 {
	x := make([]float64, len(y))
	for i := range x {
		x[i] = (y[i] - dot(l[i][:i], x[:i])) / l[i][i]
	}
	return x
}

// backward solves L'*x = y.
func backward(l [][]float64, y []float64) []float64 {
	x := make([]float64, len(y))
	for i := len(x) - 1; i >= 0; i-- {
		sum := y[i]
		for j := i + 1; j < len(x); j++ {
			sum -= float64(l[j][i] * x[j])
		}
		x[i] = sum / l[i][i]
	}
	return x
}
