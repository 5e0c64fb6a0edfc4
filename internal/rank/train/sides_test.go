package train_test

import (
	"math"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/rank/sidestest"
	"fluentps/ps/workload/dataset"
)

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, append([]string{"evaluate.every_epochs=0"}, set...)...)
}

// cached reads each data set once for all tests.
func cached(spec dataset.Spec) (*dataset.Set, error) { return configstest.Data(spec) }

// mustTrain trains with the sides of so many ranks.
func mustTrain(t testing.TB, c *configs.Config, ranks int) *sidestest.Result {
	t.Helper()
	return sidestest.Train(t, c, ranks, sidestest.Options{})
}

// trainOn trains with a rank for each letter of hosts.
func trainOn(t testing.TB, hosts string, c *configs.Config) *sidestest.Result {
	t.Helper()
	return sidestest.Train(t, c, len(hosts), sidestest.Options{Hosts: hosts})
}

// relative is the norm of the difference of two parameter vectors over the norm of the second.
func relative(got, want []float32) float64 {
	var diff, norm float64
	for e := range want {
		d := float64(got[e]) - float64(want[e])
		diff += d * d
		norm += float64(want[e]) * float64(want[e])
	}
	return math.Sqrt(diff / norm)
}

// atMost fails if two vectors are further apart.
func atMost(t *testing.T, got, want []float32, limit float64) {
	t.Helper()
	if rel := relative(got, want); !(rel <= limit) || len(got) != len(want) {
		t.Errorf("relative difference %.3g over %d parameters, the limit is %g", rel, len(want), limit)
	}
}

// distance is the largest difference of two parameters.
func distance(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

// withoutMemory makes ranks send messages to each other, as a work policy needs.
const withoutMemory = "cluster.shared_memory=off"
