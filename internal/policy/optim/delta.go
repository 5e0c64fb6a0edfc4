package optim

// AddDelta adds weight * delta to parameters. The bits are those of a commit of that delta alone.
func AddDelta(params, delta []float32, weight float64) {
	sumPass(params, params, delta, float32(weight), false)
}

// AddValue moves parameters towards weight * values by the share scale. The bits are those of a commit of these values alone under
// Average.
func AddValue(params, values []float32, scale, weight float64) {
	keep, of := shares(scale, weight)
	blend(params, params, values, keep, of)
}

// shares are the weights of the parameters and of the sums in an average.
func shares(scale, weight float64) (keep, of float32) {
	scale = min(scale, 1)
	return float32(1 - scale), float32(scale * weight)
}

// deltaBlock is the number of elements of the local step in scratch at once. They stay in the first-level cache.
const deltaBlock = 2048

// Delta makes the deltas that a worker pushes under push: delta. It holds the state of the worker's own optimizer.
type Delta struct {
	update  Update
	state   [][]float32
	part    [][]float32
	scratch []float32
	steps   int64 // local steps so far, part of the state; iterations may be skipped, so they may be more
	iter    int64 // the iteration of the last step; -1: none
	fault   *Fault
}

// Fault is the first value of a delta that was not finite; nil: all were.
func (d *Delta) Fault() *Fault {
	if d == nil {
		return nil
	}
	return d.fault
}

// NewDelta makes the local optimizer of one worker with an arena of n elements. The rule must not be lars, because steps are
// taken along pieces of layers.
func NewDelta(n int, u Update) *Delta {
	if _, ok := u.Rule.(layerwise); ok {
		panic("optim: a delta is made of pieces, but the rule needs the norms of layers")
	}
	k := u.Rule.State()
	return &Delta{update: u, state: vectors(k, n), part: make([][]float32, k), scratch: make([]float32, deltaBlock), iter: -1}
}

// State is the vectors of the rule, each as long as the arena, and the number of steps, as with a Store.
func (d *Delta) State() (vectors [][]float32, steps int64) { return d.state, d.steps }

// Resume sets the number of earlier steps. It is called before the first step. The vectors of State are written in place.
func (d *Delta) Resume(steps int64) { d.steps = steps }

// Step takes one local step in a run of the arena. Each iteration calls it once for each run. grads, a sum over samples, becomes
// samples * (local parameters after the step - params), so that a commit, which divides by samples, weighs deltas by their
// samples. params stay unchanged. iter is the worker's iteration, the clock of its learning rate.
func (d *Delta) Step(grads, params []float32, q Run, iter, samples int64) {
	if iter != d.iter {
		d.iter = iter
		d.steps++
	}
	a := Args{Step: d.steps, LR: d.update.rateOf(&q, float64(iter)), GradScale: 1 / float32(samples), Decay: q.Decay}
	if q.Rows > 0 {
		d.update.direct(&q, grads[q.Lo:q.Hi], d.state[0][q.Lo:q.Hi], d.state[1][q.Lo:q.Hi], a.GradScale)
	}
	for lo := q.Lo; lo < q.Hi; lo += deltaBlock {
		hi := min(lo+deltaBlock, q.Hi)
		for i := range d.state {
			d.part[i] = d.state[i][lo:hi]
		}
		next, p, g := d.scratch[:hi-lo], params[lo:hi], grads[lo:hi]
		top := d.update.step(&q, next, p, g, d.part, a)
		if top >= Infinite && d.fault == nil {
			d.fault = faultOfStep(next, g, d.part, a, lo)
			if d.fault != nil {
				d.fault.Param, d.fault.Top = p[d.fault.At-lo], TopFinite(p)
			}
		}
		sumPass(next, next, p, -1, false)
		scalePass(g, next, float32(samples))
	}
}
