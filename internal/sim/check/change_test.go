package check

import (
	"strings"
	"testing"

	"fluentps/internal/sim/simtest"
)

// The checkers of announced changes are broken on purpose.
func TestCheckersDetectBrokenAnnouncements(t *testing.T) {
	for want, spoil := range map[string]func(c *checker){
		"the first to hear of a change":           func(c *checker) { c.letInto = 1000 },
		"but the change is announced behind":      func(c *checker) { c.announced = 3 },
		"has changed its scheme 2 times, but its": func(c *checker) { c.shards[1].changed = 1 },
	} {
		s, c := checked(t, simtest.Setting{Workers: 4, Servers: 2, Scheme: "bsp", Iterations: 300, Set: []string{
			`sync=[{match: "*", schemes: [{scheme: bsp, until: {straggler: shows}}, {scheme: asp, until: {straggler: gone}}]}]`,
			"faults=[{worker: 3, slow: {factor: 5, from: 20, until: 60}}]"}}.Options(t))
		spoil(c)
		if _, err := s.Run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
