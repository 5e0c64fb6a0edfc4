package metrics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// absent is printed for a value that was not measured or is not finite.
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

// rate writes a number per second, without decimals from 100 on, where they are noise.
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

// percent writes part/whole in percent, or absent when whole is 0.
func percent(part, whole float64) string { return fixed(100*part/whole, 1) }

var binaryUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB"}

// inBinary converts a size to the largest binary unit that leaves at least 1. It also returns the index of that unit.
func inBinary(n int64) (v float64, unit int) {
	v = float64(n)
	for v >= 1024 && unit < len(binaryUnits)-1 {
		v, unit = v/1024, unit+1
	}
	return v, unit
}

// clock writes d as m:ss or h:mm:ss.
func clock(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// TextWidth is the most columns of tables and prose for people.
const TextWidth = 80

// Wrap breaks text into lines of at most width columns. All lines but the first are indented. A longer word gets a line of its
// own. The result ends without a newline.
func Wrap(text string, width, indent int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

// Listed aligns rows of cells to the left, after an indent. words[i] follows row i in as many lines as it needs, or below the row
// if it would be wider than TextWidth there. The first row is the header.
func Listed(rows [][]string, words []string, indent int) string {
	longest := 0
	for _, word := range strings.Fields(strings.Join(words, " ")) {
		longest = max(longest, len(word))
	}
	var b strings.Builder
	for i, row := range rows {
		line := strings.Repeat(" ", indent)
		for c, cell := range row {
			line += fmt.Sprintf("%-*s  ", widthOf(rows, c), cell)
		}
		if len(line)+longest > TextWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", indent+widthOf(rows, 0)+2)
		}
		margin := strings.Repeat(" ", len(line))
		line += strings.ReplaceAll(Wrap(words[i], TextWidth-len(line), 0), "\n", "\n"+margin)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Cut shortens a text to width. It keeps the end, because names differ there.
func Cut(text string, width int) string {
	if len(text) <= width {
		return text
	}
	return ".." + text[len(text)-width+2:]
}

// table aligns cells in columns as wide as their widest cell. The columns in left are text and align to the left, all others to
// the right. The first row is the header, and a rule follows it.
func table(rows [][]string, left map[int]bool) string { return columns(rows, left, " | ") }

// fitted is a table with narrow gaps that is at most width wide. As long as it is too wide, it leaves out the columns in drop, in
// that order. Then it cuts the last column, which is text, at its beginning.
func fitted(rows [][]string, left map[string]bool, drop []string, width int) string {
	const gap, nameMin = "  ", 8
	for {
		sum := -len(gap)
		for c := range rows[0] {
			sum += len(gap) + widthOf(rows, c)
		}
		last := len(rows[0]) - 1
		room := width - (sum - widthOf(rows, last))
		if sum > width && room < nameMin && len(drop) > 0 {
			rows, drop = without(rows, drop[0]), drop[1:]
			continue
		}
		for i := range rows {
			if sum > width {
				rows[i][last] = Cut(rows[i][last], max(room, nameMin))
			}
		}
		text := map[int]bool{}
		for c, name := range rows[0] {
			text[c] = left[name]
		}
		return columns(rows, text, gap)
	}
}

func widthOf(rows [][]string, c int) (width int) {
	for _, row := range rows {
		width = max(width, len(row[c]))
	}
	return width
}

// without returns the rows without the column of that name.
func without(rows [][]string, name string) (fewer [][]string) {
	c := slices.Index(rows[0], name)
	for _, row := range rows {
		fewer = append(fewer, slices.Delete(slices.Clone(row), c, c+1))
	}
	return fewer
}

func columns(rows [][]string, left map[int]bool, gap string) string {
	width := make([]int, len(rows[0]))
	for c := range width {
		width[c] = widthOf(rows, c)
	}
	var b strings.Builder
	for i, row := range rows {
		line := ""
		for c, cell := range row {
			pad := strings.Repeat(" ", width[c]-len(cell))
			if c > 0 {
				line += gap
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Count is a number of things, with a comma between groups of three digits and the noun in the singular if there is one.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(int64(n)) + " " + noun
}

// Size is a byte count in the largest binary unit that leaves at least 1: with one decimal in KiB, with two in larger units.
func Size(n int64) string {
	switch v, u := inBinary(n); u {
	case 0:
		return fmt.Sprintf("%d B", n)
	case 1:
		return fmt.Sprintf("%.1f %s", v, binaryUnits[u])
	default:
		return fmt.Sprintf("%.2f %s", v, binaryUnits[u])
	}
}
