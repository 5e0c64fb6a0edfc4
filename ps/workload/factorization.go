package workload

import (
	"fmt"
	"math"
	"strings"

	"fluentps/kernels"
	"fluentps/ps/workload/dataset"
)

// factorization fits the product of two matrices of low rank, L (rows x rank) and R (rank x columns, stored transposed), to the
// known entries of a matrix: it minimizes the mean of (L_i . R_j - value)^2 over ratings (Koren, Bell and Volinsky, Computer 42(8),
// 2009; the workload of SSP, Ho et al., NIPS 2013). The weight_decay of the optimizer is L2. A sample is a row number, a column
// number and a value. It computes on the host, because a step touches only a few vectors of rank numbers.
//
// Gradients are sums over samples, as in all models, and steps use means. So the rate is that of a batch. The rate of a single
// rating is 2*lr / batch.
type factorization struct {
	spec     ModelSpec
	from     Samples
	batchMax int
	layers   []Layer

	left, right   []float32 // rows x rank, columns x rank
	dLeft, dRight []float32 // their gradients
	batch         Batch     // of the last Forward; without samples there is none that Backward may use
	twice         []float32 // per sample: 2*(L_i . R_j - value)
	errors        Errors    // over the samples of the last Eval
	kept          []float32 // per sample: R_j, because R may change when its gradient is ready
}

func factorizationLayers(s ModelSpec, from Samples) (layers []Layer) {
	for l, n := range []int{from.Matrix.Rows, from.Matrix.Columns} {
		name := []string{"left", "right"}[l]
		layers = append(layers, Layer{Name: name, Params: []Param{
			{Name: name + ".weight", Shape: []int{n, s.Rank}, Fan: 2 * s.Rank}, // variance 1/rank
		}})
	}
	return layers
}

func newFactorization(s ModelSpec, from Samples, _ kernels.Device, batchMax int) (Model, error) {
	return &factorization{spec: s, from: from, batchMax: batchMax, layers: factorizationLayers(s, from),
		twice: make([]float32, batchMax), kept: make([]float32, batchMax*s.Rank)}, nil
}

func factorable(s ModelSpec, _ Samples) error {
	if s.Rank < 1 || s.Rank > dataset.RankMax {
		return fmt.Errorf("model %s: rank is %d, need 1 to %d", s.Name, s.Rank, dataset.RankMax)
	}
	return noHidden(s, Samples{})
}

// TakesRatings says whether a model takes only samples that are entries of a matrix. The loss of such a model is a mean squared
// error, and it has no accuracy.
func TakesRatings(name string) bool { return modelOf(name).Ratings }

func (m *factorization) Clone() (Model, error) {
	return newFactorization(m.spec, m.from, nil, m.batchMax)
}

func (m *factorization) Bind(params, grads [][]float32) {
	mustBind(m.layers, m.spec, params, grads)
	m.left, m.right, m.dLeft, m.dRight, m.batch = params[0], params[1], nil, nil, Batch{}
	if grads != nil {
		m.dLeft, m.dRight = grads[0], grads[1]
	}
}

func (m *factorization) Forward(x Batch, wait func(layer int)) (loss float64, correct int, err error) {
	if x.N > m.batchMax {
		panic(fmt.Sprintf("workload: Forward of %d samples, model %s was made for %d", x.N, m.spec.Name, m.batchMax))
	}
	m.mustFit(x)
	if wait != nil {
		wait(0)
		wait(1)
	}
	for s := range x.N {
		_, right, e := m.miss(x, s)
		m.twice[s] = 2 * e
		copy(m.kept[s*m.spec.Rank:], right)
		loss += float64(e) * float64(e)
	}
	m.batch = x
	return loss, 0, nil
}

func (m *factorization) Eval(x Batch) (loss float64, correct int, err error) {
	m.mustFit(x)
	m.batch, m.errors = Batch{}, Errors{}
	for s := range x.N {
		_, _, e := m.miss(x, s)
		m.errors.add([]float32{float32(math.Abs(float64(e)))})
	}
	return m.errors.Squared, 0, nil
}

// Errors are those of the last Eval.
func (m *factorization) Errors() Errors { return m.errors }

func (m *factorization) mustFit(x Batch) {
	if x.Cols != dataset.RatingCols || len(x.X) < x.N*dataset.RatingCols {
		panic(fmt.Sprintf("workload: batch of %d x %d with %d values is not a batch of ratings, which model %s takes", x.N,
			x.Cols, len(x.X), m.spec.Name))
	}
	if m.left == nil {
		panic(fmt.Sprintf("workload: model %s used before Bind", m.spec.Name))
	}
}

// at returns the vector of row or column i of a factor.
func (m *factorization) at(factor []float32, i float32) []float32 {
	return factor[int(i)*m.spec.Rank:][:m.spec.Rank]
}

// miss returns the product for sample s minus its value, and the two vectors.
func (m *factorization) miss(x Batch, s int) (left, right []float32, e float32) {
	left, right = m.at(m.left, x.X[s*dataset.RatingCols]), m.at(m.right, x.X[s*dataset.RatingCols+1])
	e = -x.X[s*dataset.RatingCols+2]
	for k, v := range left {
		e += float32(v * right[k])
	}
	return left, right, e
}

func (m *factorization) Backward(ready func(layer int)) error {
	if m.batch.N == 0 || m.dLeft == nil {
		panic(fmt.Sprintf("workload: Backward of model %s without a Forward, or without gradients bound", m.spec.Name))
	}
	x, rank := m.batch, m.spec.Rank
	m.batch = Batch{}
	clear(m.dRight)
	for s, g := range m.twice[:x.N] {
		add(m.at(m.dRight, x.X[s*dataset.RatingCols+1]), m.at(m.left, x.X[s*dataset.RatingCols]), g)
	}
	if ready != nil {
		ready(1)
	}
	clear(m.dLeft)
	for s, g := range m.twice[:x.N] {
		add(m.at(m.dLeft, x.X[s*dataset.RatingCols]), m.kept[s*rank:][:rank], g)
	}
	if ready != nil {
		ready(0)
	}
	return nil
}

// add is dst += g*v.
func add(dst, v []float32, g float32) {
	for k := range dst {
		dst[k] += float32(g * v[k])
	}
}

// mustTakeRatings fails if one of model and data set is for ratings and the other is not.
func mustTakeRatings(m ModelEntry, from Samples) error {
	switch has := from.Matrix != (Matrix{}); {
	case m.Ratings && !has:
		return fmt.Errorf("model %s: the data set's rows are not ratings; choose one of the sets %s", m.Name,
			strings.Join(dataset.RatingSetNames(), ", "))
	case !m.Ratings && has:
		return fmt.Errorf("model %s: the data set holds ratings, entries of a matrix; choose model matrix_factorization", m.Name)
	}
	return nil
}
