package keys

import (
	"testing"
)

// A size with a fraction is whole if it is so on paper, whatever binary fractions make of it.
func TestSizesWithAFraction(t *testing.T) {
	for text, want := range map[string]int64{"2.07GB": 2_070_000_000, "0.1KB": 100, "1.1MB": 1_100_000,
		"4.35GB": 4_350_000_000, "1.5KiB": 1536, "0.000000001GB": 1} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0.3KiB", "1.0005KB", "1.0000000001GB", "0.5B", "9007199254740992B"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%s is taken for %d bytes", text, got)
		}
	}
}
