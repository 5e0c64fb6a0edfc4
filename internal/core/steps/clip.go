package steps

import (
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
)

// Clip clips the gradients of one worker (train.clip of: worker). The squares of each tensor are added up in model order, so the bits of
// a scale do not depend on how the arena is cut.
type Clip struct {
	spec    optim.Clip
	trained []span // by trained tensor, in model order
	clipped int64  // gradients that were too long, among of
	of      int64
}

// NewClip returns nil if workers do not clip their gradients.
func NewClip(spec optim.Clip, p *shard.Plan) *Clip {
	if !spec.OfWorkers() {
		return nil
	}
	return newClip(spec, p)
}

// NewMeanClip is for who has the sums of all workers. It returns nil if their mean is not clipped.
func NewMeanClip(spec optim.Clip, p *shard.Plan) *Clip {
	if !spec.OfMean() {
		return nil
	}
	return newClip(spec, p)
}

func newClip(spec optim.Clip, p *shard.Plan) *Clip {
	c := &Clip{spec: spec}
	for k := range p.Params {
		if q := &p.Params[k]; !q.Stat {
			c.trained = append(c.trained, span{p.At[k], p.At[k] + q.N})
		}
	}
	return c
}

// Sums clips gradients in an arena, which are sums over so many samples. A nil Clip leaves them as they are.
func (c *Clip) Sums(grads []float32, samples int64) {
	if c == nil {
		return
	}
	c.clip(samples, func(lo, hi int) float64 { return optim.Squares(grads[lo:hi]) },
		func(lo, hi int, by float32) { optim.Scaled(grads[lo:hi], grads[lo:hi], by) })
}

// Counts are how many gradients were clipped, and of how many.
func (c *Clip) Counts() (clipped, of int64) {
	if c == nil {
		return 0, 0
	}
	return c.clipped, c.of
}

// vectors does the same with the gradients of a worker's own step.
func (c *Clip) vectors(v Vectors, samples int64) {
	c.clip(samples, func(lo, hi int) float64 { return v.Squares(Grads, lo, hi) },
		func(lo, hi int, by float32) { v.Scale(Grads, Grads, lo, hi, by) })
}

// Mean is what sums over so many samples are to be multiplied by, which it leaves as they are. A nil Clip says 1.
func (c *Clip) Mean(sums []float32, samples int64) float32 {
	if c == nil {
		return 1
	}
	return c.scale(samples, func(lo, hi int) float64 { return optim.Squares(sums[lo:hi]) })
}

// scale takes the norm, and counts.
func (c *Clip) scale(samples int64, squares func(lo, hi int) float64) float32 {
	var sum float64
	for _, s := range c.trained {
		sum += squares(s.lo, s.hi)
	}
	by := c.spec.Scale(sum, samples)
	if c.of++; by < 1 {
		c.clipped++
	}
	return by
}

func (c *Clip) clip(samples int64, squares func(lo, hi int) float64, scale func(lo, hi int, by float32)) {
	by := c.scale(samples, squares)
	if by >= 1 {
		return
	}
	for _, s := range c.trained {
		scale(s.lo, s.hi, by)
	}
}
