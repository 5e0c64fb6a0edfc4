package metrics

import (
	"encoding/json"
	"fmt"
)

// EpochLoss is the mean train loss over the last epoch that is complete, or over all samples before there is one.
// Rows, the samples of an epoch, is set before the first Add.
type EpochLoss struct {
	Rows int64

	epoch, last lossMean // of the current epoch, and of the last complete one
}

// lossMean is a mean over samples.
type lossMean struct {
	sum     float64
	samples int64
}

func (m lossMean) value() *Float {
	if m.samples == 0 {
		return nil
	}
	return Some(m.sum / float64(m.samples))
}

// Add takes the loss of a push, a sum over its samples.
func (l *EpochLoss) Add(loss float64, samples int64) {
	if l.epoch.samples >= l.Rows {
		l.last, l.epoch = l.epoch, lossMean{}
	}
	l.epoch.sum += loss
	l.epoch.samples += samples
}

// Value is nil before the first sample.
func (l *EpochLoss) Value() *Float {
	if l.epoch.samples >= l.Rows || l.last.samples == 0 {
		return l.epoch.value()
	}
	return l.last.value()
}

// lossState is an EpochLoss as JSON, but for Rows.
type lossState struct {
	Sums    [2]float64 `json:"sums"` // of the current epoch, and of the last complete one
	Samples [2]int64   `json:"samples"`
}

// MarshalJSON saves it in a checkpoint.
func (l EpochLoss) MarshalJSON() ([]byte, error) {
	return json.Marshal(lossState{[2]float64{l.epoch.sum, l.last.sum}, [2]int64{l.epoch.samples, l.last.samples}})
}

// UnmarshalJSON reads what MarshalJSON wrote; Rows stays.
func (l *EpochLoss) UnmarshalJSON(data []byte) error {
	var s lossState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	for i, n := range s.Samples {
		if n < 0 {
			return fmt.Errorf("loss.samples[%d] is %d, must be 0 or more: no run has written that", i, n)
		}
	}
	l.epoch, l.last = lossMean{s.Sums[0], s.Samples[0]}, lossMean{s.Sums[1], s.Samples[1]}
	return nil
}
