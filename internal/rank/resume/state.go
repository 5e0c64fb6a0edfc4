package resume

import (
	"time"

	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics"
)

// LeadState is the state of rank 0.
type LeadState struct {
	Arena    string            `json:"arena"` // the hash of ArenaOf
	Accepted int64             `json:"accepted"`
	Version  int64             `json:"version"`
	LeadMax  int64             `json:"lead_max"`
	Trained  time.Duration     `json:"trained_ns"` // training time since the run began, over all starts
	Loss     metrics.EpochLoss `json:"loss"`
	Evals    []metrics.Evaluation
	Target   *float64         `json:"target_reached_s"`
	Sinks    map[string]int64 `json:"sinks"`             // bytes of each metrics file
	Changes  []metrics.Change `json:"changes,omitempty"` // of schemes, for stragglers
	// Standstills is how many runs in a row resumed from this checkpoint and made no progress.
	Standstills int `json:"standstills,omitempty"`
	// Work is the assignment of batches, in a run whose batches change.
	Work *work.Saved `json:"work,omitempty"`
}
