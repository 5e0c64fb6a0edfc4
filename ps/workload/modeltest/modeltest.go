// Package modeltest is the conformance suite of models: what every model must hold, so that it trains under any scheme, send order and
// policy, and resumes to the bit.
//
//	func TestConformance(t *testing.T) { modeltest.Run(t, elman) }
package modeltest

import (
	"fmt"
	"slices"
	"testing"

	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Case is a spec of the model, and generated data for it.
type Case struct {
	Spec workload.ModelSpec // Name may be left out
	Data workload.DataSpec  // a set generated, generated_sparse or generated_ratings with at least Rows rows
}

// Rows is how many rows the suite needs. It computes batches of up to as many.
const Rows = 24

// Run checks a model on the cases; without any, on small data of the kind that the entry takes. It adds the entry to the table, unless it
// is there.
func Run(t *testing.T, e workload.ModelEntry, cases ...Case) {
	t.Helper()
	if _, there := workload.Lookup(e.Name); !there {
		if err := workload.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(cases) == 0 {
		cases = []Case{usual(e)}
	}
	for _, c := range cases {
		c.Spec.Name = e.Name
		if _, err := newSubject(c); err != nil {
			t.Fatalf("%+v, %s: %v", c.Spec, c.Data.Set, err)
		}
		for _, law := range []struct {
			name  string
			holds func(s *subject) error
		}{
			{"architecture", architecture}, {"layers are read after wait and final at ready", order},
			{"the same call gives the same bits", determinism},
			{"losses and gradients are sums over samples", sums}, {"gradients are those of finite differences", differences},
			{"Eval takes any batch", evaluation}, {"clones are apart", clones},
		} {
			t.Run(fmt.Sprintf("%s%v/%s", c.Data.Set, c.Spec.Layers, law.name), func(t *testing.T) {
				s, err := newSubject(c)
				if err == nil {
					err = s.guarded(law.holds)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// usual is a case for a model of which only the entry is known.
func usual(e workload.ModelEntry) Case {
	const side, classes = 12, 3
	c := Case{Spec: workload.ModelDefaults(),
		Data: workload.DataSpec{Set: "generated", Rows: Rows, TestRows: 1, Features: 12, Classes: classes, Seed: 5}}
	c.Spec.Rank = 4
	if e.Hidden {
		c.Spec.Layers = []int{5}
	}
	switch {
	case e.Images:
		c.Data.Image, c.Data.Features = workload.Image{Channels: 1, Height: side, Width: side}, side*side
	case e.Ratings:
		c.Data = workload.DataSpec{Set: "generated_ratings", Rows: Rows, TestRows: 1, Seed: 5,
			Matrix: workload.Matrix{Rows: 7, Columns: 6}, Rank: 2, Noise: 0.1}
	case e.Sparse:
		c.Data = workload.DataSpec{Set: "generated_sparse", Rows: Rows, TestRows: 1, Features: 20, Nonzeros: 4, Seed: 5}
	}
	if e.Labels == workload.Targets {
		c.Data.Set, c.Data.Classes, c.Data.Features, c.Data.Nonzeros, c.Data.Regress.On = "generated", 0, 12, 0, true
	}
	if e.Check != nil && c.Data.Classes > 0 &&
		e.Check(c.Spec, workload.Samples{Cols: c.Data.Features, Classes: classes, Image: c.Data.Image}) != nil {
		c.Data.Classes = 2
	}
	return c
}

// subject is a model with its own memory.
type subject struct {
	c             Case
	set           *dataset.Set
	params        []workload.Param
	layers        int
	model         workload.Model
	values, grads [][]float32 // in model order
}

func newSubject(c Case) (*subject, error) {
	set, err := dataset.Load(c.Data)
	if err != nil {
		return nil, err
	}
	if set.Train.Rows() < Rows {
		return nil, fmt.Errorf("the data have %d rows, need at least %d", set.Train.Rows(), Rows)
	}
	a, err := workload.NewArchitecture(c.Spec, set.Samples())
	if err != nil {
		return nil, err
	}
	model, err := workload.NewModel(c.Spec, set.Samples(), cpu.New(1), Rows)
	if err != nil {
		return nil, err
	}
	s := &subject{c: c, set: set, params: a.Params(), layers: len(a.Layers), model: model}
	for _, p := range s.params {
		w := make([]float32, p.N())
		workload.Fill(w, 3, p, 0)
		for i := range w {
			if !p.Stat { // away from zero, so that all parameters have an effect
				w[i] += 0.01 * float32(i%7-3)
			}
		}
		s.values, s.grads = append(s.values, w), append(s.grads, make([]float32, p.N()))
	}
	model.Bind(s.values, s.grads)
	return s, nil
}

// guarded turns a panic of the model into an error.
func (s *subject) guarded(law func(s *subject) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the model panics: %v", p)
		}
	}()
	return law(s)
}

// batch takes rows lo to hi-1.
func (s *subject) batch(lo, hi int) workload.Batch {
	b := workload.NewBatch(s.c.Spec.Name, s.set.Samples(), hi-lo)
	rows := make([]int32, 0, hi-lo)
	for r := lo; r < hi; r++ {
		rows = append(rows, int32(r))
	}
	b.Take(s.set.Train, rows)
	return b
}

// step is a forward and a backward pass; it returns copies of the gradients.
func (s *subject) step(b workload.Batch) (loss float64, correct int, grads [][]float32, err error) {
	if loss, correct, err = s.model.Forward(b, nil); err == nil {
		err = s.model.Backward(nil)
	}
	return loss, correct, cloned(s.grads), err
}

func cloned(v [][]float32) (c [][]float32) {
	for _, x := range v {
		c = append(c, slices.Clone(x))
	}
	return c
}

// fill sets all elements of the parameters of layer l; of all layers if l is negative.
func (s *subject) fill(in [][]float32, l int, value float32) {
	for k, p := range s.params {
		if l < 0 || p.Layer == l {
			for i := range in[k] {
				in[k][i] = value
			}
		}
	}
}

// hasStatistics says whether Eval computes something else than Forward.
func (s *subject) hasStatistics() bool {
	return slices.ContainsFunc(s.params, func(p workload.Param) bool { return p.Stat })
}
