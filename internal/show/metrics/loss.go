package metrics

import (
	"encoding/json"
	"fmt"
)

// EpochLoss is the mean train loss over the last complete epoch. Before the first complete epoch it is the mean over all samples.
type EpochLoss struct {
	Rows int64 // samples of an epoch; set before the first Add

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

// Add adds the loss of a push, which is a sum over its samples.
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

// lossState is an EpochLoss without Rows, as JSON.
type lossState struct {
	Sums    [2]float64 `json:"sums"` // of the current epoch, and of the last complete one
	Samples [2]int64   `json:"samples"`
}

// MarshalJSON writes l, without Rows, for a checkpoint.
func (l EpochLoss) MarshalJSON() ([]byte, error) {
	return json.Marshal(lossState{[2]float64{l.epoch.sum, l.last.sum}, [2]int64{l.epoch.samples, l.last.samples}})
}

// UnmarshalJSON reads the output of MarshalJSON. Rows stays unchanged.
func (l *EpochLoss) UnmarshalJSON(data []byte) error {
	var s lossState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	for i, n := range s.Samples {
		if n < 0 {
			return fmt.Errorf("loss.samples[%d] is %d, must be 0 or more: no run writes that", i, n)
		}
	}
	l.epoch, l.last = lossMean{s.Sums[0], s.Samples[0]}, lossMean{s.Sums[1], s.Samples[1]}
	return nil
}

// ConstantFactor is how many times the loss of a constant prediction the loss at the end of a run may be. A run that learns ends below 1;
// one that fits its training data too closely ends at a few times it.
const ConstantFactor = 10

// BesideConstant says that the loss at the end is more than ConstantFactor times that of a constant prediction; "" if
// it is not, or is not known.
func (s *Summary) BesideConstant() string {
	loss, of := s.TestLoss, "test"
	if loss == nil {
		loss, of = s.TrainLoss, "train"
	}
	if loss == nil || s.ConstantLoss == nil || *s.ConstantLoss <= 0 || float64(*loss) <= ConstantFactor*float64(*s.ConstantLoss) {
		return ""
	}
	text := fmt.Sprintf("the %s loss at the end, %.4g, is more than %d times that of a constant prediction, %.4g: the "+
		"run has diverged or has learnt nothing",
		of, float64(*loss), ConstantFactor, float64(*s.ConstantLoss))
	if s.WorseHint != "" {
		text += "; " + s.WorseHint
	}
	return text
}
