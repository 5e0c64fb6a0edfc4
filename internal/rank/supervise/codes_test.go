package supervise

import (
	"testing"

	"fluentps/internal/rank/station"
)

// After a supervised start 2 is a fatal error of the Go runtime, and never chosen by the run, which exits with
// CodeRefused instead.
func TestEndingOf(t *testing.T) {
	for launcher, want := range map[int]ending{
		0:                  {code: 1},
		1:                  {code: 1},
		2:                  {code: 134, rankLost: true},
		3:                  {code: 1},
		station.CodeStall:  {code: 4, rankLost: true},
		station.CodeTarget: {code: 5, byRun: true},
		station.CodeAgain:  {code: 75, byRun: true},
		CodeRefused:        {code: 2, byRun: true},
		127:                {code: 1}, // no such program
		134:                {code: 134, rankLost: true},
		137:                {code: 137, rankLost: true},
		205:                {code: 205, rankLost: true}, // mpirun, for a host that it cannot reach
		255:                {code: 255, rankLost: true},
	} {
		if got := endingOf(launcher); got != want {
			t.Errorf("%d: %+v, want %+v", launcher, got, want)
		}
	}
}
