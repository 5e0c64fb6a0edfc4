package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// absent stands for what was not measured.
const absent = "–"

// short writes a number with about three digits.
func short(v float64) string {
	switch big := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return absent
	case big == 0:
		return "0"
	case big >= 1e15 || big < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case big >= 1000:
		return grouped(int64(math.Round(v)))
	case big >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case big >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case big >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// grouped writes n with a comma between groups of three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

func fixed(v float64, digits int) string {
	if math.IsNaN(v) || math.Abs(v) >= 1e15 {
		return absent
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// percent writes a share of 1.
func percent(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return absent
	case v > 0 && v < 0.01:
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// seconds writes a time for people.
func seconds(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return absent
	case v >= 2*3600:
		return fixed(v/3600, 1) + " h"
	case v >= 600:
		return fixed(v/60, 1) + " min"
	case v > 0 && v < 0.1:
		return short(v*1e3) + " ms"
	}
	return short(v) + " s"
}

// form is how a number is written: v times scale, with so many digits, and a unit.
type form struct {
	scale  float64
	digits int
	unit   string
}

// formOf finds the form of a text that a format made of v.
func formOf(v float64, text string) form {
	number := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return -1
	}, text)
	f := form{scale: 1, unit: strings.TrimLeft(text, "-0123456789.,")}
	if shown, err := strconv.ParseFloat(number, 64); err == nil && v != 0 && shown != 0 && !strings.ContainsAny(text, "e") {
		if scale := shown / v; scale > 50 || scale < 0.5 {
			f.scale = scale
		}
	}
	if _, after, found := strings.Cut(number, "."); found {
		f.digits = len(after)
	}
	return f
}

// spread is a mean with its sample deviation.
type spread struct {
	mean, deviation float64
	n               int // values that are numbers
}

func spreadOf(values []float64) (s spread) {
	sum := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.n, sum = s.n+1, sum+v
		}
	}
	if s.n == 0 {
		return spread{math.NaN(), math.NaN(), 0}
	}
	s.mean = sum / float64(s.n)
	if s.n == 1 {
		s.deviation = math.NaN()
		return s
	}
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.deviation += (v - s.mean) * (v - s.mean)
		}
	}
	s.deviation = math.Sqrt(s.deviation / float64(s.n-1))
	return s
}

// needed is the number of digits that a deviation needs to show one that is not 0.
func needed(v float64) int {
	if v <= 0 || v >= 1 || math.IsNaN(v) {
		return 0
	}
	return min(6, int(math.Ceil(-math.Log10(v))))
}

// text is the mean, with the deviation if there are several values.
func (s spread) text(format func(float64) string) string {
	if s.n < 2 {
		return format(s.mean)
	}
	mean := format(s.mean)
	f := formOf(s.mean, mean)
	mean = strings.TrimSuffix(mean, f.unit)
	digits := min(max(f.digits, needed(s.deviation*f.scale)), f.digits+2)
	if digits > f.digits {
		mean = fixed(s.mean*f.scale, digits)
	}
	deviation := fixed(s.deviation*f.scale, digits)
	if digits == 0 && s.deviation*f.scale < 1e15 {
		deviation = grouped(int64(math.Round(s.deviation * f.scale)))
	}
	return mean + " ± " + deviation + f.unit
}
