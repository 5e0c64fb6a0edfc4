package modeltest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/shapes"
)

// architecture: it is a pure function of the spec and the samples, within the limits of runs, and its file holds it.
func architecture(s *subject) error {
	a, err := workload.NewArchitecture(s.c.Spec, s.set.Samples())
	if err != nil {
		return err
	}
	b, err := workload.NewArchitecture(s.c.Spec, s.set.Samples())
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("two calls of Layers give %+v and %+v", a, b)
	}
	var file bytes.Buffer
	if err := a.Write(&file); err != nil {
		return err
	}
	if b, err = shapes.Read("its file", &file); err == nil && !reflect.DeepEqual(a, b) {
		err = fmt.Errorf("its file holds %+v, want %+v", b, a)
	}
	return err
}

// poison stands where a value must not be read, and mark where none must be written yet.
var poison, mark = float32(math.NaN()), float32(math.Inf(1))

// order: parameters may arrive while Forward runs, and may change as soon as Backward says that their layer is ready. Until then the last
// gradients of the layers below may be in flight.
func order(s *subject) error {
	b, values := s.batch(0, Rows), cloned(s.values)
	wantLoss, _, want, err := s.step(b)
	if err != nil {
		return err
	}
	var broken []error
	s.fill(s.values, -1, poison)
	next := 0
	loss, _, err := s.model.Forward(b, func(l int) {
		if l != next {
			broken = append(broken, fmt.Errorf("its Forward calls wait(%d), want wait(%d): once for each of %d layers, "+
				"first layer first", l, next, s.layers))
		}
		next = l + 1
		s.restore(values, l)
	})
	if err := errors.Join(append(broken, err)...); err != nil {
		return err
	}
	if next != s.layers {
		return fmt.Errorf("its Forward has called wait for %d of %d layers", next, s.layers)
	}
	if loss != wantLoss {
		return fmt.Errorf("the loss is %g, and %g where all parameters are there from the start: Forward reads "+
			"parameters of a layer before it has called wait", loss, wantLoss)
	}
	s.fill(s.grads, -1, mark)
	next = s.layers - 1
	err = s.model.Backward(func(l int) {
		if l != next {
			broken = append(broken, fmt.Errorf("its Backward calls ready(%d), want ready(%d): once for each of %d layers, "+
				"last layer first", l, next, s.layers))
			return
		}
		next = l - 1
		broken = append(broken, s.atReady(l, want)...)
		s.fill(s.values, l, poison) // the next parameters may land
	})
	if err := errors.Join(append(broken, err)...); err != nil {
		return err
	}
	if next != -1 {
		return fmt.Errorf("its Backward has not called ready for layers 0 to %d", next)
	}
	if k, i, same := alike(s.grads, want); !same {
		return fmt.Errorf("gradient %d of %s changes if parameters of a layer do after its ready: Backward still reads them", i, s.params[k].Name)
	}
	return nil
}

func (s *subject) restore(values [][]float32, l int) {
	for k, p := range s.params {
		if p.Layer == l {
			copy(s.values[k], values[k])
		}
	}
}

// atReady looks at all gradients when layer l is ready.
func (s *subject) atReady(l int, want [][]float32) (broken []error) {
	for k, p := range s.params {
		switch {
		case p.Layer < l && slices.ContainsFunc(s.grads[k], func(g float32) bool { return g != mark }):
			broken = append(broken, fmt.Errorf("the gradient of %s, in layer %d, is written before ready(%d) has returned", p.Name, p.Layer, l))
		case p.Layer == l:
			if i := slices.IndexFunc(want[k], func(g float32) bool { return g != g }); i >= 0 {
				broken = append(broken, fmt.Errorf("gradient %d of %s is not a number", i, p.Name))
			} else if !slices.Equal(s.grads[k], want[k]) {
				broken = append(broken, fmt.Errorf("the gradient of %s is not final at ready(%d)", p.Name, l))
			}
		}
	}
	return broken
}

// alike compares bits, and names the first difference.
func alike(a, b [][]float32) (k, i int, same bool) {
	for k := range a {
		for i := range a[k] {
			if math.Float32bits(a[k][i]) != math.Float32bits(b[k][i]) {
				return k, i, false
			}
		}
	}
	return 0, 0, true
}

// determinism: nothing but the parameters and the batch has an effect, and Backward overwrites.
func determinism(s *subject) error {
	b := s.batch(0, Rows)
	s.fill(s.grads, -1, poison)
	loss, correct, want, err := s.step(b)
	if err != nil {
		return err
	}
	for k, p := range s.params {
		if i := slices.IndexFunc(want[k], func(g float32) bool { return g != g }); i >= 0 {
			return fmt.Errorf("gradient %d of %s is not a number, as it was before: does Backward overwrite?", i, p.Name)
		}
	}
	if _, _, _, err := s.step(s.batch(3, 10)); err != nil { // a smaller batch between the two
		return err
	}
	other, err := newSubject(s.c)
	if err != nil {
		return err
	}
	clone, err := s.model.Clone()
	if err != nil {
		return err
	}
	clone.Bind(other.values, other.grads)
	for what, m := range map[string]*subject{"a second time": s, "of a new model": other, "of a clone": {model: clone, grads: other.grads}} {
		m.fill(m.grads, -1, poison)
		again, hits, got, err := m.step(b)
		if err != nil {
			return err
		}
		if again != loss || hits != correct {
			return fmt.Errorf("the loss %s is %g with %d hits, the first was %g with %d", what, again, hits, loss, correct)
		}
		if k, i, same := alike(got, want); !same {
			return fmt.Errorf("gradient %d of %s, %s, is %g, the first was %g: does Backward overwrite, and does nothing "+
				"else have an effect?", i, s.params[k].Name, what, got[k][i], want[k][i])
		}
	}
	return nil
}

// sums: the loss and the gradients of a batch are the sums of those of its parts, not means. A statistic depends on the whole batch.
func sums(s *subject) error {
	if s.hasStatistics() {
		return nil
	}
	const cut = 7
	whole, hits, want, err := s.step(s.batch(0, Rows))
	if err != nil {
		return err
	}
	a, hitsA, first, err := s.step(s.batch(0, cut))
	if err != nil {
		return err
	}
	b, hitsB, second, err := s.step(s.batch(cut, Rows))
	if err != nil {
		return err
	}
	if !(math.Abs(a+b-whole) <= 1e-4*(1+math.Abs(whole))) || hitsA+hitsB != hits || hits < 0 || hits > Rows {
		return fmt.Errorf("the loss of %d samples is %g with %d hits, but that of %d and %d of them %g and %g with %d "+
			"and %d: a loss is a sum over samples",
			Rows, whole, hits, cut, Rows-cut, a, b, hitsA, hitsB)
	}
	for k := range want {
		scale := norm(want[k]) / math.Sqrt(float64(len(want[k])))
		for i, g := range want[k] {
			if got := float64(first[k][i]) + float64(second[k][i]); !(math.Abs(got-float64(g)) <= 1e-3*(math.Abs(float64(g))+scale)+1e-6) {
				return fmt.Errorf("gradient %d of %s is %g for %d samples, but %g in sum for %d and %d of them: a gradient is a sum over samples",
					i, s.params[k].Name, g, Rows, got, cut, Rows-cut)
			}
		}
	}
	return nil
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// The steps of finite differences, as shares of the norm of what is moved: the loss is in float32 somewhere, and bends.
var strides = []float64{3e-2, 1e-2, 3e-3, 1e-3, 3e-4}

// directions are looked at of a parameter. Of those drawn at random some may miss: where a ReLU or a pooling has a kink nearby, there is no
// derivative to find.
const directions, missesMax = 12, 2

// near is the share by which a derivative may differ from that of the gradient.
const near = 0.02

// differences: along the gradient of each trained parameter, and along some directions and elements drawn at random, the loss changes as
// the gradient says.
func differences(s *subject) error {
	b := s.batch(0, Rows)
	_, _, grads, err := s.step(b)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(8, 2))
	somewhere := false
	for k, p := range s.params {
		if p.Stat {
			continue
		}
		size := norm(grads[k])
		somewhere = somewhere || size > 0
		misses := 0
		for n := range directions {
			d := s.direction(r, grads[k], n)
			along := 0.0
			for i, g := range grads[k] {
				along += float64(g) * d[i]
			}
			found, ok, err := s.slope(k, d, b, along, size/math.Sqrt(float64(p.N())))
			if err != nil {
				return err
			}
			if !ok {
				misses++
			}
			if !ok && (n == 0 || misses > missesMax) {
				return fmt.Errorf("the gradient of %s says that the loss changes by %.4g along direction %d, but it changes by "+
					"%.4g", p.Name, along, n, found)
			}
		}
	}
	if !somewhere {
		return errors.New("all gradients are 0: nothing was compared")
	}
	return nil
}

// direction is of length 1: along the gradient, at random, or one element.
func (s *subject) direction(r *rand.Rand, grad []float32, n int) []float64 {
	d := make([]float64, len(grad))
	switch size := norm(grad); {
	case n == 0 && size > 0:
		for i, g := range grad {
			d[i] = float64(g) / size
		}
		return d
	case n < 5:
		length := 0.0
		for i := range d {
			d[i] = r.NormFloat64()
			length += d[i] * d[i]
		}
		for i := range d {
			d[i] /= math.Sqrt(length)
		}
		return d
	}
	d[r.IntN(len(d))] = 1
	return d
}

// slope is the derivative of the loss along a direction in parameter k, from the stride that comes closest to want. scale is the usual size
// of an element of the gradient. ok says whether it comes near.
func (s *subject) slope(k int, d []float64, b workload.Batch, want, scale float64) (found float64, ok bool, err error) {
	keep := slices.Clone(s.values[k])
	defer copy(s.values[k], keep)
	off := math.Inf(1)
	for _, stride := range strides {
		h := stride * max(1, norm(keep)/math.Sqrt(float64(len(keep))))
		var ends, moved [2]float64
		for side, sign := range []float64{1, -1} {
			for i := range keep {
				s.values[k][i] = keep[i] + float32(sign*h*d[i])
				moved[side] += (float64(s.values[k][i]) - float64(keep[i])) * d[i] // what float32 holds of it
			}
			if ends[side], _, err = s.model.Forward(b, nil); err != nil {
				return 0, false, err
			}
		}
		slope := (ends[0] - ends[1]) / (moved[0] - moved[1])
		if distance := math.Abs(slope - want); distance < off {
			off, found = distance, slope
		}
		noise := 3e-8 * (math.Abs(ends[0]) + math.Abs(ends[1])) / h
		if math.Abs(slope-want) <= near*(math.Abs(want)+scale)+noise {
			return found, true, nil
		}
	}
	return found, false, nil
}

// evaluation: Eval takes batches that are larger than those of Forward, finds the same loss, and keeps no Forward alive.
func evaluation(s *subject) error {
	b := s.batch(0, Rows)
	want, hits, err := s.model.Forward(b, nil)
	if err != nil {
		return err
	}
	small, err := workload.NewModel(s.c.Spec, s.set.Samples(), cpu.New(1), 5)
	if err != nil {
		return err
	}
	small.Bind(s.values, nil)
	for _, m := range []workload.Model{s.model, small} {
		loss, correct, err := m.Eval(b)
		if err != nil {
			return err
		}
		if s.hasStatistics() {
			if math.IsNaN(loss) || correct < 0 || correct > Rows {
				return fmt.Errorf("its Eval finds the loss %g with %d hits of %d", loss, correct, Rows)
			}
		} else if !(math.Abs(loss-want) <= 1e-4*(1+math.Abs(want))) || correct != hits {
			return fmt.Errorf("its Eval finds the loss %g with %d hits, Forward %g with %d", loss, correct, want, hits)
		}
	}
	return nil
}

// clones: a clone has no memory in common with its model.
func clones(s *subject) error {
	b := s.batch(0, Rows)
	loss, _, want, err := s.step(b)
	if err != nil {
		return err
	}
	clone, err := s.model.Clone()
	if err != nil {
		return err
	}
	if clone == s.model {
		return errors.New("a clone is the model itself, and shares memory with it: return a new one")
	}
	other := &subject{c: s.c, set: s.set, params: s.params, layers: s.layers, model: clone, values: cloned(s.values), grads: cloned(s.grads)}
	for _, v := range other.values {
		for i := range v {
			v[i] *= 0.5
		}
	}
	clone.Bind(other.values, other.grads)
	again, _, err := s.model.Forward(b, nil)
	if err != nil {
		return err
	}
	if _, _, _, err := other.step(s.batch(2, 9)); err != nil {
		return err
	}
	if err := s.model.Backward(nil); err != nil {
		return err
	}
	if k, i, same := alike(s.grads, want); again != loss || !same {
		return fmt.Errorf("after a step of a clone the loss is %g, before %g; gradient %d of %s is %g, before %g: the "+
			"clone shares memory with its model",
			again, loss, i, s.params[k].Name, s.grads[k][i], want[k][i])
	}
	return nil
}
