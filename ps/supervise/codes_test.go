package supervise

import (
	"testing"

	"fluentps/ps/station"
)

// Of a start that is supervised 2 is a fatal error of the Go runtime, and never the word of the run, which says it otherwise.
func TestEndingOf(t *testing.T) {
	for launcher, want := range map[int]ending{
		0:                  {code: 1},
		1:                  {code: 1},
		2:                  {code: 134, lost: true},
		3:                  {code: 1},
		station.CodeStall:  {code: 4, lost: true},
		station.CodeTarget: {code: 5, said: true},
		station.CodeAgain:  {code: 75, said: true},
		CodeRefused:        {code: 2, said: true},
		127:                {code: 1}, // no such program
		134:                {code: 134, lost: true},
		137:                {code: 137, lost: true},
		205:                {code: 205, lost: true}, // mpirun, of a host that it cannot reach
		255:                {code: 255, lost: true},
	} {
		if got := endingOf(launcher); got != want {
			t.Errorf("%d: %+v, want %+v", launcher, got, want)
		}
	}
}
