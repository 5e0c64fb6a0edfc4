package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// wideParams are m's parameters in float64.
func wideParams(m *bound) [][]float64 {
	var params [][]float64
	for _, p := range m.params {
		params = append(params, wide(p))
	}
	return params
}

// agreeWithDifferences compares loss, hits and gradients of m on x with a reference in float64. Of each trained parameter it compares
// up to most elements drawn by r, or all elements if r is nil.
func agreeWithDifferences(t *testing.T, m *bound, x Batch, r *rand.Rand, most int,
	reference func(params [][]float64) (loss float64, correct int)) {
	t.Helper()
	for i := range m.grads {
		for j := range m.grads[i] {
			m.grads[i][j] = float32(math.NaN()) // Backward overwrites
		}
	}
	loss, correct, _ := m.Forward(x, nil)
	m.Backward(nil)
	params := wideParams(m)
	if want, hits := reference(params); !(math.Abs(loss-want) <= 1e-5*want) || correct != hits {
		t.Errorf("loss %g correct %d, want %g and %d", loss, correct, want, hits)
	}
	for i, p := range m.all() {
		if p.Stat {
			continue
		}
		somewhere := false
		for _, j := range chosen(r, p.N(), most) {
			const h = 1e-6
			keep := params[i][j]
			params[i][j] = keep + h
			up, _ := reference(params)
			params[i][j] = keep - h
			down, _ := reference(params)
			params[i][j] = keep
			want := (up - down) / (2 * h)
			somewhere = somewhere || math.Abs(want) > 0.01
			if got := float64(m.grads[i][j]); !(math.Abs(got-want) <= 1e-3*max(math.Abs(want), 0.1)) {
				t.Errorf("gradient %d of %s is %g, want %g", j, p.Name, got, want)
			}
		}
		if !somewhere {
			t.Errorf("no gradient of %s is above 0.01: nothing was compared", p.Name)
		}
	}
}

func chosen(r *rand.Rand, n, most int) []int {
	if r != nil {
		return r.Perm(n)[:min(most, n)]
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// awayFromZero moves biases, so that they affect the result.
func awayFromZero(m *bound) {
	for i := range m.params {
		for j := range m.params[i] {
			m.params[i][j] += 0.01 * float32(j%5)
		}
	}
}

// twins runs every kernel as its Go twin, even if the device has another one.
type twins struct{ kernels.Device }

func (d twins) Launch(k *kernels.Kernel, a kernels.Args) error {
	if err := k.Check(a); err != nil {
		return err
	}
	k.CPU(a)
	return nil
}

// trainsAsOnItsTwins compares losses over some steps. With kernels in C the device sums in another order than the twins, and the
// losses agree within a tolerance. Without them they are equal.
func trainsAsOnItsTwins(t *testing.T, spec ModelSpec, from Samples, steps int) {
	t.Helper()
	const n = 16
	var losses [2][]float64
	for i, dev := range []kernels.Device{cpu.New(1), twins{cpu.New(1)}} {
		m := newBoundTo(t, spec, from, n, 1)
		of, err := NewModel(spec, from, dev, n)
		if err != nil {
			t.Fatal(err)
		}
		of.Bind(m.params, m.grads)
		x := randomBatch(n, from.Cols, from.Classes)
		for range steps {
			loss, _, _ := of.Forward(x, nil)
			of.Backward(nil)
			losses[i] = append(losses[i], loss)
			descend(m, 0.02/n, n)
		}
		if slices.ContainsFunc(m.all(), func(p Param) bool { return p.Stat }) { // without statistics Eval is the next Forward
			loss, _, _ := of.Eval(x)
			losses[i] = append(losses[i], loss)
		}
	}
	for step, want := range losses[1] {
		if got := losses[0][step]; !(math.Abs(got-want) <= 1e-4*want) {
			t.Errorf("loss of step %d is %.8g, on the twins %.8g", step, got, want)
		}
	}
	if first, last := losses[1][0], losses[1][steps-1]; !(last < 0.9*first) {
		t.Errorf("loss went from %g to %g only: equal losses of a model that does not learn prove little", first, last)
	}
}

// descend takes one step of gradient descent with a batch of n. Statistics become their next values.
func descend(m *bound, lr float32, n int) {
	for i, p := range m.all() {
		for j, g := range m.grads[i] {
			if p.Stat {
				m.params[i][j] = g / float32(n)
			} else {
				m.params[i][j] -= lr * g
			}
		}
	}
}
