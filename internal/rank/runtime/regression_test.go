package runtime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/show/metrics"
)

// houses writes a file of rows x1,x2,x3,price, whose prices are large and noisy, and returns the rows.
func houses(t *testing.T, rows int, seed uint64) (path string, all [][4]float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	var b strings.Builder
	b.WriteString("x1,x2,x3,price\n")
	for range rows {
		x := [4]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		x[3] = 2e5 + 5e4*x[0] - 3e4*x[1] + 1e4*r.NormFloat64()
		for i := range x {
			x[i] = float64(float32(x[i]))
		}
		fmt.Fprintf(&b, "%v,%v,%v,%v\n", x[0], x[1], x[2], x[3])
		all = append(all, x)
	}
	path = filepath.Join(t.TempDir(), fmt.Sprintf("h%d.csv", seed))
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path, all
}

// descend is the dumb second implementation: so many steps of gradient descent on all rows, in float64. It returns three weights and a
// bias.
func descend(rows [][4]float64, mean, deviation, delta, rate float64, steps int) (w [4]float64) {
	for range steps {
		var g [4]float64
		for _, x := range rows {
			e := w[0]*x[0] + w[1]*x[1] + w[2]*x[2] + w[3] - (x[3]-mean)/deviation
			d := 2 * e
			if delta > 0 {
				d = max(-delta, min(delta, e))
			}
			for i := range 3 {
				g[i] += d * x[i]
			}
			g[3] += d
		}
		for i := range w {
			w[i] -= rate * g[i] / float64(len(rows))
		}
	}
	return w
}

// A run of linear regression is gradient descent, whatever the loss and the model, and its metrics are those of its parameters, in the unit
// of the files.
func TestLinearRegressionIsThatOfFloat64(t *testing.T) {
	train, rows := houses(t, 400, 1)
	test, unseen := houses(t, 150, 2)
	var sum, squares float64
	for _, x := range rows {
		sum += x[3]
	}
	mean := sum / 400
	for _, x := range rows {
		squares += (x[3] - mean) * (x[3] - mean)
	}
	deviation := math.Sqrt(squares / 400)
	const rate, steps = 0.05, 120
	for _, model := range []string{"name: linear, loss: mse", "name: sparse_linear", "name: linear, loss: huber, huber_delta: 0.5",
		"name: sparse_linear, loss: huber, huber_delta: 0.5"} {
		delta := 0.0
		if strings.Contains(model, "huber") {
			delta = 0.5
		}
		c := load(t, fmt.Sprintf("data={set: csv, path: %s, test: %s, label: price, task: regress, targets: standardize}", train, test),
			"model={"+model+"}", "train.batch_per_worker=100", fmt.Sprintf("train.optimizer={name: sgd, lr: %g}", rate),
			"train.schedule={name: constant}", fmt.Sprintf("train.stop={updates: %d, target: 0.9999}", steps),
			"evaluate={where: online, every_epochs: 40}",
			`sync=[{match: "*", scheme: bsp}]`)
		res := trainTogether(t, c)
		want, s := descend(rows, mean, deviation, delta, rate, steps), res.Summary
		for i, w := range want {
			if got := float64(res.Parameters[i]); math.Abs(got-w) > 2e-5 {
				t.Errorf("%s: parameter %d is %v, want %v", model, i, got, w)
			}
		}
		var mse, mae, spread, total float64
		for _, x := range unseen {
			e := want[0]*x[0] + want[1]*x[1] + want[2]*x[2] + want[3] - (x[3]-mean)/deviation
			mse, mae, total = mse+e*e/150, mae+math.Abs(e)/150, total+x[3]/150
		}
		for _, x := range unseen {
			spread += (x[3] - total) * (x[3] - total) / 150
		}
		for name, of := range map[string][2]float64{
			"MSE": {float64(*s.TestMSE), mse * deviation * deviation}, "RMSE": {float64(*s.TestRMSE), math.Sqrt(mse) * deviation},
			"MAE": {float64(*s.TestMAE), mae * deviation}, "R2": {float64(*s.TestR2), 1 - mse*deviation*deviation/spread},
		} {
			if math.Abs(of[0]/of[1]-1) > 1e-3 {
				t.Errorf("%s: %s is %v, want %v", model, name, of[0], of[1])
			}
		}
		if loss := float64(*s.TestLoss); delta == 0 && math.Abs(loss/mse-1) > 1e-3 || s.TestAccuracy != nil || s.TargetReachedS != nil {
			t.Errorf("%s: test loss %v for the standardized error %v, accuracy %v, target reached at %v", model, loss, mse, s.TestAccuracy,
				s.TargetReachedS)
		}
		if c := float64(*s.ConstantLoss); delta == 0 && math.Abs(c-spread/deviation/deviation) > 1e-3*c || c <= float64(*s.TestLoss) {
			t.Errorf("%s: a constant has the loss %v, the run %v", model, c, float64(*s.TestLoss))
		}
		var text strings.Builder
		if err := metrics.WriteText(&text, s, metrics.TextWidth); err != nil || strings.Contains(text.String(), "ccuracy") ||
			!strings.Contains(text.String(), "target R2 0.9999 not reached (best 0.9") {
			t.Errorf("error %v; an accuracy, or no target, in\n%s", err, text.String())
		}
	}
}

// A network predicts numbers under schemes that fold in any order.
func TestANetworkPredictsNumbers(t *testing.T) {
	learns(t)
	for _, rule := range []string{"bsp", "ssp, staleness: 3", "asp"} {
		set := []string{"data={set: generated, task: regress, rows: 2000, test_rows: 500, features: 8}", "model={name: mlp, layers: [16]}",
			"train.batch_per_worker=10", "train.optimizer={name: momentum, lr: 0.02}", "train.schedule={name: constant}",
			"train.stop={epochs: 20}", fmt.Sprintf(`sync=[{match: "*", scheme: %s}]`, rule)}
		s := trainTogether(t, load(t, set...)).Summary
		t.Logf("%s: R2 %.4f", rule, float64(*s.TestR2))
		if r2 := float64(*s.TestR2); r2 < 0.93 || r2 > 0.9925 { // the noise leaves 1 - 0.01/1.01
			t.Errorf("%s: R2 %v", rule, r2)
		}
		set = append(set, "evaluate={where: online, every_epochs: 1}", "train.stop.target=0.9")
		s = trainTogether(t, load(t, set...)).Summary
		hit := slices.ContainsFunc(s.Evaluations, func(e metrics.Evaluation) bool { return e.TestR2 != nil && *e.TestR2 >= 0.9 })
		if s.TargetReachedS == nil || s.Samples >= 40000 || !hit { // the steps that were in flight then may leave it again
			t.Errorf("%s: target 0.9 reached at %v after %d samples, by an evaluation: %t", rule, s.TargetReachedS, s.Samples, hit)
		}
	}
}
