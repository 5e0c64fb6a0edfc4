package coordinate_test

import (
	"math"
	"strings"
	"testing"

	"fluentps/internal/configs"
)

// A run makes as many updates of a shard as plan says, give or take those in flight when the budget is used up; under bsp
// exactly as many.
func TestARunIsAsLongAsPlanSays(t *testing.T) {
	const workers = 4
	for _, rule := range []string{
		"scheme: bsp", "scheme: ssp, staleness: 2", "scheme: ssp, staleness: 2, fold: rank", "scheme: asp",
		"scheme: softsync, q: 3", "scheme: drop, required: 3", "scheme: r2sp",
	} {
		for _, stop := range []string{"samples: 1600", "epochs: 2", "updates: 41"} {
			c := load(t, "sync=[{match: '*', "+rule+"}]", "train.stop={"+stop+"}")
			s := mustTrain(t, c, workers+2).Summary
			n := c.Length(configs.Facts{Workers: workers, Computes: workers, Servers: 2, Rows: 480, Lead: 1})
			ph := c.Sync[0].Phases()[0]
			slack := 2.0 * workers // pushes in flight
			switch {
			case rule == "scheme: bsp":
				slack = 0
			case strings.Contains(rule, "drop"):
				slack = n.Iterations / 3 // without a straggler all four are on time
			}
			if want := ph.Versions(n, workers); math.Abs(float64(s.Updates)-want) > slack {
				t.Errorf("%s, %s: %d versions, want %v", rule, stop, s.Updates, want)
			}
			if i := float64(s.Iterations); math.Abs(i-n.Iterations) > slack && !strings.Contains(rule, "drop") {
				t.Errorf("%s, %s: %v iterations, want %v", rule, stop, i, n.Iterations)
			}
		}
	}
}
