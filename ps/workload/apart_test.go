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
	d.log = append(d.log, "refresh "+d.of(v).name)
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
			far := &bound{Model: m, layers: near.layers}
			for i, p := range near.params {
				far.params = append(far.params, slices.Clone(p))
				far.grads = append(far.grads, make([]float32, len(near.grads[i])))
			}
			m.Bind(far.params, far.grads)
			layers, inputs := len(near.layers), 2                                                          // two batches are wrapped first
			grad := func(layer, part int) string { return fmt.Sprint(inputs + 2*layers + 2*layer + part) } // its twin's name
			for step := range 3 {
				x := randomBatch(4, c.from.Cols, c.from.Classes)
				dev.log = nil
				var seen []int
				loss, _, _ := near.Forward(x, nil)
				got, _, _ := far.Forward(x, nil)
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

// apartBound is a model on a device apart, with all parameters in one arena and all gradients in another.
func apartBound(t *testing.T, s ModelSpec, from Samples, batchMax int, near *bound) (*bound, *apart) {
	t.Helper()
	dev := &apart{Device: cpu.New(1)}
	m, err := NewModel(s, from, dev, batchMax)
	if err != nil {
		t.Fatal(err)
	}
	b := &bound{Model: m, layers: near.layers}
	n := 0
	for _, p := range near.params {
		n += len(p)
	}
	params, grads := make([]float32, n), make([]float32, n)
	for i, p := range near.params {
		copy(params, p)
		b.params, b.grads = append(b.params, params[:len(p)]), append(b.grads, grads[:len(near.grads[i])])
		params, grads = params[len(p):], grads[len(p):]
	}
	m.Bind(b.params, b.grads)
	return b, dev
}

// Parameters of a layer that lie side by side travel in one copy, and nothing but the copies changes.
func TestALayerTravelsInOneCopy(t *testing.T) {
	spec, from := ModelSpec{Name: "resnet20"}, images(3, 8, 8, 3)
	near := newBoundTo(t, spec, from, 4, 1)
	far, dev := apartBound(t, spec, from, 4, near)
	x := randomBatch(4, from.Cols, from.Classes)
	for step := range 2 {
		dev.log = nil
		want, _, _ := near.Forward(x, nil)
		if got, _, _ := far.Forward(x, nil); got != want {
			t.Fatalf("step %d: loss %g, want %g", step, got, want)
		}
		near.Backward(nil)
		far.Backward(nil)
		for i, g := range near.grads {
			if !slices.Equal(far.grads[i], g) {
				t.Errorf("step %d: gradients of %s differ", step, near.all()[i].Name)
			}
		}
		log := strings.Join(dev.log, " ")
		if refreshes, fetches := strings.Count(log, "refresh"), strings.Count(log, "fetch"); refreshes != 20+1 || fetches != 20 {
			t.Errorf("step %d: %d copies to the device and %d to the host, want one for each of 20 layers, and the batch", step, refreshes, fetches)
		}
		descend(near, 0.1, 4)
		descend(far, 0.1, 4)
	}
}

// Neighbours in memory that are not of one arena stay apart: a vector must not reach from one allocation into another.
func TestOnlyPartsOfAnArenaAreJoined(t *testing.T) {
	arena := make([]float32, 10)
	for _, c := range []struct {
		parts [][]float32
		want  int
	}{
		{[][]float32{arena[:3], arena[3:4], arena[4:]}, 3},
		{[][]float32{arena[:3:3], arena[3:4]}, 1},
		{[][]float32{arena[:3], arena[4:]}, 1},
		{[][]float32{arena[3:5], arena[:3]}, 1},
		{[][]float32{arena[:3], arena[3:5], arena[6:]}, 2},
	} {
		length := 0
		for _, p := range c.parts[:c.want] {
			length += len(p)
		}
		if run, n := longestRun(c.parts); n != c.want || len(run) != length {
			t.Errorf("%d of %d parts are joined, to %d elements, want %d, %d elements", n, len(c.parts), len(run), c.want, length)
		}
	}
}

// The next batch travels before the lowest layer is ready, and Forward copies no batch then. A Forward of another batch copies that one.
func TestTheNextBatchTravelsWhileTheDeviceComputes(t *testing.T) {
	spec, from := ModelSpec{Name: "mlp", Layers: []int{7}}, Samples{Cols: 6, Classes: 3}
	near := newBoundTo(t, spec, from, 4, 1)
	far, dev := apartBound(t, spec, from, 4, near)
	all := randomBatch(40, from.Cols, from.Classes)
	table := &rowsTable{x: all.X, y: all.Y, cols: from.Cols}
	batch, rows := NewBatch(spec.Name, from, 4), func(i int32) []int32 { return []int32{4 * i, 4*i + 1, 4*i + 2, 4*i + 3} }
	batch.Take(table, rows(0))
	var next int32
	far.Model.(Forehanded).Ahead(func() (Batch, bool) {
		if next < 0 {
			return Batch{}, false
		}
		batch.Take(table, rows(next))
		return batch, true
	})
	copies := func() int {
		return strings.Count(strings.Join(dev.log, " "), "refresh 0") + strings.Count(strings.Join(dev.log, " "), "refresh 1")
	}
	for step, c := range []struct {
		next, then int32 // what is announced during a step, and what the following step gets
		inForward  int   // copies of a batch in the following Forward
	}{{1, 1, 0}, {2, 2, 0}, {3, 7, 1}, {-1, 5, 1}, {6, 6, 0}} {
		want, _, _ := near.Forward(batch, nil)
		if got, _, _ := far.Forward(batch, nil); got != want {
			t.Fatalf("step %d: loss %g, want %g", step, got, want)
		}
		next, dev.log = c.next, nil
		near.Backward(nil)
		far.Backward(func(layer int) {
			if want := min(1, 1+int(c.next)); layer == 0 && copies() != want {
				t.Errorf("step %d: %d batches have travelled before layer 0 is ready, want %d", step, copies(), want)
			}
		})
		for i, g := range near.grads {
			if !slices.Equal(far.grads[i], g) {
				t.Errorf("step %d: gradients of %s differ", step, near.all()[i].Name)
			}
		}
		if c.then != c.next {
			batch.Take(table, rows(c.then))
		}
		dev.log = nil
		want, _, _ = near.Forward(batch, nil)
		if got, _, _ := far.Forward(batch, nil); got != want || copies() != c.inForward {
			t.Fatalf("after step %d: loss %g, want %g; %d batches travel in Forward, want %d", step, got, want, copies(), c.inForward)
		}
	}
}
