package layout

import (
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, set...)
}

// cached reads each data set once for all tests.
func cached(spec workload.DataSpec) (*dataset.Set, error) { return configstest.Data(spec) }
