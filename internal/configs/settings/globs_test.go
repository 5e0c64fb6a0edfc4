package settings_test

import (
	"testing"

	"fluentps/internal/configs/settings"
)

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		want          bool
	}{
		{"*", "fc1.*", true}, {"fc*", "fc1.*", true}, {"*.bias", "fc1.bias", true}, {"fc1.*", "fc*", false}, {"fc?.bias", "fc1.bias", true},
		{"fc?.bias", "fc*.bias", false}, {"fc?", "fc?", true}, {"a*b*", "a*b", true}, {"a*b", "a*bc", false},
	} {
		if got := settings.Covers(tt.first, tt.second); got != tt.want {
			t.Errorf("Covers(%q, %q) = %v, want %v", tt.first, tt.second, got, tt.want)
		}
	}
}
