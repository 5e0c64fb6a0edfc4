package optim

import "math"

// Clip bounds the 2-norm of gradients, as torch.nn.utils.clip_grad_norm_ does: that of all trained parameters together. Running statistics
// have no part in it.
type Clip struct {
	Norm float64 `yaml:"norm" min:"0" as:"float32" doc:"the largest 2-norm of a gradient, over all trained parameters together: a longer one is scaled to it, as by torch.nn.utils.clip_grad_norm_; 0: none is. with of: worker, workers then push when backward has ended"`
	Of   string  `yaml:"of" values:"worker,mean" doc:"which gradient: worker: the mean over the batch of each worker, before it is pushed, or before the worker takes a step of its own; mean: that of an iteration of all workers, for whose norm the servers wait for each other"`
}

// The values of Clip.Of.
const (
	ClipWorker = "worker"
	ClipMean   = "mean"
)

// ClipDefaults clips nothing.
func ClipDefaults() Clip { return Clip{Of: ClipWorker} }

// OfWorkers says whether each worker clips its own gradient.
func (c Clip) OfWorkers() bool { return c.Norm > 0 && c.Of == ClipWorker }

// OfMean says whether the mean over all workers is clipped.
func (c Clip) OfMean() bool { return c.Norm > 0 && c.Of == ClipMean }

// clipSlack keeps the scale finite, and is that of clip_grad_norm_.
const clipSlack = 1e-6

// Scale is what a sum over samples is multiplied by, so that its mean has no larger norm than Norm. squares are the sum of the squares of
// its elements. It is 1 if nothing is to be done. A sum that is not finite stays as it is: a scale would spread what is wrong with one
// element over all, and hide which one it was.
func (c Clip) Scale(squares float64, samples int64) float32 {
	norm := math.Sqrt(squares) / float64(max(1, samples))
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 1
	}
	return float32(min(1, c.Norm/(norm+clipSlack)))
}

// Squares is the sum of the squares of weight * pending. Afterwards no push is borrowed.
func (s *Store) Squares(weight float64) float64 { return float64(weight*weight) * Squares(s.Sums(0)) }

// Squares is the sum of the squares of v, in float64. Equal vectors give equal bits on all machines.
func Squares(v []float32) float64 {
	var l lanes
	normsPass(v, v, &l)
	return total(&l.push)
}
