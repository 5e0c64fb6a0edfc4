package optim

import "math"

// layerwise is a rule that scales the gradient of a whole layer, so a shard must be a layer. The store computes the norms before
// the step and scales the gradient. Step does the rest, element by element.
type layerwise interface {
	// localRate is the rate of the layer, from the 2-norms of its mean gradient, of its parameters, and of the weight decay that
	// is added to the gradient.
	localRate(grad, params, decay float64) float64
}

// lars is momentum with a rate for each layer: LARS (You, Gitman and Ginsburg, arXiv 1708.03888, 2017, Algorithm 1).
type lars struct {
	momentum
	trust float64
}

// localRateMax keeps the scale of a vanished gradient finite as a float32, so that 0 times the scale is 0.
const localRateMax = 1e30

// localRate takes 1 for the ratio of the norms if all parameters are 0. Otherwise they would stay 0.
func (r lars) localRate(grad, params, decay float64) float64 {
	if params == 0 {
		return r.trust
	}
	return min(r.trust*params/(grad+decay), localRateMax)
}

// squares are sums of squares: of the pending sums, of the parameters, and of the parameters times their weight decay.
type squares struct{ grad, params, decay float64 }

// squaresBlock is the number of elements whose squares are added up at once. The sums of the blocks are added in order, so the
// bits do not depend on how the blocks were divided among pieces.
const squaresBlock = 1 << 16

func (s *Store) makeLayerwise() {
	if l, ok := s.update.Rule.(layerwise); ok && s.way == Optimize {
		s.layer, s.squares = l, make([]squares, (s.n+squaresBlock-1)/squaresBlock)
	}
}

// localRate is the rate of the layer in a commit of weight * pending. It first sums up pending. For other rules it is 1.
func (s *Store) localRate(src []float32, weight float64) float64 {
	if s.layer == nil {
		return 1
	}
	s.Sums(0)
	s.run(work{src: src, norms: true})
	var sum squares
	for _, b := range s.squares {
		sum.grad += b.grad
		sum.params += b.params
		sum.decay += b.decay
	}
	return s.layer.localRate(math.Abs(weight)*math.Sqrt(sum.grad), math.Sqrt(sum.params), math.Sqrt(sum.decay))
}

// squarePiece sums the squares in the blocks of piece i.
func (s *Store) squarePiece(i int) {
	blocks, pieces := len(s.squares), s.work.pieces
	for b := blocks * i / pieces; b < blocks*(i+1)/pieces; b++ {
		s.squares[b] = s.squaresOf(b*squaresBlock, min((b+1)*squaresBlock, s.n))
	}
}

func (s *Store) squaresOf(lo, hi int) (sum squares) {
	for _, q := range s.runs {
		from, to := max(lo, q.Lo), min(hi, q.Hi)
		if from >= to {
			continue
		}
		var l lanes
		normsPass(s.sums[0][from:to], s.work.src[from:to], &l)
		params := total(&l.params)
		sum.grad += total(&l.push)
		sum.params += params
		sum.decay += float64(float64(q.Decay) * float64(q.Decay) * params)
	}
	return sum
}
