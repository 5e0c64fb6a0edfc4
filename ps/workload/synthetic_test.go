package workload

import (
	"slices"
	"testing"
	"time"
)

func TestSyntheticGradientsAreTheirFormulaTimesTheSamples(t *testing.T) {
	m := newBound(t, ModelSpec{Name: "synthetic", Layers: []int{9, 4}}, 1, 2, 4, 1)
	for _, rows := range []int{3, 3, 1, 4} {
		var waited, ready []int
		loss, correct, _ := m.Forward(randomBatch(rows, 1, 2), func(l int) { waited = append(waited, l) })
		if loss != float64(rows) || correct != 0 {
			t.Errorf("loss %v, %d correct of %d rows; want 1 a row and none", loss, correct, rows)
		}
		m.Backward(func(l int) { ready = append(ready, l) })
		if !slices.Equal(waited, []int{0, 1}) || !slices.Equal(ready, []int{1, 0}) {
			t.Errorf("waited for layers %v, ready %v; want forward and backward order", waited, ready)
		}
		for l := range m.grads {
			for i, g := range m.grads[l] {
				if want := float32(rows*(1+i%7)) / 1024; g != want {
					t.Fatalf("%d rows: gradient of layer %d, element %d: %v, want %v", rows, l, i, g, want)
				}
			}
		}
	}
}

// Gradients that somebody has changed in place are written again, whichever piece of a layer that was; others are left alone.
func TestSyntheticWritesChangedGradientsAgain(t *testing.T) {
	const n = 3*sampleEvery + 5
	m := newBound(t, ModelSpec{Name: "synthetic", Layers: []int{n, 7}}, 1, 2, 4, 1)
	x := randomBatch(4, 1, 2)
	step := func() {
		m.Forward(x, nil)
		m.Backward(nil)
	}
	step()
	for _, piece := range [][2]int{{0, n}, {0, sampleEvery}, {sampleEvery, 2 * sampleEvery}, {3 * sampleEvery, n}, {n - 1, n}} {
		for i := piece[0]; i < piece[1]; i++ {
			m.grads[0][i] *= 2
		}
		step()
		for i, g := range m.grads[0] {
			if want := 4 * SyntheticGradient(i); g != want {
				t.Fatalf("elements %v were doubled: gradient %d is %v in the next step, want %v", piece, i, g, want)
			}
		}
	}
	m.grads[0][1] = 9 // between two samples
	if step(); m.grads[0][1] != 9 {
		t.Error("gradients that nobody changed were written again")
	}
}

// Over a whole run the sleeps are never too short: the next sleeps compensate for the overshoot of one, but for no more.
func TestSyntheticComputesAtLeastItsTime(t *testing.T) {
	m := newBound(t, ModelSpec{Name: "synthetic", Layers: []int{1, 1, 1, 1}, Compute: Cost{Fixed: 8 * time.Millisecond}}, 1, 2, 1, 1)
	x := randomBatch(1, 1, 2)
	start := time.Now()
	const steps = 5
	for range steps {
		m.Forward(x, nil)
		m.Backward(nil)
	}
	took, owed := time.Since(start), m.Model.(*synthetic).overshoot
	if want := steps * 8 * time.Millisecond; took-owed < want-time.Microsecond*steps*8 {
		t.Errorf("%d steps took %v, of which %v too much; want %v without it", steps, took, owed, want)
	}
}
