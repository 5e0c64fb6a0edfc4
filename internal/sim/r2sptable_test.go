package sim_test

import (
	"fmt"
	"testing"

	"fluentps/internal/sim/simtest"
	"fluentps/tests/pagetest"
)

// The table of what the network costs under r2sp is what is simulated; the tests beside this one hold its rows to the formulas.
func TestR2SPTableOfTheNetwork(t *testing.T) {
	made := "| servers | x | bsp | r2sp |\n|---|---|---|---|\n"
	for _, c := range []struct {
		servers int
		bytes   int64 // of the model; 1 GB takes 1 s
	}{{1, 20_000_000}, {1, 50_000_000}, {1, 200_000_000}, {2, 50_000_000}, {2, 200_000_000}, {2, 600_000_000}} {
		round := func(scheme string) float64 {
			from, _ := starts(t,
				simtest.Setting{Workers: 8, Servers: c.servers, Scheme: scheme, Iterations: 300, Bytes: c.bytes, Compute: "1s",
					Set: []string{"simulate.network.bandwidth=1GB"}})
			return roundTime(from)
		}
		made += fmt.Sprintf("| %d | %.3g | %.3f | %.3f |\n", c.servers, float64(c.bytes)/1e9/float64(c.servers), round("bsp"), round("r2sp"))
	}
	pagetest.Table(t, *update, "ps/scheme/R2SP.md", "go test ./internal/sim -run TestR2SPTableOfTheNetwork -update", made, 0)
}
