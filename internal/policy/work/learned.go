package work

// Learned is what the policy of a worker that computes in steps has learned. Checkpoints hold it.
type Learned struct {
	Policy  string    `json:"policy"`
	Workers int       `json:"workers"`
	Numbers []float64 `json:"numbers"`
}

// NewLearned is what a policy has learned in a run of so many workers; nil if it has learned nothing.
func NewLearned(policy string, workers int, numbers []float64) *Learned {
	if numbers == nil {
		return nil
	}
	return &Learned{policy, workers, numbers}
}

// Of returns the numbers for a policy in a run of so many workers; nil if they say nothing of it.
func (l *Learned) Of(policy string, workers int) []float64 {
	if l == nil || l.Policy != policy || l.Workers != workers {
		return nil
	}
	return l.Numbers
}
