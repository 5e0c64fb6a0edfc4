package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// apart is a device with its own memory. It sees writes of the host only after Refresh. The host sees its writes only after the Event
// of a Fetch, and NaN until then. It logs its calls.
type apart struct {
	kernels.Device
	twins []*apartTwin
	log   []string
}

type apartTwin struct {
	name string
	d    *apart
	host []float32
	vec  kernels.Vec
	now  []float32 // values at the latest Fetch
}

func (d *apart) Wrap(p []float32) (kernels.Vec, error) {
	t := &apartTwin{d: d, host: p, name: fmt.Sprint(len(d.twins))}
	t.vec = kernels.Vec{Host: make([]float32, len(p)), Dev: uint64(len(d.twins)+1) << 32, N: len(p)}
	for i := range t.vec.Host {
		t.vec.Host[i] = float32(math.NaN())
	}
	d.twins = append(d.twins, t)
	return t.vec, nil
}

func (d *apart) of(v kernels.Vec) *apartTwin { return d.twins[v.Dev>>32-1] }

func (d *apart) Refresh(v kernels.Vec) error {
	copy(v.Host, d.of(v).host)
	return nil
}

func (d *apart) Fetch(v kernels.Vec) (kernels.Event, error) {
	t := d.of(v)
	t.now = slices.Clone(v.Host)
	for i := range t.host {
		t.host[i] = float32(math.NaN())
	}
	d.log = append(d.log, "fetch "+t.name)
	return t, nil
}

func (t *apartTwin) Passed() bool { return false }

func (t *apartTwin) Wait() error {
	copy(t.host, t.now)
	return nil
}

func (d *apart) Launch(k *kernels.Kernel, a kernels.Args) error {
	for _, v := range a.V {
		if v.Dev>>32 > 0 {
			d.log = append(d.log, "launch "+d.of(v).name)
		}
	}
	return d.Device.Launch(k, a)
}

// On a device with its own memory a model computes the same. The gradients of a layer travel to the host while the next layer is
// computed, but not before the layer above is ready.
func TestGradientsTravelWhileTheNextLayerIsComputed(t *testing.T) {
	for _, c := range []struct {
		spec ModelSpec
		from Samples
	}{
		{ModelSpec{Name: "mlp", Layers: []int{7, 5}}, Samples{Cols: 6, Classes: 3}},
		{ModelSpec{Name: "lenet"}, images(1, 12, 12, 3)},
	} {
		t.Run(c.spec.Name, func(t *testing.T) {
			near := newBoundTo(t, c.spec, c.from, 4, 1)
			dev := &apart{Device: cpu.New(1)}
			m, err := NewModel(c.spec, c.from, dev, 4)
			if err != nil {
				t.Fatal(err)
			}
			far := &bound{Model: m}
			for i, p := range near.params {
				far.params = append(far.params, slices.Clone(p))
				far.grads = append(far.grads, make([]float32, len(near.grads[i])))
			}
			m.Bind(far.params, far.grads)
			layers := len(m.Layers())
			grad := func(layer, part int) string { return fmt.Sprint(2*layers + 2*layer + part) } // its twin's name
			for step := range 3 {
				x := randomBatch(4, c.from.Cols, c.from.Classes)
				dev.log = nil
				var seen []int
				loss, _ := near.Forward(x, nil)
				got, _ := far.Forward(x, nil)
				if got != loss || math.IsNaN(loss) {
					t.Fatalf("step %d: loss %g, want %g", step, got, loss)
				}
				near.Backward(nil)
				far.Backward(func(layer int) {
					seen = append(seen, layer)
					log := strings.Join(dev.log, " ")
					if layer > 0 && !strings.Contains(log, "launch "+grad(layer-1, 0)) {
						t.Errorf("layer %d is ready before the next one is computed", layer)
					}
					if layer > 0 && strings.Contains(log, "fetch "+grad(layer-1, 0)) {
						t.Errorf("gradients of layer %d travel before layer %d is ready", layer-1, layer)
					}
					for part := range 2 {
						if want := near.grads[2*layer+part]; !slices.Equal(far.grads[2*layer+part], want) {
							t.Errorf("layer %d: gradient %v, want %v", layer, far.grads[2*layer+part], want)
						}
					}
				})
				if len(seen) != layers || !slices.IsSortedFunc(seen, func(a, b int) int { return b - a }) {
					t.Errorf("layers were ready in the order %v", seen)
				}
				descend(near, 0.1, 1)
				descend(far, 0.1, 1)
			}
		})
	}
}
