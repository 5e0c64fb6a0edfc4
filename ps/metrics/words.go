package metrics

import "fmt"

// Count writes a number with its noun, which gets an s unless n is 1.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Size writes a number of bytes for plans: with two decimals from MiB on, unlike bytesText, which has one.
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
