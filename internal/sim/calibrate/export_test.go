package calibrate

import "time"

// What the tests of this room look into.

type Timed = timed

func (t timed) Batch() float64 { return t.batch }

func (t timed) Mean() float64 { return t.mean }

func TimedOf(batch, mean float64) Timed { return timed{batch: batch, mean: mean, n: 1} }

var (
	FitCost     = fitCost
	FitCompute  = fitCompute
	DecimalText = decimalText
)

// Window is how much of a recording the fit uses.
func Window(r *Recording) (n int, end time.Duration) { return r.window() }

const RecordedMax = recordedMax
