//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
)

// trained is a model with its own memory, and the losses of its steps.
type trained struct {
	workload.Model
	params, grads []float32
	losses        []float64
}

func newTrained(t testing.TB, s workload.ModelSpec, from workload.Samples, dev kernels.Device, batch int) *trained {
	t.Helper()
	model, err := workload.NewModel(s, from, dev, batch)
	must(t, err)
	architecture, err := workload.NewArchitecture(s, from)
	must(t, err)
	n := 0
	for _, p := range architecture.Params() {
		n += p.N()
	}
	m := &trained{Model: model, params: make([]float32, n), grads: make([]float32, n)}
	if p, ok := dev.(kernels.Pinner); ok {
		must(t, p.Pin(m.params))
		must(t, p.Pin(m.grads))
	}
	var params, grads [][]float32
	at := 0
	for _, p := range architecture.Params() {
		part := m.params[at : at+p.N()]
		workload.Fill(part, 5, p, 0)
		params, grads = append(params, part), append(grads, m.grads[at:at+p.N()])
		at += p.N()
	}
	m.Bind(params, grads)
	return m
}

func (m *trained) step(x workload.Batch, rate float32) {
	loss, _, err := m.Forward(x, nil)
	if err == nil {
		err = m.Backward(nil)
	}
	if err != nil {
		panic(err)
	}
	m.losses = append(m.losses, loss/float64(x.N))
	for i, g := range m.grads {
		m.params[i] -= rate / float32(x.N) * g
	}
}

// drawn returns random samples whose class raises some of their values.
func drawn(r *rand.Rand, n, cols, classes int) workload.Batch {
	b := workload.Batch{X: make([]float32, n*cols), Y: make([]int32, n), N: n, Cols: cols}
	for i := range n {
		b.Y[i] = int32(r.IntN(classes))
		for j := range cols {
			b.X[i*cols+j] = r.Float32()
			if j%classes == int(b.Y[i]) {
				b.X[i*cols+j] += 0.5
			}
		}
	}
	return b
}

// From the same seed, the losses of 20 steps on CPU and GPU agree within 1e-4, and fall. A residual network takes fewer steps,
// because its training amplifies differences in the last bits.
func TestParity(t *testing.T) {
	image := workload.Image{Channels: 1, Height: 16, Width: 16}
	for _, c := range []struct {
		spec  workload.ModelSpec
		from  workload.Samples
		batch int
		rate  float32
		steps int
	}{
		{workload.ModelSpec{Name: "mlp", Layers: []int{64, 32}}, workload.Samples{Cols: 100, Classes: 10}, 32, 0.1, 20},
		{workload.ModelSpec{Name: "lenet"}, workload.Samples{Cols: 256, Classes: 10, Image: image}, 8, 0.05, 20},
		{workload.ModelSpec{Name: "resnet20"},
			workload.Samples{Cols: 192, Classes: 10, Image: workload.Image{Channels: 3, Height: 8, Width: 8}}, 4, 0.1, 4},
	} {
		t.Run(c.spec.Name, func(t *testing.T) {
			d := started(t)
			host := newTrained(t, c.spec, c.from, cpu.New(1), c.batch)
			gpu := newTrained(t, c.spec, c.from, d, c.batch)
			r := rand.New(rand.NewPCG(3, 4))
			worst := 0.0
			for step := range c.steps {
				x := drawn(r, c.batch, c.from.Cols, c.from.Classes)
				host.step(x, c.rate)
				gpu.step(x, c.rate)
				want, got := host.losses[step], gpu.losses[step]
				off := math.Abs(got-want) / want
				if !(off <= 1e-4) {
					t.Fatalf("step %d: loss %.9g on the GPU, %.9g on the CPU", step, got, want)
				}
				worst = max(worst, off)
			}
			t.Logf("%s: %d steps, losses %.4f to %.4f, apart by at most %.1e", c.spec.Name, c.steps, host.losses[0], host.losses[c.steps-1], worst)
			if c.steps == 20 && host.losses[c.steps-1] > 0.97*host.losses[0] {
				t.Errorf("losses %v do not fall", host.losses)
			}
		})
	}
}
