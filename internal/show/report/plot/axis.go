package plot

import (
	"math"
	"strconv"
)

// axis maps values to places.
type axis struct {
	lo, hi     float64 // values at the ends
	from, to   float64 // places of the ends
	step       float64 // between two ticks
	whole      bool    // only whole numbers have ticks
	ticksAbout int
}

// newAxis covers lo to hi, which are finite, with round ticks. tight keeps the ends; otherwise they move to ticks.
func newAxis(lo, hi float64, about int, whole, tight bool) axis {
	if !apart(lo, hi) {
		grow := math.Max(math.Abs(lo)*0.1, 0.5)
		if lo == 0 {
			hi = 1
		} else {
			lo, hi = lo-grow, hi+grow
		}
	}
	a := axis{lo: lo, hi: hi, ticksAbout: about, whole: whole}
	a.step = niceStep((hi-lo)/float64(about), whole)
	if !tight {
		a.lo, a.hi = math.Floor(lo/a.step+1e-9)*a.step, math.Ceil(hi/a.step-1e-9)*a.step
	}
	return a
}

// apart says whether lo is below hi by so much that numbers between them can be told apart.
func apart(lo, hi float64) bool {
	return hi-lo > 1e-9*math.Max(math.Abs(lo), math.Abs(hi)) && hi-lo > 1e-200
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is at least v.
func niceStep(v float64, whole bool) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	step := 10 * p
	for _, m := range []float64{1, 2, 5} {
		if m*p >= v*(1-1e-9) {
			step = m * p
			break
		}
	}
	if whole {
		step = math.Max(1, math.Round(step))
	}
	return step
}

func (a *axis) at(v float64) float64 { return a.from + (v-a.lo)/(a.hi-a.lo)*(a.to-a.from) }

// ticks are the values with a number.
func (a *axis) ticks() (values []float64) {
	first := math.Ceil(a.lo/a.step - 1e-9)
	for k := 0; k <= 4*a.ticksAbout; k++ {
		v := (first + float64(k)) * a.step
		if v > a.hi+a.step*1e-9 {
			break
		}
		values = append(values, v+0) // +0: no negative zero
	}
	return values
}

// number writes a value of an axis whose ticks are step apart, as short as possible.
func number(v, step float64) string {
	if math.Abs(v) < step*1e-6 {
		return "0"
	}
	scale, unit := 1.0, ""
	switch big := math.Abs(v); {
	case big >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case big >= 1e12:
		scale, unit = 1e12, "T"
	case big >= 1e9:
		scale, unit = 1e9, "G"
	case big >= 1e6:
		scale, unit = 1e6, "M"
	case big >= 1e4:
		scale, unit = 1e3, "k"
	case big < 1e-3 && step < 1e-3:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := 0
	if s := step / scale; s < 1 {
		digits = min(6, int(math.Ceil(-math.Log10(s)-1e-9)))
	}
	return strconv.FormatFloat(v/scale, 'f', digits, 64) + unit
}
