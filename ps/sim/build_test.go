package sim

import (
	"runtime"
	"testing"
)

// What a simulation allocates before it runs grows with the number of workers, and not with its square: ten thousand workers are built
// in the time of a few steps.
func TestBuildingGrowsWithTheWorkers(t *testing.T) {
	per := func(workers int) float64 {
		o := setting{workers: workers, servers: 4, scheme: "bsp", iterations: 1, bytes: 65_000}.options(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := newSimulation(o); err != nil {
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
