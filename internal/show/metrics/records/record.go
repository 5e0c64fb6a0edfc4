// Package records holds the state of a run at one time, and writes it in four forms: a line of JSON, a row of a table, an event for
// TensorBoard, and a text for a monitoring agent. A run that resumes cuts off what it wrote after its checkpoint.
package records

import (
	"fmt"
	"math"
	"time"
)

// Column is a value that a Record may hold in addition to its four fixed ones.
type Column uint8

const (
	TrainLoss     Column = iota // mean over the samples since the last record
	TrainAccuracy               // likewise
	TrainLR                     // of the lead shard
	SamplesPerS                 // over all workers, since the last record
	StalenessP50                // versions, of the pushes to all shards since the last record
	StalenessMax                // likewise
	LeadMax                     // iterations, since the start
	BlockedShare                // 0..1, mean over workers since the last record
	DelayedPulls                // since the start, at all shards: pulls that a scheme delayed, and pushes that waited for their turn
	TestLoss                    // of an evaluation
	TestAccuracy                // likewise
	TestMSE                     // likewise, of numbers to predict; in the unit of the files
	TestMAE                     // likewise
	TestR2                      // likewise
	columnCount
)

// columnNames gives the columns their order and spelling in every sink.
var columnNames = [columnCount]string{
	TrainLoss:     "train/loss",
	TrainAccuracy: "train/accuracy",
	TrainLR:       "train/lr",
	SamplesPerS:   "samples_per_s",
	StalenessP50:  "sync/staleness_p50",
	StalenessMax:  "sync/staleness_max",
	LeadMax:       "sync/lead_max",
	BlockedShare:  "sync/blocked_share",
	DelayedPulls:  "sync/delayed_pulls",
	TestLoss:      "test/loss",
	TestAccuracy:  "test/accuracy",
	TestMSE:       "test/mse",
	TestMAE:       "test/mae",
	TestR2:        "test/r2",
}

// String is the name of the column in every sink.
func (c Column) String() string { return columnNames[c] }

// ColumnNames lists all columns of a run with so many rules of sync, in order: the four fixed ones, then those of Column, then
// those of each rule.
func ColumnNames(rules int) []string {
	names := append([]string{"at_s", "iteration", "epoch", "samples"}, columnNames[:]...)
	for rule := range rules {
		for _, what := range ruleColumns {
			names = append(names, fmt.Sprintf("sync[%d]/%s", rule, what))
		}
	}
	return names
}

// ruleColumns are the columns of one rule; see Staleness.
var ruleColumns = [...]string{"staleness_p50", "staleness_p99", "staleness_max"}

// Staleness is the staleness of the pushes to the shards of one rule since the last record, in versions.
type Staleness struct {
	Pushes        int64 // the number of these pushes; with 0 the other fields mean nothing
	P50, P99, Max int64
}

// Record is the state of a run at one time. It is a plain value: Rules is never changed, so a copy is independent.
type Record struct {
	At        time.Duration // since the start of the run
	Iteration int64         // of the run: accepted pushes of the lead shard / workers
	Epoch     float64
	Samples   int64 // over all workers
	Rules     []Staleness

	values  [columnCount]float64
	present uint16 // bit c: values[c] is set
}

// Set gives column c the value v. A v that is not finite is a value, too, because a reader must see that a loss is NaN.
func (r *Record) Set(c Column, v float64) {
	r.values[c] = v
	r.present |= 1 << c
}

// Get returns the value of column c, and whether it is set. Without a value it returns NaN.
func (r *Record) Get(c Column) (float64, bool) {
	if r.present&(1<<c) == 0 {
		return math.NaN(), false
	}
	return r.values[c], true
}
