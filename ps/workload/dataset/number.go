package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// isDecimal says whether a text has only characters of decimal numbers. strconv also reads Go's own forms (1_000, 0x1p3) and words
// such as infinity, which other readers of these files take for something else or refuse.
func isDecimal(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return false
		}
	}
	return true
}

// decimal parses a number as text files have it: an optional sign, digits with or without a point, and an optional exponent. ok is
// false for any other text. A number beyond float64 is infinite.
func decimal(text string) (v float64, ok bool) {
	if v, ok = plainDecimal(text); ok {
		return v, true
	}
	if !isDecimal(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// tens are the powers of ten up to the most digits that plainDecimal takes, all exact.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// plainDecimal parses digits with an optional sign and point in one pass, as most numbers of most files are. The digits form an exact
// integer and the power of ten is exact, so their quotient is rounded once: the result is that of strconv. ok is false for all other
// texts, whether they are numbers or not.
func plainDecimal(text string) (v float64, ok bool) {
	at := 0
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		at = 1
	}
	var mantissa uint64
	number, point := 0, -1 // digits, and those before the point
	for ; at < len(text); at++ {
		switch c := text[at]; {
		case c >= '0' && c <= '9':
			mantissa = 10*mantissa + uint64(c-'0')
			number++
		case c == '.' && point < 0:
			point = number
		default:
			return 0, false
		}
	}
	if number == 0 || number >= len(tens) {
		return 0, false
	}
	v = float64(mantissa)
	if point >= 0 {
		v /= tens[number-point]
	}
	if text[0] == '-' {
		v = -v
	}
	return v, true
}

// parseValue parses a finite number and divides it by scale; scale 0 means 1. What is nearer to 0 than float32 can tell becomes 0.
func parseValue(field string, scale float64) (float32, error) {
	v, ok := decimal(field)
	if !ok {
		return 0, notANumber(field)
	}
	if math.Abs(v) > math.MaxFloat32 {
		return 0, fmt.Errorf("value %s is not finite in float32, whose largest is %.8g; correct it, or remove the row",
			clip(field), math.MaxFloat32)
	}
	if scale != 0 {
		if v /= scale; math.Abs(v) > math.MaxFloat32 {
			return 0, fmt.Errorf("value %s divided by data.scale, %g, is not finite in float32, whose largest is %.8g; "+
				"raise data.scale", clip(field), scale, math.MaxFloat32)
		}
	}
	return float32(v), nil
}

// parseWhole parses a whole number of decimal digits with an optional sign.
func parseWhole(field string) (v int64, ok bool) {
	v, err := strconv.ParseInt(field, 10, 64)
	return v, err == nil
}

// notANumber is the error for a text that is no decimal number.
func notANumber(field string) error {
	switch {
	case bare(field) == "nan":
		return fmt.Errorf("value %s is not finite; every value must be a number: fill in missing values, or remove the row", clip(field))
	case isMissing(field):
		return fmt.Errorf("value %s is not a number; every value must be a number: fill in missing values, or remove the row", clip(field))
	case isInfinite(field):
		return fmt.Errorf("value %s is not finite; every value must be a finite number: correct it, or remove the row", clip(field))
	}
	if is, how, found := meantNumber(field); found {
		return fmt.Errorf("value %s is not a number: %s; write %s", clip(field), how, is)
	}
	return fmt.Errorf("value %s is not a number", clip(field))
}

// bare is a text without its sign, in small letters.
func bare(text string) string { return strings.ToLower(strings.TrimLeft(text, "+-")) }

// isMissing says whether a text stands for a missing value in other programs.
func isMissing(field string) bool {
	switch bare(field) {
	case "", "nan", "na", "n/a", "#n/a", "null", "none", "nil", "?", ".", "missing":
		return true
	}
	return false
}

func isInfinite(field string) bool {
	b := bare(field)
	return b == "inf" || b == "infinity"
}

// meantNumber returns the decimal number that a text means in another syntax, and the name of that.
func meantNumber(field string) (is, how string, found bool) {
	accepted := func(text string) bool {
		v, ok := decimal(text)
		return ok && math.Abs(v) <= math.MaxFloat32
	}
	if point, is := withPoint(field); is {
		return point, "it has a decimal comma", accepted(point)
	}
	if strings.Contains(field, "_") {
		plain := strings.ReplaceAll(field, "_", "")
		return plain, "digits have _ between them", accepted(plain)
	}
	if b := bare(field); strings.HasPrefix(b, "0x") {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			var n int64
			n, err = strconv.ParseInt(field, 0, 64)
			v = float64(n)
		}
		return strconv.FormatFloat(v, 'g', -1, 64), "it is hexadecimal", err == nil && math.Abs(v) <= math.MaxFloat32
	}
	if at := strings.IndexAny(field, "dD"); at > 0 { // as Fortran writes double precision
		exponent := field[:at] + "e" + field[at+1:]
		return exponent, "its exponent has no e", accepted(exponent)
	}
	return "", "", false
}

// withPoint is a number with a decimal comma, written with a point.
func withPoint(field string) (point string, ok bool) {
	whole, part, found := strings.Cut(field, ",")
	part, exponent, has := strings.Cut(strings.ToLower(part), "e")
	if !found || !digits(strings.TrimLeft(whole, "+-")) || !digits(part) {
		return "", false
	}
	point = whole + "." + part
	if has {
		point += "e" + exponent
	}
	_, ok = decimal(point)
	return point, ok
}

// classesFrom0 numbers the classes of two parts from 0, in place, and returns how many there are; given: so many are wanted, 0: any number.
// Numbers stay if they begin with 0 in one of the parts, or if they lie below given. Others, such as -1 and +1, are numbered in their
// order. It says that, and notes what makes classes doubtful.
func (in *reading) classesFrom0(path string, train, test []int32, given int) (int, error) {
	values := slices.Clone(train)
	slices.Sort(values)
	values = slices.Compact(values)
	unseen := func(i int) error {
		return fmt.Errorf("data: %s: class %d of test row %d is none of the training rows, which have %s", path, test[i], i+1, some(values))
	}
	isGiven := values[0] > 0 && int(values[len(values)-1]) < given
	if values[0] == 0 || slices.Contains(test, 0) && values[0] > 0 || isGiven {
		if i := slices.IndexFunc(test, func(y int32) bool { return y < 0 || given > 0 && int(y) >= given }); i >= 0 {
			return 0, unseen(i)
		}
		if most := int(values[len(values)-1]); given > 0 && most >= given {
			return 0, fmt.Errorf("data: %s: class %d, must be 0 to %d: is the number of classes right?", path, most, given-1)
		}
		classes := countClasses(given, train, test)
		if len(values) < classes && given == 0 {
			in.notes = append(in.notes, fmt.Sprintf("data: %s: the largest class is %d, but only %d classes have training rows", path, classes-1,
				len(values)))
		}
		return classes, nil
	}
	for p, part := range [][]int32{train, test} {
		for i, y := range part {
			n, ok := slices.BinarySearch(values, y)
			if !ok && p == 1 {
				return 0, unseen(i)
			}
			part[i] = int32(n)
		}
	}
	in.found = append(in.found, fmt.Sprintf("%s: classes are %s, and are numbered 0 to %d", path, some(values), len(values)-1))
	if len(values) == 1 {
		in.notes = append(in.notes, fmt.Sprintf("data: %s: all training rows are of class %d", path, values[0]))
	}
	return max(2, len(values), given), nil
}

// some lists the first values.
func some(values []int32) string {
	const most = 8
	texts := make([]string, 0, most+1)
	for _, v := range values[:min(most, len(values))] {
		texts = append(texts, fmt.Sprint(v))
	}
	if len(values) > most {
		texts = append(texts, fmt.Sprintf("... %d", values[len(values)-1]))
	}
	return strings.Join(texts, ", ")
}
