package metrics

import "fmt"

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
