package optim

// Run is a stretch [Lo, Hi) of a shard with one weight decay.
type Run struct {
	Lo, Hi int
	Decay  float32
}

// Update says how a commit changes the parameters, and how a worker makes a delta.
type Update struct {
	Rule  Rule
	LR    float64
	Sched Schedule
}

// Store is the arithmetic of one shard on its server: the sums that the scheme names, and how a commit turns them
// into the next version. Versions and staged pushes are the driver's memory.
type Store struct {
	update Update
	add    bool
	n      int
	runs   []Run
	sums   [][]float32 // by number, each of n elements; nil until used
	state  [][]float32
	part   [][]float32 // scratch: state cut to a run
}

// NewStore makes the store of a shard of n elements. runs cover it. With add, a commit adds the sums to the
// parameters and the rule is not used: pushes are deltas then.
func NewStore(n int, runs []Run, u Update, add bool) *Store {
	s := &Store{update: u, add: add, n: n, runs: runs}
	if !add {
		s.state = vectors(u.Rule.State(), n)
		s.part = make([][]float32, len(s.state))
	}
	return s
}

func vectors(k, n int) [][]float32 {
	v := make([][]float32, k)
	for i := range v {
		v[i] = make([]float32, n)
	}
	return v
}

// Sums is accumulator k of the shard: 0 holds the pending sums, others are named by the scheme. An accumulator that was
// not used yet holds zeros.
func (s *Store) Sums(k int) []float32 {
	for k >= len(s.sums) {
		s.sums = append(s.sums, nil)
	}
	if s.sums[k] == nil {
		s.sums[k] = make([]float32, s.n)
	}
	return s.sums[k]
}

// Rate is the learning rate of a commit at that clock, in iterations, before the weight of the push.
func (s *Store) Rate(clock float64) float64 { return s.update.LR * s.update.Sched.Scale(clock) }

// Commit writes the version that follows src to dst: the rule's step along weight * pending at scale times the
// rate of that clock; with add, src + scale * weight * pending.
func (s *Store) Commit(dst, src []float32, clock, scale, weight float64) {
	pending := s.Sums(0)
	if s.add {
		sumPass(dst, src, pending, float32(scale*weight))
		return
	}
	a := Args{LR: float32(s.Rate(clock) * scale), GradScale: float32(weight)}
	for _, q := range s.runs {
		for i := range s.state {
			s.part[i] = s.state[i][q.Lo:q.Hi]
		}
		a.Decay = q.Decay
		s.update.Rule.Step(dst[q.Lo:q.Hi], src[q.Lo:q.Hi], pending[q.Lo:q.Hi], s.part, a)
	}
}

// AddDelta adds weight * delta to parameters, to the bit as a commit of that delta alone does.
func AddDelta(params, delta []float32, weight float64) { sumPass(params, params, delta, float32(weight)) }

// deltaBlock is how many elements of the local step are in scratch at once: they stay in the first-level cache.
const deltaBlock = 2048

// Delta makes what a worker pushes under push: delta. The state of the worker's own optimizer lives here.
type Delta struct {
	update  Update
	state   [][]float32
	part    [][]float32
	scratch []float32
}

// NewDelta makes the local optimizer of one worker with an arena of n elements.
func NewDelta(n int, u Update) *Delta {
	k := u.Rule.State()
	return &Delta{update: u, state: vectors(k, n), part: make([][]float32, k), scratch: make([]float32, deltaBlock)}
}

// Step takes one local step in a run of the arena: grads, a sum over samples, becomes samples * (local parameters
// after the step - params), so that a commit, which divides by samples, weighs deltas by their samples. params stay.
// iter is the worker's iteration, the clock of its learning rate.
func (d *Delta) Step(grads, params []float32, q Run, iter, samples int64) {
	a := Args{LR: float32(d.update.LR * d.update.Sched.Scale(float64(iter))), GradScale: 1 / float32(samples), Decay: q.Decay}
	for lo := q.Lo; lo < q.Hi; lo += deltaBlock {
		hi := min(lo+deltaBlock, q.Hi)
		for i := range d.state {
			d.part[i] = d.state[i][lo:hi]
		}
		next, p, g := d.scratch[:hi-lo], params[lo:hi], grads[lo:hi]
		d.update.Rule.Step(next, p, g, d.part, a)
		sumPass(next, next, p, -1)
		scalePass(g, next, float32(samples))
	}
}
