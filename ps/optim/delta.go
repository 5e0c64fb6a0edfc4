package optim

// AddDelta adds weight * delta to parameters, to the bit as a commit of that delta alone does.
func AddDelta(params, delta []float32, weight float64) {
	sumPass(params, params, delta, float32(weight), false)
}

// AddValue moves parameters to the share scale of weight * values, to the bit as a commit of these alone does with Average.
func AddValue(params, values []float32, scale, weight float64) {
	keep, of := shares(scale, weight)
	blend(params, params, values, keep, of)
}

// shares are the weights of what was and of the sums, in an average.
func shares(scale, weight float64) (keep, of float32) {
	scale = min(scale, 1)
	return float32(1 - scale), float32(scale * weight)
}

// deltaBlock is how many elements of the local step are in scratch at once: they stay in the first-level cache.
const deltaBlock = 2048

// Delta makes what a worker pushes under push: delta. The state of the worker's own optimizer lives here.
type Delta struct {
	update  Update
	state   [][]float32
	part    [][]float32
	scratch []float32
	steps   int64 // local steps so far, state like the vectors; iterations may be skipped, so it is not their number
	iter    int64 // the iteration of the last one; -1: none
}

// NewDelta makes the local optimizer of one worker with an arena of n elements. It steps along pieces of layers, so
// the rule must not be lars.
func NewDelta(n int, u Update) *Delta {
	if _, ok := u.Rule.(layerwise); ok {
		panic("optim: a delta is made of pieces, and the rule needs the norms of layers")
	}
	k := u.Rule.State()
	return &Delta{update: u, state: vectors(k, n), part: make([][]float32, k), scratch: make([]float32, deltaBlock), iter: -1}
}

// State is the vectors of the rule, each as long as the arena, and the number of steps: as of a Store.
func (d *Delta) State() (vectors [][]float32, steps int64) { return d.state, d.steps }

// Resume makes it go on behind so many steps, before its first; the vectors of State are written in place.
func (d *Delta) Resume(steps int64) { d.steps = steps }

// Step takes one local step in a run of the arena, which each iteration does once for each run: grads, a sum over samples, becomes samples * (local parameters
// after the step - params), so that a commit, which divides by samples, weighs deltas by their samples. params stay.
// iter is the worker's iteration, the clock of its learning rate.
func (d *Delta) Step(grads, params []float32, q Run, iter, samples int64) {
	if iter != d.iter {
		d.iter = iter
		d.steps++
	}
	a := Args{Step: d.steps, LR: float32(d.update.LR * d.update.Sched.Scale(float64(iter))), GradScale: 1 / float32(samples), Decay: q.Decay}
	for lo := q.Lo; lo < q.Hi; lo += deltaBlock {
		hi := min(lo+deltaBlock, q.Hi)
		for i := range d.state {
			d.part[i] = d.state[i][lo:hi]
		}
		next, p, g := d.scratch[:hi-lo], params[lo:hi], grads[lo:hi]
		d.update.Rule.Step(next, p, g, d.part, a)
		sumPass(next, next, p, -1, false)
		scalePass(g, next, float32(samples))
	}
}
