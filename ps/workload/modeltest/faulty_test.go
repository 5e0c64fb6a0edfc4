package modeltest

import (
	"strings"
	"testing"

	"fluentps/ps/workload"
)

// faulty is a model with a fault.
type faulty struct {
	workload.Model
	fault         string
	params, grads [][]float32
	n             int // samples of the last Forward
}

func (f *faulty) Bind(params, grads [][]float32) {
	f.params, f.grads = params, grads
	f.Model.Bind(params, grads)
}

func (f *faulty) Clone() (workload.Model, error) {
	if f.fault == "clone is the model" {
		return f, nil
	}
	m, err := f.Model.Clone()
	return &faulty{Model: m, fault: f.fault}, err
}

func (f *faulty) Forward(x workload.Batch, wait func(layer int)) (loss float64, correct int, err error) {
	f.n = x.N
	switch {
	case wait == nil:
	case f.fault == "no wait":
		wait = nil
	case f.fault == "waits too late":
		loss, correct, err = f.Model.Forward(x, nil)
		wait(0)
		wait(1)
		return loss, correct, err
	}
	loss, correct, err = f.Model.Forward(x, wait)
	if f.fault == "means" {
		loss /= float64(x.N)
	}
	return loss, correct, err
}

func (f *faulty) Backward(ready func(layer int)) error {
	var before [][]float32
	switch f.fault {
	case "adds up":
		before = cloned(f.grads)
	case "ready too early":
		if ready != nil {
			ready(1)
			ready(0)
			ready = nil
		}
	case "ready upwards":
		if ready != nil {
			err := f.Model.Backward(nil)
			ready(0)
			ready(1)
			return err
		}
	case "no ready":
		ready = nil
	case "one go":
		if ready != nil {
			err := f.Model.Backward(nil)
			ready(1)
			ready(0)
			return err
		}
	}
	err := f.Model.Backward(ready)
	for k, g := range f.grads {
		for i := range g {
			switch {
			case f.fault == "adds up":
				g[i] += before[k][i]
			case f.fault == "half", f.fault == "half of one" && k == 1:
				g[i] /= 2
			case f.fault == "nothing of one" && k == 3:
				g[i] = 0
			case f.fault == "means":
				g[i] /= float32(f.n)
			}
		}
	}
	return err
}

func (f *faulty) Eval(x workload.Batch) (loss float64, correct int, err error) {
	loss, correct, err = f.Model.Eval(x)
	if f.fault == "Eval of half" {
		loss /= 2
	}
	if f.fault == "Eval panics" && x.N > 5 {
		panic("a batch of more than 5")
	}
	return loss, correct, err
}

// Each fault of a model breaks the law that is meant for it.
func TestFaultsAreFound(t *testing.T) {
	mlp, _ := workload.Lookup("mlp")
	for fault, c := range map[string]struct {
		law  func(s *subject) error
		want string
	}{
		"no wait":            {order, "wait for 0 of 2 layers"},
		"waits too late":     {order, "reads parameters of a layer before it has called wait"},
		"ready too early":    {order, "is not final at ready(1)"},
		"ready upwards":      {order, "calls ready(0), want ready(1)"},
		"no ready":           {order, "has not called ready for layers 0 to 1"},
		"one go":             {order, "in layer 0, is written before ready(1) has returned"},
		"adds up":            {determinism, "does Backward overwrite"},
		"means":              {sums, "a loss is a sum over samples"},
		"half":               {differences, "says that the loss changes by"},
		"half of one":        {differences, "the gradient of fc1.bias says"},
		"nothing of one":     {differences, "the gradient of fc2.bias says"},
		"Eval of half":       {evaluation, "Eval finds the loss"},
		"Eval panics":        {evaluation, "the model panics: a batch of more than 5"},
		"clone is the model": {clones, "a clone is the model itself"},
	} {
		e := mlp
		e.Name, e.Doc = strings.ReplaceAll(strings.ToLower(fault), " ", "_"), "a faulty model"
		e.New = func(s workload.ModelSpec, from workload.Samples, d workload.Device, batchMax int) (workload.Model, error) {
			m, err := mlp.New(s, from, d, batchMax)
			return &faulty{Model: m, fault: fault}, err
		}
		if err := workload.Add(e); err != nil {
			t.Fatal(err)
		}
		k := usual(e)
		k.Spec.Name = e.Name
		s, err := newSubject(k)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.guarded(c.law); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", fault, err, c.want)
		}
	}
}
