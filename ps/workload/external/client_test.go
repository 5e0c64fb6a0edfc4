package external

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"fluentps/ps/workload/dataset"
)

// The client in C that PROTOCOL.md shows is compiled without a warning, and trains: in memory of Room and elsewhere to the same bits.
func TestTheClientInCTrains(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is missing, so the client in C is not tried: ", err)
	}
	program := filepath.Join(t.TempDir(), "client")
	out, err := exec.Command(gcc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-o", program, "testdata/client.c",
		"-lm").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	leavesNothing(t)
	o := optionsOf("")
	o.Command = []string{program}
	a, err := Probe(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Layers) != 2 || a.Elements() != 16*8+16+4*16+4 {
		t.Fatalf("architecture %+v", a)
	}
	var ends [][]float32
	for _, inRoom := range []bool{true, false} {
		c, err := Start(o, a)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Kill()
		params, first, last := descends(t, c, inRoom)
		if !(last < 0.6*first) {
			t.Errorf("in room %v: the loss of test rows is %v at first, then %v", inRoom, first, last)
		}
		ends = append(ends, params)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(ends[0], ends[1]) {
		t.Error("parameters in other memory become others")
	}
}

// descends takes 400 steps of a child, and returns the parameters, and the loss of 16 test rows before and after.
func descends(t *testing.T, c *Child, inRoom bool) (params []float32, first, last float64) {
	t.Helper()
	n := c.Shapes().Elements()
	params, grads := make([]float32, n), make([]float32, n)
	if inRoom {
		mem, err := c.Room(8 * n)
		if err != nil {
			t.Fatal(err)
		}
		both := (&region{mem: mem}).floats(0, 2*n)
		params, grads = both[:n], both[n:]
	}
	if err := c.Values(params); err != nil {
		t.Fatal(err)
	}
	views := func(of []float32) (v [][]float32) {
		for _, p := range c.Shapes().Params() {
			v, of = append(v, of[:p.N()]), of[p.N():]
		}
		return v
	}
	m, e := c.Model(Training), c.Model(Evaluation)
	m.Bind(views(params), views(grads))
	e.Bind(views(params), nil)
	test := make([]int32, evalMax)
	for i := range test {
		test[i] = int32(i)
	}
	loss := func() float64 {
		l, _, err := e.Eval(rowsOf(test...))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first = loss()
	for i := range int32(400) {
		var x dataset.Batch
		for k := range int32(batchMax) {
			x.Rows = append(x.Rows, i*batchMax+k)
		}
		x.N = len(x.Rows)
		if _, _, err := m.Forward(x, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.Backward(nil); err != nil {
			t.Fatal(err)
		}
		for j := range params {
			params[j] -= 0.3 / batchMax * grads[j]
		}
	}
	last = loss()
	return slices.Clone(params), first, last
}
