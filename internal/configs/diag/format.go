package diag

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

var plainWord = regexp.MustCompile(`^[A-Za-z_/.][A-Za-z0-9_/.-]*$`)

// FormatString writes a text as YAML, in quotes if YAML would not read the bare text back as the same text.
func FormatString(s string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if plainWord.MatchString(s) && n.ShortTag() == "!!str" {
		return s
	}
	return strconv.Quote(s)
}

// FormatDuration leaves out the zero tail of the standard form: 10m, not 10m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FormatSize writes a size as the YAML has it: it takes the largest binary unit that divides the size.
func FormatSize(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes > 0 && bytes%u.size == 0 {
			return strconv.FormatInt(bytes/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// FormatCount writes a number with its noun, which is in the singular for 1, as in "3 workers".
func FormatCount(n float64, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "sh"):
		noun += "es"
	default:
		noun += "s"
	}
	return FormatWhole(n) + " " + noun
}

// FormatNumber writes a number with the fewest digits that read back as the same number.
func FormatNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// FormatWhole writes a whole number without an exponent.
func FormatWhole(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
