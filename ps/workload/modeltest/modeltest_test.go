package modeltest

import (
	"testing"

	"fluentps/ps/workload"
)

// Our own models are such models.
func TestOurModels(t *testing.T) {
	for _, name := range []string{"softmax", "mlp", "lenet", "logistic", "sparse_logistic", "matrix_factorization", "linear",
		"sparse_linear"} {
		e, _ := workload.Lookup(name)
		t.Run(name, func(t *testing.T) { Run(t, e) })
	}
}

// Models that predict classes also predict targets, with either loss.
func TestOurModelsOfTargets(t *testing.T) {
	for _, loss := range []string{workload.LossMSE, workload.LossHuber} {
		for _, name := range []string{"linear", "sparse_linear", "mlp", "lenet"} {
			e, _ := workload.Lookup(name)
			c := usual(e)
			c.Spec.Loss, c.Spec.Delta = loss, 0.7
			c.Data.Classes, c.Data.Regress.On = 0, true
			t.Run(name+" "+loss, func(t *testing.T) { Run(t, e, c) })
		}
	}
}
