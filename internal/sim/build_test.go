package sim_test

import (
	"runtime"
	"testing"

	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
)

// What a simulation allocates before it runs grows with the number of workers, and not with its square: ten thousand workers are built
// in the time of a few steps.
func TestBuildingGrowsWithTheWorkers(t *testing.T) {
	per := func(workers int) float64 {
		o := simtest.Setting{Workers: workers, Servers: 4, Scheme: "bsp", Iterations: 1, Bytes: 65_000}.Options(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := sim.New(o); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(workers)
	}
	few, many := per(200), per(3200)
	t.Logf("%.0f and %.0f bytes a worker", few, many)
	if many > 1.5*few {
		t.Errorf("200 workers allocate %.0f bytes each, 3200 workers %.0f", few, many)
	}
}
