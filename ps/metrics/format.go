package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// absent stands for a value that was not measured or is not finite.
const absent = "-"

// thousands writes n with a comma between groups of three digits.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// fixed writes v with the given number of decimals, or absent.
func fixed(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return absent
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// rate writes a figure per second: whole above 100, where decimals are noise.
func rate(v float64) string {
	switch {
	case math.IsNaN(v) || math.Abs(v) >= math.MaxInt64:
		return absent
	case math.Abs(v) >= 100:
		return thousands(int64(math.Round(v)))
	}
	return fixed(v, 1)
}

// optional is fixed for a value that may be nil.
func optional(v *Float, decimals int) string {
	if v == nil {
		return absent
	}
	return fixed(float64(*v), decimals)
}

// percent writes part/whole in percent, or absent when there is no whole.
func percent(part, whole float64) string { return fixed(100*part/whole, 1) }

// bytesText writes a size with the largest binary unit that leaves at least 1.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// clock writes d as m:ss or h:mm:ss.
func clock(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// table lines up cells: as wide as the widest of the column, numbers to the right. left says which columns
// are text. The first row is the header, and a rule follows it.
func table(rows [][]string, left map[int]bool) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, cell := range row {
			width[c] = max(width[c], len(cell))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		line := ""
		for c, cell := range row {
			pad := strings.Repeat(" ", width[c]-len(cell))
			if c > 0 {
				line += " | "
			}
			if left[c] {
				line += cell + pad
			} else {
				line += pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if i == 0 {
			b.WriteString(strings.Repeat("-", len(line)) + "\n")
		}
	}
	return b.String()
}
