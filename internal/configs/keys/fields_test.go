package keys

import (
	"slices"
	"strings"
	"testing"

	"fluentps/ps/scheme"
)

// TestRuleKeysAreThoseOfTheTables: a scheme of another module may not have a key that a rule or a phase has.
func TestRuleKeysAreThoseOfTheTables(t *testing.T) {
	want := []string{"schemes"} // BindPhased adds it
	for _, rows := range [][]row{RuleKeys(), PhaseKeys()} {
		for _, r := range rows {
			if key, _, _ := strings.Cut(r.Path, "."); !slices.Contains(want, key) {
				want = append(want, key)
			}
		}
	}
	got := slices.Sorted(slices.Values(scheme.RuleKeys))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("scheme.RuleKeys is %v, and the tables have %v", got, want)
	}
}
