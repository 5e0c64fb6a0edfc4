package workload

import "time"

// Cost is the computing time of an iteration by its batch, C(b) = a + c·b.
type Cost struct {
	Fixed     time.Duration // a
	PerSample time.Duration // c
}

// Of returns the time of an iteration of b samples.
func (c Cost) Of(b int) time.Duration { return c.Fixed + time.Duration(b)*c.PerSample }
