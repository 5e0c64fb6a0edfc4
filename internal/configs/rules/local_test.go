package rules_test

import (
	"testing"

	"fluentps/internal/configs/configstest"
)

// Under a policy whose pushes count whole, a push is added whole whatever scheme makes it a version; a version of
// several pushes is their sum.
func TestPushesThatCountWholeAreAddedWhole(t *testing.T) {
	for _, k := range []struct {
		local, sync string
		want        float64
	}{
		{"policy: easgd", "scheme: asp", 1}, {"policy: easgd", "scheme: ssp, staleness: 2", 1},
		{"policy: easgd", "scheme: r2sp", 1}, {"policy: easgd", "scheme: asp, weight: 0.5", 0.5},
		{"policy: easgd", "scheme: bsp", 0}, {"policy: easgd", "scheme: softsync, q: 2", 0},
		{"policy: easgd", "scheme: rennala", 0}, {"policy: async_local", "scheme: ssp, staleness: 9", 1},
		{"policy: averaging", "scheme: asp", 0}, {"policy: averaging", "scheme: ssp, staleness: 2", 0}, {"policy: hpsgd", "scheme: asp", 0},
	} {
		c, _ := configstest.LocalSteps(t, k.local, "epochs: 4", k.sync)
		if got := c.Sync[0].Common.Weight; got != k.want {
			t.Errorf("local: {%s}, %s: weight %v, want %v", k.local, k.sync, got, k.want)
		}
	}
}
