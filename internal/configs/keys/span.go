package keys

import (
	"fmt"
	"math"
	"strconv"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
)

// Span is the interval of legal numbers. The zero value allows every finite number.
type Span struct {
	Set            bool
	Lo, Hi         float64
	LoOpen, HiOpen bool
}

// from is [lo, hi].
func from(lo, hi float64) Span {
	return Span{Set: true, Lo: lo, Hi: hi}
}

// aboveTo is (lo, hi].
func aboveTo(lo, hi float64) Span { return Span{Set: true, Lo: lo, LoOpen: true, Hi: hi} }

// Has reports whether a number is legal.
func (s Span) Has(x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	if !s.Set {
		return true
	}
	low := x > s.Lo || x == s.Lo && !s.LoOpen
	high := x < s.Hi || x == s.Hi && !s.HiOpen
	return low && high
}

// want returns the text of the limit. show writes a number in the unit of the key.
func (s Span) want(show func(float64) string) string {
	switch {
	case !s.Set:
		return "must be finite"
	case s.Lo == s.Hi:
		return "must be " + show(s.Lo)
	case math.IsInf(s.Hi, 1) && s.LoOpen:
		return "must be above " + show(s.Lo)
	case math.IsInf(s.Hi, 1):
		return "must be at least " + show(s.Lo)
	}
	low, high := "at least ", " and at most "
	if s.LoOpen {
		low = "above "
	}
	if s.HiOpen {
		high = " and below "
	}
	return fmt.Sprintf("must be %s%s%s%s", low, show(s.Lo), high, show(s.Hi))
}

// singleLeast is the least magnitude that float32 holds with all its digits.
const singleLeast = 0x1p-126

// InSingle refuses a number that float32 does not hold where the arithmetic is in float32: it would be infinite, 0, or outside of the
// limits that it is within as it stands.
func (l *Leaf) InSingle(v float64, n *yaml.Node) *Problem {
	if !l.single || v == 0 {
		return nil
	}
	limits := l.Span
	if !limits.Set {
		limits = l.SchemeSpan
	}
	is := float64(float32(v))
	switch {
	case math.IsInf(is, 0):
		return ofFine(problemf("set "+single(largestIn(limits))+" or less",
			"%s is more than float32 holds, in which it is computed: at most %s", diag.Clip(n.Value), single(singleMost)))
	case math.Abs(is) < singleLeast:
		hint := "set " + single(singleLeast) + " or more"
		if limits.Has(0) {
			hint = "set 0, or " + single(singleLeast) + " or more"
		}
		return ofFine(problemf(hint, "%s is less than float32 holds, in which it is computed: at least %s", diag.Clip(n.Value),
			single(singleLeast)))
	case limits.Has(v) && !limits.Has(is):
		return ofFine(problemf("set "+single(largestIn(limits))+" or less",
			"%s is %s in float32, in which it is computed, and %s", diag.Clip(n.Value), diag.FormatNumber(is), limits.want(diag.FormatNumber)))
	}
	return nil
}

// single writes a number of float32 with the fewest digits that tell it.
func single(x float64) string { return strconv.FormatFloat(x, 'g', -1, 32) }

// singleMost is the largest number of float32.
const singleMost = math.MaxFloat32

// largestIn is the largest number within limits that float32 holds.
func largestIn(s Span) float64 {
	most := float32(min(s.Hi, singleMost))
	if !s.Set {
		return singleMost
	}
	for !s.Has(float64(most)) {
		most = math.Nextafter32(most, float32(math.Inf(-1)))
	}
	return float64(most)
}
