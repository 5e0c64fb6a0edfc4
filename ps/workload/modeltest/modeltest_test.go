package modeltest

import (
	"testing"

	"fluentps/ps/workload"
)

// Our own models are such models.
func TestOurModels(t *testing.T) {
	for _, name := range []string{"softmax", "mlp", "lenet", "logistic", "sparse_logistic", "matrix_factorization"} {
		e, _ := workload.Lookup(name)
		t.Run(name, func(t *testing.T) { Run(t, e) })
	}
}
