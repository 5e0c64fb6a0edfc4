package diag_test

import (
	"slices"
	"testing"

	"fluentps/internal/configs/diag"
)

func TestNearest(t *testing.T) {
	legal := []string{"bsp", "asp", "ssp", "staleness", "batch_per_worker"}
	for word, want := range map[string][]string{
		"bps": {"bsp"}, "BSP": {"bsp"}, "sp": {"bsp", "asp", "ssp"}, "stalenes": {"staleness"}, "stelanes": nil,
		"batch-per-worker": {"batch_per_worker"}, "": nil, "x": nil, "xy": nil, "stlaenses": {"staleness"},
	} {
		if got := diag.Nearest(word, legal); !slices.Equal(got, want) {
			t.Errorf("Nearest(%q) = %v, want %v", word, got, want)
		}
	}
}
