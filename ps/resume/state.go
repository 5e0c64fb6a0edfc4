package resume

import (
	"time"

	"fluentps/ps/metrics"
)

// LeadState is what rank 0 counts.
type LeadState struct {
	Arena    string            `json:"arena"` // which parameter lies where in it
	Accepted int64             `json:"accepted"`
	Version  int64             `json:"version"`
	LeadMax  int64             `json:"lead_max"`
	Trained  time.Duration     `json:"trained_ns"` // since the run began, over all its parts
	Loss     metrics.EpochLoss `json:"loss"`
	Evals    []metrics.Evaluation
	Target   *float64         `json:"target_reached_s"`
	Sinks    map[string]int64 `json:"sinks"` // bytes of the metrics files
	// Standstills is how many runs in a row went on from this checkpoint and came no further.
	Standstills int `json:"standstills,omitempty"`
}
