package metrics

import (
	"math"

	"fluentps/internal/show/metrics/records"
)

// Measure is what evaluations say of a run beside its loss.
type Measure uint8

const (
	Hits   Measure = iota // the share of the rows whose class is right: the accuracy
	Misses                // how far numbers are off: MSE and its root, MAE, and R2
	None                  // nothing: only the model knows what its loss is
)

// Judge makes the results of a run's evaluations.
type Judge struct {
	Measure
	Rows      int64   // of the test set
	Deviation float64 // the unit of errors in that of the files
	Spread    float64 // the mean squared distance of what is to be predicted from its mean, in the unit of errors
}

// Sums are those of an evaluation over the test rows.
type Sums struct {
	Loss              float64
	Correct           int64
	Absolute, Squared float64 // sizes and squares of errors
}

// Judge sets the results of an evaluation.
func (e *Evaluation) Judge(j Judge, s Sums) {
	rows := float64(j.Rows)
	e.TestLoss = Some(s.Loss / rows)
	switch j.Measure {
	case Hits:
		e.TestAccuracy = Some(float64(s.Correct) / rows)
	case Misses:
		mse := s.Squared / rows
		e.TestMSE, e.TestRMSE = Some(mse*j.Deviation*j.Deviation), Some(math.Sqrt(mse)*j.Deviation)
		e.TestMAE, e.TestR2 = Some(s.Absolute/rows*j.Deviation), Some(1-mse/j.Spread)
	}
}

// Record adds the results to a record.
func (e *Evaluation) Record(r *records.Record) {
	for column, v := range map[records.Column]*Float{records.TestLoss: e.TestLoss, records.TestAccuracy: e.TestAccuracy,
		records.TestMSE: e.TestMSE, records.TestMAE: e.TestMAE, records.TestR2: e.TestR2} {
		if v != nil {
			r.Set(column, float64(*v))
		}
	}
}

// Score is what a target is of: the accuracy, or R2; NaN: there is neither.
func (e *Evaluation) Score() float64 {
	switch {
	case e.TestAccuracy != nil:
		return float64(*e.TestAccuracy)
	case e.TestR2 != nil:
		return float64(*e.TestR2)
	}
	return math.NaN()
}

// Unjudged sets the results of a run without an evaluation: with numbers to predict their errors are present but not numbers, see Judge. A
// run that fails before its first evaluation keeps them.
func (s *Summary) Unjudged(m Measure) {
	if m == Misses {
		s.Evaluated.noMisses()
	}
}

// Evaluated are the results of an evaluation beside its loss, as means over the test rows. They are in the unit of the files.
type Evaluated struct {
	TestAccuracy *Float `json:"test_accuracy"`       // null if there are no classes
	TestRMSE     *Float `json:"test_rmse,omitempty"` // the root of test_mse
	TestMSE      *Float `json:"test_mse,omitempty"`  // the squares of errors; those that follow are null if there are classes
	TestMAE      *Float `json:"test_mae,omitempty"`  // their sizes
	TestR2       *Float `json:"test_r2,omitempty"`   // 1 - MSE / variance of the test rows: 1 at best, 0 of their mean
}

func (e *Evaluated) noMisses() {
	e.TestRMSE, e.TestMSE, e.TestMAE, e.TestR2 = Some(math.NaN()), Some(math.NaN()), Some(math.NaN()), Some(math.NaN())
}

// score is a result for people.
type score struct{ name, value string }

// scores are the results of an evaluation, the most telling first.
func (e *Evaluated) scores() []score {
	if e.TestRMSE == nil {
		return []score{{"accuracy", optional(e.TestAccuracy, 4)}}
	}
	return []score{{"RMSE", optional(e.TestRMSE, 4)}, {"MAE", optional(e.TestMAE, 4)}, {"R2", optional(e.TestR2, 4)}}
}
