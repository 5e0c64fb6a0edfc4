package optim

import (
	"fmt"
	"math"
	"strings"
)

// Schedule scales the learning rate over iterations. All iteration numbers count a shard's own clock:
// accepted pushes / N, so BSP's versions.
type Schedule struct {
	Name   string  `yaml:"name" values:"@schedules" doc:"how the learning rate changes over iterations"`
	Every  int64   `yaml:"every,omitempty" min:"1" when:"name=step" doc:"iterations between two drops; or at"`
	At     []int64 `yaml:"at,omitempty" min:"1" items:"1" when:"name=step" doc:"iterations at which the rate drops; or every"`
	Factor float64 `yaml:"factor" above:"0" when:"name=step" as:"float32" doc:"multiplies the rate at each drop"`
	Over   int64   `yaml:"over,required" min:"1" when:"name=cosine,poly,one_cycle" doc:"iterations after warm-up in which the rate falls to its floor; it stays there; one_cycle: iterations of the whole cycle"`
	Floor  float64 `yaml:"floor" min:"0" below:"1" when:"name=cosine,poly,one_cycle" as:"float32" doc:"share of lr that the rate ends at; 0: nothing is learnt after over"`
	Start  float64 `yaml:"start" above:"0" max:"1" when:"name=one_cycle" as:"float32" doc:"share of lr that the rate begins with"`
	Rise   float64 `yaml:"rise" above:"0" below:"1" when:"name=one_cycle" as:"float32" doc:"share of over in which the rate rises to lr; in the rest it falls to its floor"`
	Power  float64 `yaml:"power" above:"0" when:"name=poly,inv" doc:"poly: the rate falls as this power of the share of over that remains, 1 is linearly; inv: it is divided by this power of 1 + gamma * iterations, 0.75 unless set, and 0.5 with gamma 1 is 1/sqrt(t)"`
	Gamma  float64 `yaml:"gamma" above:"0" when:"name=inv" doc:"inv: what each iteration after warm-up adds to the divisor"`
	WarmUp int64   `yaml:"warm_up" min:"0" when:"name=constant,step,cosine,poly,inv" doc:"iterations of linear warm-up; 0: none"`
}

// ScheduleDefaults leaves the rate as it is.
func ScheduleDefaults() Schedule {
	return Schedule{Name: "constant", Factor: 0.1, Power: 2, Gamma: 1e-4, Start: 0.04, Rise: 0.3}
}

const oneCycle = "one_cycle"

var scheduleNames = []string{"constant", "step", "cosine", "poly", "inv", oneCycle}

// ScheduleNames lists the schedules that Scale knows.
func ScheduleNames() []string { return append([]string(nil), scheduleNames...) }

// Falls says whether the rate falls to its floor within Over iterations, and stays there.
func (s Schedule) Falls() bool { return s.Name == "cosine" || s.Name == "poly" || s.Name == oneCycle }

// Check reports an unknown name, or the first value that is out of its range.
func (s Schedule) Check() error {
	if s.WarmUp < 0 {
		return fmt.Errorf("schedule warm_up %d is negative; use 0 for none, or a number of iterations", s.WarmUp)
	}
	switch s.Name {
	case "constant":
		return nil
	case "step":
		return s.checkStep()
	case "cosine", "poly":
		return s.checkDecay()
	case "inv":
		return s.checkInv()
	case oneCycle:
		return s.checkCycle()
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

func (s Schedule) checkDecay() error {
	switch {
	case s.Over < 1:
		return fmt.Errorf("schedule over %d is out of range; use the iterations, 1 or more, in which the rate falls to its floor", s.Over)
	case !(s.Floor >= 0 && s.Floor < 1):
		return fmt.Errorf("schedule floor %v is out of range; use at least 0 and less than 1, such as 0.01", s.Floor)
	case s.Name == "poly" && (!(s.Power > 0) || math.IsInf(s.Power, 0)):
		return fmt.Errorf("schedule power %v is out of range; use a number greater than 0, such as 2", s.Power)
	}
	return nil
}

func (s Schedule) checkInv() error {
	switch {
	case !(s.Gamma > 0) || math.IsInf(s.Gamma, 0):
		return fmt.Errorf("schedule gamma %v is out of range; use a number greater than 0, such as 1e-4", s.Gamma)
	case !(s.Power > 0) || math.IsInf(s.Power, 0):
		return fmt.Errorf("schedule power %v is out of range; use a number greater than 0, such as 0.75", s.Power)
	}
	return nil
}

func (s Schedule) checkCycle() error {
	switch {
	case s.Over < 2:
		return fmt.Errorf("schedule over %d is out of range; use the iterations of the cycle, 2 or more", s.Over)
	case s.WarmUp > 0:
		return fmt.Errorf("schedule warm_up %d: one_cycle begins with a rise of its own; leave warm_up out", s.WarmUp)
	case !(s.Start > 0 && s.Start <= 1):
		return fmt.Errorf("schedule start %v is out of range; use more than 0 and at most 1, such as 0.04", s.Start)
	case !(s.Rise > 0 && s.Rise < 1):
		return fmt.Errorf("schedule rise %v is out of range; use more than 0 and less than 1, such as 0.3", s.Rise)
	case !(s.Floor >= 0 && s.Floor < 1):
		return fmt.Errorf("schedule floor %v is out of range; use at least 0 and less than 1, such as 4e-6", s.Floor)
	}
	return nil
}

// Scale is the factor on the learning rate at iteration iter (>= 0; fractional if single pushes are applied). A schedule that
// fails Check panics.
//
// During warm-up the factor grows linearly, (iter+1)/WarmUp, and reaches 1 in the last iteration of it
// (Goyal et al. 2017, section 2.2, "gradual warmup"); it is never 0, so the first push is not wasted. Drops
// count from iteration 0, as in PyTorch's StepLR and MultiStepLR.
//
// After warm-up, with t the share of Over that has passed, at most 1:
//
//	cosine  floor + (1-floor) * (1 + cos(pi*t))/2   Loshchilov and Hutter (ICLR 2017), equation 5, without restarts
//	poly    floor + (1-floor) * (1-t)^power         as You, Gitman and Ginsburg (arXiv 1708.03888, 2017) use it, with power 2
//	inv     (1 + gamma*i)^-power                    Caffe's lr_policy "inv"; i counts from the end of warm-up
//
// one_cycle is that of Smith and Topin (Super-convergence, arXiv 1708.07120 [M]) as PyTorch's OneCycleLR has it without its cycle of
// momentum: half a cosine from start to 1 in the first rise*over iterations, and half a cosine to floor in the rest. PyTorch's defaults are
// rise 0.3, start 0.04 and floor 4e-6.
//
// inv is what the FluentPS authors' LeNet solver has (lr 0.01, gamma 1e-4, power 0.75) [C]. The theorems of SSP, DSSP and PSSP
// take sigma/sqrt(t), which is gamma 1, power 0.5.
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
	case "cosine":
		return scale * s.above((1+math.Cos(math.Pi*s.passed(iter)))/2)
	case "poly":
		return scale * s.above(math.Pow(1-s.passed(iter), s.Power))
	case "inv":
		return scale * math.Pow(1+s.Gamma*max(0, iter-float64(s.WarmUp)), -s.Power)
	case oneCycle:
		return s.cycle(iter)
	}
	panic("optim: schedule " + s.Name + " was not checked")
}

// cycle is Scale of one_cycle. The rate is highest in iteration rise*over - 1, and reaches its floor in the last one of the cycle.
func (s Schedule) cycle(iter float64) float64 {
	top, end := s.Rise*float64(s.Over)-1, float64(s.Over-1)
	if top > 0 && iter <= top {
		return s.Start + (1-s.Start)*(1-math.Cos(math.Pi*iter/top))/2
	}
	top = max(0, top)
	return s.above((1 + math.Cos(math.Pi*min(1, (iter-top)/(end-top)))) / 2)
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

// passed is the share of Over that has passed at iter. It is 0 during warm-up, so that warm-up reaches the full rate.
func (s Schedule) passed(iter float64) float64 {
	return max(0, min(1, (iter-float64(s.WarmUp))/float64(s.Over)))
}

// above maps 1 to 1 and 0 to the floor. share is in [0, 1].
func (s Schedule) above(share float64) float64 { return s.Floor + (1-s.Floor)*share }
