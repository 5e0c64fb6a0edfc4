package optim

import (
	"fmt"
	"math"
	"strings"
)

// Schedule scales the learning rate over iterations. All iteration numbers count a shard's own clock:
// accepted pushes / N, so BSP's versions.
type Schedule struct {
	Name   string  // one of ScheduleNames()
	Every  int64   // step: iterations between two drops; 0: At is used
	At     []int64 // step: the iterations at which the rate drops, increasing
	Factor float64 // step: multiplies the rate at each drop
	WarmUp int64   // iterations of linear warm-up, for every schedule; 0: none
}

var scheduleNames = []string{"constant", "step"}

// ScheduleNames lists the schedules that Scale knows.
func ScheduleNames() []string { return append([]string(nil), scheduleNames...) }

// Check reports the first value that is out of its range, or a name that is not known.
func (s Schedule) Check() error {
	if s.WarmUp < 0 {
		return fmt.Errorf("schedule warm_up %d is negative; use 0 for none, or a number of iterations", s.WarmUp)
	}
	switch s.Name {
	case "constant":
		return nil
	case "step":
		return s.checkStep()
	}
	return fmt.Errorf("schedule name %q is not known; use one of %s", s.Name, strings.Join(scheduleNames, ", "))
}

func (s Schedule) checkStep() error {
	switch {
	case !(s.Factor > 0) || math.IsInf(s.Factor, 0):
		return fmt.Errorf("schedule factor %v is out of range; use a number greater than 0, such as 0.1", s.Factor)
	case s.Every < 0:
		return fmt.Errorf("schedule every %d is negative; use a number of iterations", s.Every)
	case (s.Every > 0) == (len(s.At) > 0):
		return fmt.Errorf("schedule step has every %d and %d values in at; set exactly one of the two", s.Every, len(s.At))
	}
	for i, at := range s.At {
		if at < 0 || i > 0 && at <= s.At[i-1] {
			return fmt.Errorf("schedule at: value %d at place %d; use iterations of 0 or more in increasing order", at, i)
		}
	}
	return nil
}

// Scale is the factor on the learning rate at iteration iter (>= 0; fractional where single pushes are
// applied). A schedule that fails Check panics.
//
// During warm-up the factor grows linearly, (iter+1)/WarmUp, and reaches 1 in the last iteration of it
// (Goyal et al. 2017, section 2.2, "gradual warmup"); it is never 0, so the first push is not wasted. Drops
// count from iteration 0, as in PyTorch's StepLR and MultiStepLR.
func (s Schedule) Scale(iter float64) float64 {
	scale := 1.0
	if s.WarmUp > 0 {
		scale = min(1, (iter+1)/float64(s.WarmUp))
	}
	switch s.Name {
	case "constant":
		return scale
	case "step":
		return scale * math.Pow(s.Factor, s.drops(iter))
	}
	panic("optim: schedule " + s.Name + " was not checked")
}

// drops counts the drops at or before iter.
func (s Schedule) drops(iter float64) float64 {
	if s.Every > 0 {
		return math.Floor(iter / float64(s.Every))
	}
	n := 0
	for n < len(s.At) && float64(s.At[n]) <= iter {
		n++
	}
	return float64(n)
}
