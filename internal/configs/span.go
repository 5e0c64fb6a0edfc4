package configs

import (
	"fmt"
	"math"
	"strconv"

	"gopkg.in/yaml.v3"
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

// singleLeast is the least magnitude that float32 holds with all its digits.
const singleLeast = 0x1p-126

// inSingle refuses a number that float32 does not hold where the arithmetic is in float32: it would be infinite, 0, or outside of the
// limits that it is within as it stands.
func (l *leaf) inSingle(v float64, n *yaml.Node) *problem {
	if !l.single || v == 0 {
		return nil
	}
	limits := l.span
	if !limits.set {
		limits = l.params
	}
	is := float64(float32(v))
	switch {
	case math.IsInf(is, 0):
		return ofFine(problemf("set "+single(largestIn(limits))+" or less",
			"%s is more than float32 holds, in which it is computed: at most %s", clip(n.Value), single(singleMost)))
	case math.Abs(is) < singleLeast:
		hint := "set " + single(singleLeast) + " or more"
		if limits.has(0) {
			hint = "set 0, or " + single(singleLeast) + " or more"
		}
		return ofFine(problemf(hint, "%s is less than float32 holds, in which it is computed: at least %s", clip(n.Value), single(singleLeast)))
	case limits.has(v) && !limits.has(is):
		return ofFine(problemf("set "+single(largestIn(limits))+" or less",
			"%s is %s in float32, in which it is computed, and %s", clip(n.Value), number(is), limits.want(number)))
	}
	return nil
}

// single writes a number of float32 with the fewest digits that tell it.
func single(x float64) string { return strconv.FormatFloat(x, 'g', -1, 32) }

// singleMost is the largest number of float32.
const singleMost = math.MaxFloat32

// largestIn is the largest number within limits that float32 holds.
func largestIn(s span) float64 {
	most := float32(min(s.hi, singleMost))
	if !s.set {
		return singleMost
	}
	for !s.has(float64(most)) {
		most = math.Nextafter32(most, float32(math.Inf(-1)))
	}
	return float64(most)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// whole writes limits of integers without an exponent.
func whole(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
