package timeline

import (
	"fmt"
	"time"
)

// Clock is how well the clock of a rank is known, against that of rank 0. Hosts have clocks of their own; their offset was measured before
// training, by asking rank 0 for its time, and is in every time of the rank. Half of the fastest round trip bounds its error.
type Clock struct {
	Aligned bool
	Error   time.Duration // bound of the error of the rank's times; 0: one clock for both
	// Drift is what the rank's clock gained on rank 0's until the measurement at Measured, which corrects it: as if it went evenly.
	Drift    time.Duration
	Began    time.Duration // the first measurement
	Measured time.Duration // 0: there was no second one
	Why      string        // the clock is not aligned
}

// Measure is the clock of a rank after a second measurement, at now, which found that much drift. Each measurement
// has an error of its own; a drift within both is none.
func (c Clock) Measure(drift, bound, now time.Duration) Clock {
	if drift.Abs() > c.Error+bound {
		c.Drift = drift
	}
	c.Error, c.Measured = max(c.Error, bound), now
	return c
}

// errorShare is the part of an iteration that the error of an aligned clock may have: with more, arrows would point back.
const errorShare = 10

// Align decides whether the times of a rank can be compared with those of other hosts, given the mean time of an iteration; 0: not known.
func (c *Clock) Align(iteration time.Duration) {
	c.Aligned = c.Error == 0 || iteration == 0 || c.Error <= iteration/errorShare
	if !c.Aligned {
		c.Why = fmt.Sprintf("its error of up to %v is more than a tenth of an iteration, which takes %v",
			c.Error.Round(time.Microsecond/10), iteration.Round(time.Microsecond/10))
	}
}

// At is a time of the rank on rank 0's clock.
func (c *Clock) At(t time.Duration) time.Duration {
	if c.Measured <= c.Began || c.Drift == 0 {
		return t
	}
	return t - time.Duration(float64(c.Drift)*(float64(t-c.Began)/float64(c.Measured-c.Began)))
}

// Text says it in a few words.
func (c *Clock) Text() string {
	switch {
	case !c.Aligned:
		return "clock not aligned: no arrows"
	case c.Error == 0:
		return "the clock of rank 0"
	case c.Measured == 0:
		return fmt.Sprintf("clock within %v at the start, drift not known", c.Error.Round(time.Microsecond/10))
	}
	return fmt.Sprintf("clock within %v", c.Error.Round(time.Microsecond/10))
}

// fields are the same for programs, as members of a JSON object.
func (c *Clock) fields() string {
	b := fmt.Appendf(nil, `"aligned":%v,"error_us":`, c.Aligned)
	b = appendMicros(b, c.Error)
	b = appendMicros(append(b, `,"drift_us":`...), c.Drift)
	b = fmt.Appendf(b, `,"drift_known":%v`, c.Measured > 0 || c.Error == 0)
	if c.Why != "" {
		b = append(b, `,"why":`+quoted(c.Why)...)
	}
	return string(b)
}
