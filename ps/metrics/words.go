package metrics

import "fmt"

// Count is a number of things, in the singular where there is one.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Size is a byte count for people who plan: two decimals from MiB on, where bytesText has one.
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
