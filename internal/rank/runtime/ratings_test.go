package runtime

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
)

// Matrix factorization learns down to the noise of its data under schemes that fold in any order. Its loss is a mean
// squared error, and no output mentions an accuracy.
func TestMatrixFactorizationLearnsUnderAnyScheme(t *testing.T) {
	learns(t)
	for _, rule := range []string{"bsp", "ssp, staleness: 3", "asp", "ssp, staleness: 3, push: delta, cache: true"} {
		t.Run(rule, func(t *testing.T) {
			c := load(t, "data={set: generated_ratings, rows: 4000, test_rows: 1000, matrix: {rows: 50, columns: 40, rank: 3, noise: 0.1}}",
				"model={name: matrix_factorization, rank: 3}", "train.batch_per_worker=20", "train.optimizer={name: sgd, lr: 2}",
				"train.schedule={name: cosine, over: 1500, floor: 0.05}", "train.stop={epochs: 30}", "evaluate.every_epochs=10",
				fmt.Sprintf(`sync=[{match: "*", scheme: %s}]`, rule))
			s := trainTogether(t, c).Summary
			if s.TestAccuracy != nil || s.TestRMSE == nil || s.TestLoss == nil || len(s.Evaluations) < 3 {
				t.Fatalf("accuracy %v, RMSE %v, loss %v, %d evaluations", s.TestAccuracy, s.TestRMSE, s.TestLoss, len(s.Evaluations))
			}
			rmse := float64(*s.TestRMSE)
			if math.Abs(rmse*rmse-float64(*s.TestLoss)) > 1e-12 || s.Evaluations[len(s.Evaluations)-1].TestAccuracy != nil {
				t.Errorf("RMSE %g of loss %g", rmse, float64(*s.TestLoss))
			}
			spread := spreadOfRatings(t, c)
			if mae, r2 := float64(*s.TestMAE), float64(*s.TestR2); mae <= 0 || mae >= rmse || math.Abs(r2-(1-rmse*rmse/spread)) > 1e-6 {
				t.Errorf("MAE %g and R2 %g of RMSE %g, and variance %g of the values", mae, r2, rmse, spread)
			}
			// Least squares with 270 parameters and 4,000 ratings of noise 0.1: about 0.1 * sqrt(1 + 270/4000).
			t.Logf("%s: test RMSE %.4f", rule, rmse)
			if rmse > 0.12 || rmse < 0.09 {
				t.Errorf("test RMSE %.4f, the noise is 0.1", rmse)
			}
			var text strings.Builder
			if err := metrics.WriteText(&text, s, metrics.TextWidth); err != nil || strings.Contains(text.String(), "ccuracy") {
				t.Errorf("error %v; an accuracy in\n%s", err, text.String())
			}
		})
	}
}

// spreadOfRatings is the variance of the test ratings.
func spreadOfRatings(t *testing.T, c *configs.Config) float64 {
	t.Helper()
	set, err := configstest.Data(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	n := set.Test.Rows()
	x, y, rows := make([]float32, 3*n), make([]int32, n), make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	set.Test.Fill(x, y, rows)
	var sum, squares float64
	for i := range n {
		sum += float64(x[3*i+2])
	}
	for i := range n {
		d := float64(x[3*i+2]) - sum/float64(n)
		squares += d * d
	}
	return squares / float64(n)
}

// A run that fails before the first evaluation does not mention an accuracy either.
func TestNoAccuracyOfRatingsWithoutAnEvaluation(t *testing.T) {
	c := load(t, "data={set: generated_ratings, rows: 400, test_rows: 100}", "model={name: matrix_factorization}",
		"train.optimizer={name: sgd, lr: 1e30}", "train.stop={epochs: 30}")
	s := trainTogether(t, c).Summary
	var text strings.Builder
	if err := metrics.WriteText(&text, s, metrics.TextWidth); err != nil || !strings.HasPrefix(s.Finished, "diverged") ||
		!strings.Contains(text.String(), "test loss -, test RMSE -, test MAE -, test R2 -") {
		t.Errorf("error %v; finished %q; no RMSE in\n%s", err, s.Finished, text.String())
	}
}

// An L1 penalty leaves weights at exactly 0 under every placement of the step, and the summary counts them.
func TestL1LeavesZeros(t *testing.T) {
	zeros := func(set ...string) int64 {
		c := load(t, append([]string{"data={set: generated, rows: 480, test_rows: 200, features: 20, classes: 2}",
			"model={name: sparse_logistic}", "train.stop={epochs: 20}"}, set...)...)
		res := trainTogether(t, c)
		n := int64(0)
		for _, v := range res.Parameters {
			if v == 0 {
				n++
			}
		}
		if got := res.Summary.Sparsity; c.Train.Optimizer.L1 > 0 &&
			(got == nil || got.Zeros != n || got.Parameters != 21) || c.Train.Optimizer.L1 == 0 && got != nil {
			t.Errorf("%v: the summary has %+v, and %d of %d parameters are 0", set, got, n, len(res.Parameters))
		}
		return n
	}
	if n := zeros("train.optimizer={name: sgd, lr: 0.1}"); n != 0 {
		t.Errorf("%d zeros without l1", n)
	}
	for _, rule := range []string{"bsp", "ssp, staleness: 2"} {
		few := zeros("train.optimizer={name: sgd, lr: 0.1, l1: 0.15}", fmt.Sprintf(`sync=[{match: "*", scheme: %s}]`, rule))
		all := zeros("train.optimizer={name: sgd, lr: 0.1, l1: 10}", fmt.Sprintf(`sync=[{match: "*", scheme: %s}]`, rule))
		if few < 1 || few > 15 || all != 20 { // the bias has no penalty
			t.Errorf("%s: %d zeros with l1 0.15, %d with 10; want some, and all 20 weights", rule, few, all)
		}
	}
}
