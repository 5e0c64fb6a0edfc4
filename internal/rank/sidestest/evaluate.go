package sidestest

import (
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
)

// OnTestSet evaluates a model with these parameters on all test rows: the mean loss, and the share that it classifies correctly.
func OnTestSet(t testing.TB, c *configs.Config, parameters []float32) (loss, share float64) {
	t.Helper()
	set, err := configstest.Data(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	n, cols := set.Test.Rows(), set.Test.Cols()
	m, err := workload.NewModel(c.ModelSpec(), set.Samples(), cpu.New(1), n)
	if err != nil {
		t.Fatal(err)
	}
	var views [][]float32
	for _, p := range configstest.Params(t, c.ModelSpec(), set.Samples()) {
		views, parameters = append(views, parameters[:p.N()]), parameters[p.N():]
	}
	m.Bind(views, nil)
	b := workload.Batch{X: make([]float32, n*cols), Y: make([]int32, n), N: n, Cols: cols}
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	set.Test.Fill(b.X, b.Y, rows)
	loss, correct, err := m.Eval(b)
	if err != nil {
		t.Fatal(err)
	}
	return loss / float64(n), float64(correct) / float64(n)
}
