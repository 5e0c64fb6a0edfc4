package calibrate_test

import (
	"testing"

	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// run runs a setting under all checks.
func run(t testing.TB, c simtest.Setting) *sim.Result {
	t.Helper()
	r, err := check.Run(c.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
