package optim

// Inner takes the steps of a worker on parameters of its own, and makes what it pushes of several steps. It holds the state of the
// worker's optimizer.
type Inner struct {
	update Update
	state  [][]float32
	part   [][]float32
	steps  int64 // so far, part of the state: adam's bias correction depends on it
	fault  *Fault
}

// Fault is the first value of the worker's own parameters that was not finite after a step; nil: all were.
func (d *Inner) Fault() *Fault { return d.fault }

// NewInner makes the optimizer of one worker with an arena of n elements. The rule must not be lars, because steps are taken along
// pieces of layers.
func NewInner(n int, u Update) *Inner {
	if _, ok := u.Rule.(layerwise); ok {
		panic("optim: a worker's own steps are made of pieces, but the rule needs the norms of layers")
	}
	k := u.Rule.State()
	return &Inner{update: u, state: vectors(k, n), part: make([][]float32, k)}
}

// State is the vectors of the rule, each as long as the arena, and the number of steps, as with a Store.
func (d *Inner) State() (vectors [][]float32, steps int64) { return d.state, d.steps }

// Resume sets the number of earlier steps. The vectors of State are written in place.
func (d *Inner) Resume(steps int64) { d.steps = steps }

// Begin begins a step; Step follows for each run of the arena.
func (d *Inner) Begin() { d.steps++ }

// Rate is the learning rate of a step, counted from 0.
func (u *Update) Rate(step float64) float64 { return u.LR * u.Sched.Scale(step) }

// Step moves the parameters of a run along grads, a sum over samples. step is the worker's own count of steps, from 0: the clock of its
// learning rate.
func (d *Inner) Step(params, grads []float32, q Run, step, samples int64) {
	d.step(params, grads, q, step, samples, func(i, lo, hi int) []float32 { return d.state[i][lo:hi] })
}

// StepBeside is Step with a state that lies beside the parameters: vector i of the state of the run begins at element at[i] of params. The
// state that the Inner was made with is not used.
func (d *Inner) StepBeside(params, grads []float32, q Run, at []int, step, samples int64) {
	d.step(params, grads, q, step, samples, func(i, lo, hi int) []float32 { return params[at[i]+lo-q.Lo : at[i]+hi-q.Lo] })
}

func (d *Inner) step(params, grads []float32, q Run, step, samples int64, state func(i, lo, hi int) []float32) {
	a := d.args(q, step, samples)
	if q.Rows > 0 {
		d.update.direct(&q, grads[q.Lo:q.Hi], state(0, q.Lo, q.Hi), state(1, q.Lo, q.Hi), a.GradScale)
	}
	for lo := q.Lo; lo < q.Hi; lo += deltaBlock {
		hi := min(lo+deltaBlock, q.Hi)
		for i := range d.part {
			d.part[i] = state(i, lo, hi)
		}
		p := params[lo:hi]
		top := d.update.step(&q, p, p, grads[lo:hi], d.part, a)
		if q.L1 != 0 {
			shrink(p, a.LR*q.L1)
			top = topPass(p)
		}
		if top >= Infinite && d.fault == nil {
			d.fault = faultOfStep(p, grads[lo:hi], d.part, a, lo)
		}
	}
}

func (d *Inner) args(q Run, step, samples int64) Args {
	return Args{Step: d.steps, LR: d.update.rateOf(&q, float64(step)), GradScale: 1 / float32(samples), Decay: q.Decay}
}

// Terms are the numbers of a step, for a device that computes it on vectors of its own (kernels/sgd, kernels/adam).
type Terms struct {
	Rule                 string // sgd, momentum, nesterov, adam or adamw; "": only Step of Inner computes the rule
	LR, GradScale, Decay float32
	Momentum             float32    // of momentum and nesterov
	Adam                 [5]float32 // beta1, 1-beta1, beta2, 1-beta2, epsilon: the same in every step
	Rate, Root           float32    // of adam: lr / (1-beta1^t), 1 / sqrt(1-beta2^t)
	Lost                 float32    // of adamw, whose Decay is 0: the share of the parameters that goes before the step
}

// Terms are those of the step that Step would take. Before Begin they are of no step, and only Rule, Momentum and Adam hold.
func (d *Inner) Terms(q Run, step, samples int64) Terms {
	a := d.args(q, step, samples)
	t := Terms{LR: a.LR, GradScale: a.GradScale, Decay: a.Decay}
	switch r := d.update.Rule.(type) {
	case sgd:
		t.Rule = "sgd"
	case momentum:
		t.Rule, t.Momentum = "momentum", r.mu
	case nesterov:
		t.Rule, t.Momentum = "nesterov", r.mu
	case adam:
		t.ofAdam("adam", r.scalars(a))
	case adamw:
		t.Lost, t.Decay = r.lost(&a), 0
		t.ofAdam("adamw", r.scalars(a))
	}
	return t
}

func (t *Terms) ofAdam(rule string, c adamScalars) {
	t.Rule, t.Adam, t.Rate, t.Root = rule, [5]float32{c.b1, c.c1, c.b2, c.c2, c.epsilon}, c.rate, c.root
}

// Change writes weight * (after - before) to push, over vectors of equal length: what a worker pushes of its steps.
func (d *Inner) Change(push, after, before []float32, weight float32) {
	for lo := 0; lo < len(push); lo += deltaBlock {
		hi := min(lo+deltaBlock, len(push))
		p := push[lo:hi]
		sumPass(p, after[lo:hi], before[lo:hi], -1, false)
		if weight != 1 {
			scalePass(p, p, weight)
		}
	}
}

// Compensate adds to push, which is weight times a change d of parameters, weight * -strength*d*d*(now - before), element by element. It
// is the correction of DC-ASGD (Zheng et al., ICML 2017) for a change that was computed at the parameters before and is applied to those
// of now: strength is lambda divided by the learning rate.
func Compensate(push, now, before []float32, strength, weight float32) {
	for i, p := range push {
		d := p / weight
		push[i] = p - float32(float32(float32(strength*p)*d)*(now[i]-before[i]))
	}
}

// Mix is params = to + keep*(params - to), over vectors of equal length; keep 0 copies.
func Mix(params, to []float32, keep float32) {
	if keep == 0 {
		copy(params, to)
		return
	}
	for i, x := range params {
		params[i] = to[i] + float32(keep*(x-to[i]))
	}
}

// Scaled is dst = weight*src, over vectors of equal length.
func Scaled(dst, src []float32, weight float32) { scalePass(dst, src, weight) }
