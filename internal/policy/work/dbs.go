package work

// dbs gives each worker a share of batch and data in proportion to the samples per second that it computed in the
// epoch before. The formula of the authors, r_i = (p_i / t_i) / sum of p_j / t_j for shares p and times t of an
// epoch, is the same, since p_i is the worker's share of the samples [A].
type dbs struct{ e Env }

func newDBS(_ Spec, e Env) Policy { return &dbs{e} }

func (d *dbs) Start() Plan {
	weights := make([]float64, d.e.Workers)
	for i := range weights {
		weights[i] = 1
	}
	return d.plan(weights)
}

func (d *dbs) Step(measured []Measured) Plan { return d.plan(speeds(measured)) }

func (d *dbs) plan(weights []float64) Plan {
	batch, most := limited(d.e, weights)
	workers := 0
	for _, w := range weights {
		if w > 0 {
			workers++
		}
	}
	return Plan{Batches: Split(batch, weights, 1, most), Iterations: EpochIterations(d.e.Rows, batch, workers), Epoch: true}
}

// limited is the batch over all workers that are left, and the largest of one. If workers have left, the others may
// not be able to take all.
func limited(e Env, weights []float64) (batch, most int) {
	n := 0
	for _, w := range weights {
		if w > 0 {
			n++
		}
	}
	return min(e.Batch, n*e.Max), e.Max
}

// speeds are samples per second; 0: the worker has left. A worker whose clock did not move is as fast as the fastest.
func speeds(measured []Measured) []float64 {
	v := make([]float64, len(measured))
	fastest := 0.0
	for i, m := range measured {
		if m.Iterations > 0 && m.Took > 0 {
			v[i] = max(1, float64(m.Samples)) / m.Took.Seconds()
			fastest = max(fastest, v[i])
		}
	}
	for i, m := range measured {
		if m.Iterations > 0 && m.Took <= 0 {
			v[i] = max(fastest, 1)
		}
	}
	return v
}

func (d *dbs) Memory() []float64 { return nil }

func (d *dbs) Recall([]int, []float64) error { return nil }
