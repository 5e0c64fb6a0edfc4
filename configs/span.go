package configs

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// span is the interval of legal numbers. The zero value allows every finite number.
type span struct {
	set            bool
	lo, hi         float64
	loOpen, hiOpen bool
}

func atLeast(lo float64) span { return span{set: true, lo: lo, hi: math.Inf(1)} }
func above(lo float64) span   { return span{set: true, lo: lo, loOpen: true, hi: math.Inf(1)} }
func from(lo, hi float64) span {
	return span{set: true, lo: lo, hi: hi}
}

// aboveTo is (lo, hi], fromBelow is [lo, hi).
func aboveTo(lo, hi float64) span   { return span{set: true, lo: lo, loOpen: true, hi: hi} }
func fromBelow(lo, hi float64) span { return span{set: true, lo: lo, hi: hi, hiOpen: true} }

// spanOf reads the tags min and max.
func spanOf(tag reflect.StructTag) span {
	s := span{lo: math.Inf(-1), hi: math.Inf(1)}
	for name, end := range map[string]*float64{"min": &s.lo, "max": &s.hi} {
		text, ok := tag.Lookup(name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(fmt.Sprintf("configs: tag %s: %v", name, err))
		}
		*end, s.set = v, true
	}
	return s
}

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

// want words the limit with the unit's own spelling of its ends.
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
