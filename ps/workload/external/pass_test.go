package external

import (
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/external/externaltest"
	"fluentps/ps/workload/shapes"
)

// A child's tensors are read once, and those of a start must be the same.
func TestAProbeReadsTheShapes(t *testing.T) {
	leavesNothing(t)
	a, err := Probe(optionsOf(externaltest.Well))
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Hash()
	want, wantErr := externaltest.Shapes().Hash()
	if err != nil || wantErr != nil || got != want {
		t.Errorf("%v, %v: architecture %+v, want %+v", err, wantErr, a, externaltest.Shapes())
	}
}

// The values with which a child's tensors begin come one tensor behind the other, each time.
func TestValuesOfAChild(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	want := slices.Concat(externaltest.Values(0)...)
	for range 2 {
		got := make([]float32, len(want))
		if err := c.Values(got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("values %v, want %v", got, want)
		}
	}
	if n := len(c.regions); n != 1 {
		t.Errorf("%d regions are left, want 1", n)
	}
}

// places are kinds of memory that a model may be bound to.
var places = map[string]func(testing.TB, *Child) [][]float32{
	"in room": func(t testing.TB, c *Child) [][]float32 { return inRoom(t, c) },
	"apart":   func(testing.TB, *Child) [][]float32 { return apart() },
	"mixed": func(t testing.TB, c *Child) [][]float32 {
		v := apart()
		copy(v[1:3], inRoom(t, c)[1:3])
		return v
	},
}

// Loss, hits and gradients are those that plain Go computes, in whatever memory, also when a model is bound again to other memory.
func TestAChildComputesStepsAndEvaluations(t *testing.T) {
	leavesNothing(t)
	c := started(t, "firstsent", nil)
	m, e := c.Model(Training), c.Model(Evaluation)
	for _, ofParams := range []string{"in room", "apart", "mixed", "apart", "in room"} {
		for name, place := range places {
			params, grads := places[ofParams](t, c), place(t, c)
			m.Bind(params, grads)
			for seed := range 3 { // values change between steps, as in training
				fill(params, externaltest.Values(seed))
				params[2][1] = float32(seed)
				step(t, m, params, grads, 1, 5, int32(seed))
			}
			evaluated := place(t, c)
			e.Bind(evaluated, nil)
			fill(evaluated, externaltest.Values(7))
			evaluates(t, e, evaluated)
			step(t, m, params, grads, 0, 1, 2, 3, 4, 5, 6, 7)
			evaluates(t, e, evaluated)
			if t.Failed() {
				t.Fatalf("parameters %s, gradients %s", ofParams, name)
			}
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// evaluates compares an evaluation of some rows.
func evaluates(t testing.TB, e *Model, params [][]float32) {
	t.Helper()
	rows := []int32{40, 0, 7, 49, 3, 3, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}
	wantLoss, wantCorrect, _ := externaltest.Compute(params, rows, true, nil)
	if loss, correct, err := e.Eval(rowsOf(rows...)); err != nil || loss != wantLoss || correct != wantCorrect {
		t.Errorf("%v: loss %v, %d hits; want %v, %d", err, loss, correct, wantLoss, wantCorrect)
	}
}

// The plain computation that children are compared with has the gradients of its loss.
func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	const h = 1e-3
	rows := []int32{3, 1, 4, 15}
	params := externaltest.Values(0)
	params[2][0] = 0.5
	_, _, grads := externaltest.Compute(params, rows, false, nil)
	for k, p := range externaltest.Shapes().Params() {
		for i := range params[k] {
			if p.Stat {
				continue
			}
			at := params[k][i]
			up, down := at+h, at-h
			params[k][i] = up
			above, _, _ := externaltest.Compute(params, rows, false, nil)
			params[k][i] = down
			below, _, _ := externaltest.Compute(params, rows, false, nil)
			params[k][i] = at
			if d := (above - below) / (float64(up) - float64(down)); math.Abs(d-float64(grads[k][i])) > 1e-5 {
				t.Errorf("%s, element %d: %v, want %v", p.Name, i, grads[k][i], d)
			}
		}
	}
}

// What lies in memory of Room is used in place. All else has a copy, which is made once.
func TestMemoryOfRoomIsNotCopied(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	m := c.Model(Training)
	params, grads := inRoom(t, c), apart()
	fill(params, externaltest.Values(0))
	m.Bind(params, grads)
	step(t, m, params, grads, 1, 2)
	for i := range params {
		if unsafe.SliceData(m.params.shared[i]) != unsafe.SliceData(params[i]) || m.params.copied[i] {
			t.Errorf("parameter %d is copied", i)
		}
		if unsafe.SliceData(m.grads.shared[i]) == unsafe.SliceData(grads[i]) || !m.grads.copied[i] {
			t.Errorf("gradient %d is said to be shared", i)
		}
	}
	if m.params.shadow != nil {
		t.Error("there is room for copies of parameters")
	}
	regions, shadow := len(c.regions), m.grads.shadow
	for range 3 {
		step(t, m, params, grads, 1, 2)
	}
	if len(c.regions) != regions || m.grads.shadow != shadow {
		t.Error("a step allocates")
	}
	for range 3 {
		m.Bind(params, apart())
		step(t, m, params, m.grads.bound, 1, 2)
	}
	if len(c.regions) != regions {
		t.Errorf("%d regions after binding again, %d before", len(c.regions), regions)
	}
}

// Memory that the caller lends is used in place, too, and stays the caller's.
func TestLentMemoryIsNotCopied(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	lent, err := newRegion(c.Shapes().Elements()*floatBytes + 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Lend(lent.file, lent.mem); err != nil {
		t.Fatal(err)
	}
	m := c.Model(Training)
	params, grads := inRoom(t, c), viewsOf(c, lent.mem[4096:])
	fill(params, externaltest.Values(0))
	m.Bind(params, grads)
	step(t, m, params, grads, 1, 2, 3)
	if slices.Contains(m.grads.copied, true) || m.grads.shadow != nil {
		t.Error("gradients in lent memory are copied")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	lent.mem[len(lent.mem)-1]++ // still mapped
	if err := lent.free(); err != nil {
		t.Error(err)
	}
}

// ready hears of the last layer first, although this child is done with the first one first, and each layer's gradients are there by then.
func TestLayersAreReadyLastFirst(t *testing.T) {
	leavesNothing(t)
	for _, mode := range []string{externaltest.Well, "firstsent"} {
		c := started(t, mode, nil)
		m := c.Model(Training)
		params, grads := externaltest.Values(0), apart()
		m.Bind(params, grads)
		_, _, want := externaltest.Compute(params, []int32{1, 2}, false, nil)
		var layers []int
		if _, _, err := m.Forward(rowsOf(1, 2), nil); err != nil {
			t.Fatal(err)
		}
		if err := m.Backward(func(layer int) {
			layers = append(layers, layer)
			for i, p := range c.Shapes().Params() {
				if p.Layer == layer && !slices.Equal(grads[i], want[i]) {
					t.Errorf("%s: layer %d: gradient %d is %v, want %v", mode, layer, i, grads[i], want[i])
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(layers, []int{1, 0}) {
			t.Errorf("%s: layers %v are ready, want 1, 0", mode, layers)
		}
	}
}

// The child reads the parameters of a layer only after wait has returned: until then they are not numbers.
func TestAChildWaitsForEachLayer(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	m := c.Model(Training)
	for name, place := range places {
		params, grads, values := place(t, c), apart(), externaltest.Values(3)
		m.Bind(params, grads)
		want, _, _ := externaltest.Compute(values, []int32{1, 2, 3}, false, nil)
		for range 50 {
			for i := range params {
				for j := range params[i] {
					params[i][j] = float32(math.NaN())
				}
			}
			var layers []int
			loss, _, err := m.Forward(rowsOf(1, 2, 3), func(layer int) {
				layers = append(layers, layer)
				for i, p := range c.Shapes().Params() {
					if p.Layer == layer {
						copy(params[i], values[i])
					}
				}
			})
			if err != nil || loss != want || !slices.Equal(layers, []int{0, 1}) {
				t.Fatalf("%s: loss %v after layers %v, %v; want %v", name, loss, layers, err, want)
			}
			if err := m.Backward(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A model that begins a pass although it has not ended the last one gives that up. Close in the middle of a pass ends the child at once.
func TestAPassIsGivenUp(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	m := c.Model(Training)
	params, grads := externaltest.Values(0), apart()
	m.Bind(params, grads)
	for range 3 {
		if _, _, err := m.Forward(rowsOf(4), nil); err != nil {
			t.Fatal(err)
		}
	}
	step(t, m, params, grads, 1, 2)
	if _, _, err := m.Forward(rowsOf(4), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	mustSay(t, "Backward", m.Backward(nil), "is used after Close")
	_, _, err := m.Forward(rowsOf(4), nil)
	mustSay(t, "Forward", err, "is used after Close")
	_, err = c.Room(4)
	mustSay(t, "Room", err, "is used after Close")
}

// Two models of a child may be used from two goroutines: one pass is computed at a time.
func TestModelsOfAChildTakeTurns(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	var wg sync.WaitGroup
	const times = 100
	wg.Go(func() {
		m := c.Model(Training)
		params, grads := externaltest.Values(1), apart()
		m.Bind(params, grads)
		for range times {
			step(t, m, params, grads, 1, 2, 3)
		}
	})
	wg.Go(func() {
		e := c.Model(Evaluation)
		params := externaltest.Values(2)
		e.Bind(params, nil)
		for range times {
			evaluates(t, e, params)
		}
	})
	wg.Go(func() {
		got := make([]float32, c.Shapes().Elements())
		for range times {
			if err := c.Values(got); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}

// Calls that no rank makes are bugs, and panic.
func TestWrongCallsPanic(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	m := c.Model(Training)
	m.Bind(externaltest.Values(0), apart())
	for name, call := range map[string]func(){
		"Backward before Forward": func() { _ = m.Backward(nil) },
		"too few vectors":         func() { m.Bind(apart()[1:], nil) },
		"too few gradients":       func() { m.Bind(apart(), apart()[1:]) },
		"no rows":                 func() { _, _, _ = m.Forward(dataset.Batch{N: 3}, nil) },
		"an empty batch":          func() { _, _, _ = m.Forward(rowsOf(), nil) },
		"too many rows":           func() { _, _, _ = m.Forward(rowsOf(make([]int32, evalMax+1)...), nil) },
		"Values into too few":     func() { _ = c.Values(make([]float32, 3)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			call()
		}()
	}
	step(t, m, m.params.bound, m.grads.bound, 1)
}

// differences are architectures that a good child does not bind.
func TestOtherShapesAreRefused(t *testing.T) {
	leavesNothing(t)
	all := func() []shapes.Layer {
		a := externaltest.Shapes()
		for l := range a.Layers {
			a.Layers[l].Params = slices.Clone(a.Layers[l].Params)
		}
		return a.Layers
	}
	_, err := Start(optionsOf(externaltest.Well), shapes.New(Name, all()[:1]))
	mustSay(t, "a layer too much", err, `the child "`, "has bound layer out, which model.shapes does not have", "fluentps probe")
	more := append(all(), shapes.Layer{Name: "last"})
	_, err = Start(optionsOf(externaltest.Well), shapes.New(Name, more))
	mustSay(t, "a layer too few", err, "has no layer last, which model.shapes has")
	swapped := all()
	slices.Reverse(swapped)
	_, err = Start(optionsOf(externaltest.Well), shapes.New(Name, swapped))
	mustSay(t, "another order", err, "has layer hidden as number 0, model.shapes has out")
	_, err = Start(optionsOf("shape"), externaltest.Shapes())
	mustSay(t, "another shape", err, "has bound tensor hidden.weight with the shape [3 4], model.shapes has [4 3]")
}
