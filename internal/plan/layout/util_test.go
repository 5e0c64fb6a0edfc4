package layout

import (
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/ps/workload"
)

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, set...)
}

// cached reads each data set once for all tests.
func cached(spec workload.DataSpec) (*workload.Set, error) { return configstest.Data(spec) }
