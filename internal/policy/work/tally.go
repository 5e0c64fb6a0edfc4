package work

import (
	"slices"
	"time"
)

// Tally adds up what a worker computes under one plan. Checkpoints hold it.
type Tally struct {
	Until      int64           `json:"until"` // the end of the plan
	Iterations int64           `json:"iterations"`
	Samples    int64           `json:"samples"`
	Took       time.Duration   `json:"took_ns"`
	Times      []time.Duration `json:"times_ns,omitempty"` // of the first whole batches
}

// TimesMax is how many times a median is made of, at most.
const TimesMax = 256

// Begin forgets everything: a plan begins.
func (t *Tally) Begin(until int64) { *t = Tally{Until: until, Times: t.Times[:0]} }

// Add counts an iteration. whole says that it had all samples of a batch.
func (t *Tally) Add(samples int64, took time.Duration, whole bool) {
	t.Iterations++
	t.Samples += samples
	t.Took += took
	if whole && len(t.Times) < TimesMax {
		t.Times = append(t.Times, took)
	}
}

// Measured is what the worker reports. Without a whole batch the mean stands for the median.
func (t *Tally) Measured() Measured {
	m := Measured{Iterations: t.Iterations, Samples: t.Samples, Took: t.Took}
	if n := len(t.Times); n > 0 {
		sorted := slices.Sorted(slices.Values(t.Times))
		m.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
	} else if t.Iterations > 0 {
		m.Median = t.Took / time.Duration(t.Iterations)
	}
	return m
}

// Clone is a copy that shares no memory.
func (t *Tally) Clone() Tally {
	c := *t
	c.Times = slices.Clone(t.Times)
	return c
}
