package configs

import (
	"fmt"
	"math"
	"strconv"
)

// span is the interval of legal numbers. The zero value allows every finite number.
type span struct {
	set            bool
	lo, hi         float64
	loOpen, hiOpen bool
}

func from(lo, hi float64) span {
	return span{set: true, lo: lo, hi: hi}
}

// aboveTo is (lo, hi].
func aboveTo(lo, hi float64) span { return span{set: true, lo: lo, loOpen: true, hi: hi} }

func (s span) has(x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	if !s.set {
		return true
	}
	low := x > s.lo || x == s.lo && !s.loOpen
	high := x < s.hi || x == s.hi && !s.hiOpen
	return low && high
}

// want returns the text of the limit. show writes a number in the unit of the key.
func (s span) want(show func(float64) string) string {
	switch {
	case !s.set:
		return "must be finite"
	case s.lo == s.hi:
		return "must be " + show(s.lo)
	case math.IsInf(s.hi, 1) && s.loOpen:
		return "must be above " + show(s.lo)
	case math.IsInf(s.hi, 1):
		return "must be at least " + show(s.lo)
	}
	low, high := "at least ", " and at most "
	if s.loOpen {
		low = "above "
	}
	if s.hiOpen {
		high = " and below "
	}
	return fmt.Sprintf("must be %s%s%s%s", low, show(s.lo), high, show(s.hi))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// whole writes limits of integers without an exponent.
func whole(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
