package check

import (
	"testing"

	"fluentps/internal/sim"
)

// checked makes a run and its checker, for a test that breaks a law.
func checked(t testing.TB, o sim.Options) (*sim.Simulation, *checker) {
	t.Helper()
	var c *checker
	o.Observer = func(s *sim.Simulation) (_ sim.Observer, err error) {
		c, err = newChecker(s)
		return c, err
	}
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}
