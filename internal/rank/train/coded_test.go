package train_test

import (
	"fmt"
	"strings"
	"testing"
)

// Decoded, an iteration has the gradient of bsp, whoever was slow, and counts its samples.
func TestCodedGradientsAreThoseOfBSP(t *testing.T) {
	for _, placement := range []string{"spread", "colocate"} {
		set := []string{"cluster={servers: 2, placement: " + placement + "}", "model={name: mlp, layers: [6]}",
			"shards.slice=layer", "train.stop={updates: 12}", withoutMemory}
		ranks := map[string]int{"spread": 6, "colocate": 4}[placement]
		plain := mustTrain(t, load(t, set...), ranks)
		for _, c := range []struct {
			code  string
			error float64
		}{
			{"stragglers: 0", 1e-5},
			{"stragglers: 1", 1e-5},
			{"kind: cyclic, stragglers: 1", 1e-4},
			{"kind: cyclic, stragglers: 2", 1e-3},
			{"stragglers: 3", 1e-5},
			{"stragglers: 1, deadline: 1h", 1e-5},
			{"stragglers: 1, alpha: 3", 1e-5},
			{"kind: cyclic, stragglers: 1, alpha: 1.5", 1e-4},
			{"kind: cyclic, stragglers: 2, alpha: 2, deadline: 1h", 1e-3},
		} {
			t.Run(placement+" "+c.code, func(t *testing.T) {
				set := append([]string{fmt.Sprintf("work={policy: coded, micro: 4, code: {%s}}", c.code), "sync=[{match: '*', scheme: coded}]"}, set...)
				if !strings.Contains(c.code, ": 0") {
					set = append(set, "faults=[{worker: 1, slow: {sleep: 3ms}}]")
				}
				got := mustTrain(t, load(t, set...), ranks)
				if d := distance(plain.Parameters, got.Parameters); d > c.error {
					t.Errorf("a parameter is off by %g, want at most %g", d, c.error)
				}
				if got.Committed() != plain.Committed() {
					t.Errorf("%d samples, want %d", got.Committed(), plain.Committed())
				}
			})
		}
	}
}
