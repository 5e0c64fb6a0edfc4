package text

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/files"
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

// Decimal parses a number as text files have it: an optional sign, digits with or without a point, and an optional exponent. ok is
// false for any other text. A number beyond float64 is infinite.
func Decimal(text string) (v float64, ok bool) {
	if v, end, isExact := Scan([]byte(text), '.'); isExact && end == len(text) {
		return v, true
	}
	if !isDecimal(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// ParseValue parses a finite number and divides it by scale; scale 0 means 1. What is nearer to 0 than float32 can tell becomes 0.
func ParseValue(field string, scale float64) (float32, error) {
	v, ok := Decimal(field)
	if !ok {
		return 0, notANumber(field)
	}
	if math.Abs(v) > math.MaxFloat32 {
		return 0, fmt.Errorf("value %s is not finite in float32, whose largest is %.8g; correct it, or remove the row",
			files.Clip(field), math.MaxFloat32)
	}
	if scale != 0 {
		if v /= scale; math.Abs(v) > math.MaxFloat32 {
			return 0, fmt.Errorf("value %s divided by data.scale, %g, is not finite in float32, whose largest is %.8g; "+
				"raise data.scale", files.Clip(field), scale, math.MaxFloat32)
		}
	}
	return float32(v), nil
}

// ParseWhole parses a whole number of decimal digits with an optional sign.
func ParseWhole(field string) (v int64, ok bool) {
	v, err := strconv.ParseInt(field, 10, 64)
	return v, err == nil
}

// notANumber is the error for a text that is no decimal number.
func notANumber(field string) error {
	switch {
	case bare(field) == "nan":
		return fmt.Errorf("value %s is not finite; every value must be a number: fill in missing values, or remove the row", files.Clip(field))
	case IsMissing(field):
		return fmt.Errorf("value %s is not a number; every value must be a number: fill in missing values, or remove the row", files.Clip(field))
	case IsInfinite(field):
		return fmt.Errorf("value %s is not finite; every value must be a finite number: correct it, or remove the row", files.Clip(field))
	}
	if is, how, found := MeantNumber(field); found {
		return fmt.Errorf("value %s is not a number: %s; write %s", files.Clip(field), how, is)
	}
	return fmt.Errorf("value %s is not a number", files.Clip(field))
}

// bare is a text without its sign, in small letters.
func bare(text string) string { return strings.ToLower(strings.TrimLeft(text, "+-")) }

// IsMissing says whether a text stands for a missing value in other programs.
func IsMissing(field string) bool {
	switch bare(field) {
	case "", "nan", "na", "n/a", "#n/a", "null", "none", "nil", "?", ".", "missing":
		return true
	}
	return false
}

func IsInfinite(field string) bool {
	b := bare(field)
	return b == "inf" || b == "infinity"
}

// MeantNumber returns the decimal number that a text means in another syntax, and the name of that.
func MeantNumber(field string) (is, how string, found bool) {
	accepted := func(text string) bool {
		v, ok := Decimal(text)
		return ok && math.Abs(v) <= math.MaxFloat32
	}
	if point, is := WithPoint(field); is {
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

// WithPoint is a number with a decimal comma, written with a point.
func WithPoint(field string) (point string, ok bool) {
	whole, part, found := strings.Cut(field, ",")
	part, exponent, has := strings.Cut(strings.ToLower(part), "e")
	if !found || !Digits(strings.TrimLeft(whole, "+-")) || !Digits(part) {
		return "", false
	}
	point = whole + "." + part
	if has {
		point += "e" + exponent
	}
	_, ok = Decimal(point)
	return point, ok
}

// IsNumber says whether a text is a decimal number.
func IsNumber(field string) bool {
	_, ok := Decimal(field)
	return ok
}
