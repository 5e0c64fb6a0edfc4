package keys

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
)

// asText returns the hint for a text that would be a value of that tag without its quotes or its !!str.
func asText(n *yaml.Node, tag string) (hint string, ok bool) {
	bare := yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || bare.ShortTag() != tag {
		return "", false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return fmt.Sprintf("!!str makes it a text: write %s", diag.Clip(n.Value)), true
	}
	return fmt.Sprintf("quotes make it a text: write %s", diag.Clip(n.Value)), true
}

var (
	timeForm  = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)$`)
	clockForm = regexp.MustCompile(`^(?:([0-9]+)-)?([0-9]+):([0-9]{2})(?::([0-9]{2}))?$`)
	timeOf    = map[string]time.Duration{"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute,
		"min": time.Minute, "minute": time.Minute, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "d": 24 * time.Hour,
		"day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "msec": time.Millisecond, "usec": time.Microsecond}
	unitForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)$`)
	sizeOf   = map[string]float64{"b": 1, "k": 1e3, "kb": 1e3, "kib": 1 << 10, "m": 1e6, "mb": 1e6, "mib": 1 << 20,
		"g": 1e9, "gb": 1e9, "gib": 1 << 30, "t": 1e12, "tb": 1e12, "tib": 1 << 40, "p": 1e15, "pb": 1e15, "pib": 1 << 50}
	sizeOrders = []string{"GiB", "GB", "MiB", "MB", "KiB", "KB", "B"}
)

// timeHint writes a time of another program in our units.
func timeHint(text string) string {
	const units = "write a unit, as in 30s, 10m or 1h30m"
	if m := timeForm.FindStringSubmatch(text); m != nil {
		unit := strings.ToLower(m[2])
		each, ok := timeOf[unit]
		if !ok {
			each, ok = timeOf[strings.TrimSuffix(unit, "s")]
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if d := v * float64(each); ok && err == nil && d < math.MaxInt64 {
			if each > time.Hour {
				return fmt.Sprintf("the units are h, m, s, ms, us: write %s", diag.FormatDuration(time.Duration(d)))
			}
			return "write " + diag.FormatDuration(time.Duration(d))
		}
	}
	if m := clockForm.FindStringSubmatch(text); m != nil {
		var n [4]int64
		for i := range n {
			n[i], _ = strconv.ParseInt("0"+m[i+1], 10, 32) // for a number that is too large, the next check reports the limit
		}
		return "write " + diag.FormatDuration(time.Duration(((n[0]*24+n[1])*60+n[2])*60+n[3])*time.Second)
	}
	return units
}

// sizeHint writes a size of another program in our units.
func sizeHint(text string) string {
	const units = "the units are B, KB, MB, GB, KiB, MiB, GiB"
	text = bytesOf(text)
	m := unitForm.FindStringSubmatch(text)
	if m == nil {
		return units + ", as in 64KiB, 4MiB or 1MB"
	}
	v, err := strconv.ParseFloat(m[1], 64)
	bytes := v * sizeOf[strings.ToLower(m[2])]
	if err != nil || bytes <= 0 || bytes >= 1<<53 || bytes != math.Trunc(bytes) {
		return units + ", as in 64KiB, 4MiB or 1MB"
	}
	binary := strings.HasSuffix(strings.ToLower(m[2]), "ib")
	for _, unit := range sizeOrders {
		if n := bytes / sizeUnits[unit]; n == math.Trunc(n) && strings.HasSuffix(unit, "iB") == (binary && unit != "B") {
			return fmt.Sprintf("%s: write %s%s", units, diag.FormatWhole(n), unit)
		}
	}
	return units
}
