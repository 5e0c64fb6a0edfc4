package records

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
)

// The sink openmetrics keeps the newest values in one text file, which a monitoring agent reads whenever it likes. The text is both
// OpenMetrics 1.0 and the older text format of Prometheus, whose agents read files that end with .prom: no timestamps, and only
// types that both know.

// OpenMetricsName is the file of the sink openmetrics.
const OpenMetricsName = "metrics.prom"

// family is a column as a metric family.
type family struct {
	name    string // with its unit last; a counter's samples have _total behind it
	unit    string // "": none
	counter bool   // it never goes down while the run trains
	help    string
}

// families are the metric families: one for each cell of a record, in the order of ColumnNames; then those of each rule.
var families = [fixedCells + int(columnCount) + len(ruleColumns)]family{
	{"fluentps_trained_seconds", "seconds", false, "Training time at the newest record."},
	{"fluentps_iterations", "", true, "Iterations of the run: accepted pushes of the lead shard, for each worker."},
	{"fluentps_epochs", "", false, "Accepted samples, in passes over the training rows."},
	{"fluentps_samples", "", true, "Accepted samples, over all workers."},
	fixedCells + int(TrainLoss):     {"fluentps_train_loss", "", false, "Mean loss of the samples since the record before."},
	fixedCells + int(TrainAccuracy): {"fluentps_train_accuracy", "", false, "Accuracy on the samples since the record before."},
	fixedCells + int(TrainLR):       {"fluentps_train_lr", "", false, "Learning rate of the lead shard."},
	fixedCells + int(SamplesPerS):   {"fluentps_samples_per_s", "", false, "Samples per second over all workers, since the record before."},
	fixedCells + int(StalenessP50): {"fluentps_staleness_p50_versions", "versions", false,
		"Median staleness of the pushes since the record before."},
	fixedCells + int(StalenessMax): {"fluentps_staleness_max_versions", "versions", false,
		"Largest staleness of the pushes since the record before."},
	fixedCells + int(LeadMax): {"fluentps_lead_max_iterations", "iterations", false, "Largest lead of a worker since the start."},
	fixedCells + int(BlockedShare): {"fluentps_blocked_ratio", "ratio", false,
		"Share of the time since the record before in which workers were blocked."},
	fixedCells + int(DelayedPulls): {"fluentps_delayed_pulls", "", true,
		"Pulls that a scheme delayed, and pushes that waited for their turn."},
	fixedCells + int(TestLoss):     {"fluentps_test_loss", "", false, "Loss of the newest evaluation."},
	fixedCells + int(TestAccuracy): {"fluentps_test_accuracy", "", false, "Accuracy of the newest evaluation."},
	fixedCells + int(TestMSE):      {"fluentps_test_mse", "", false, "Mean squared error of the newest evaluation."},
	fixedCells + int(TestMAE):      {"fluentps_test_mae", "", false, "Mean absolute error of the newest evaluation."},
	fixedCells + int(TestR2):       {"fluentps_test_r2", "", false, "R2 of the newest evaluation."},

	ruleCells: {"fluentps_rule_staleness_p50_versions", "versions", false,
		"Median staleness of the pushes to the shards of a rule of sync."},
	ruleCells + 1: {"fluentps_rule_staleness_p99_versions", "versions", false, "The 99th percentile of this staleness."},
	ruleCells + 2: {"fluentps_rule_staleness_max_versions", "versions", false, "Largest staleness of this kind."},
}

// ruleCells is the number of cells before those of rules.
const ruleCells = fixedCells + int(columnCount)

type openMetrics struct {
	write  func(text []byte) error
	labels []string // of all metrics, then of each rule, in braces
	values []float64
	has    []bool
	at     time.Duration // of the newest record
}

// OpenMetrics calls write with the whole text after every record.
func OpenMetrics(write func(text []byte) error, of Subject) Sink {
	n := ruleCells + len(of.Rules)*len(ruleColumns)
	s := &openMetrics{write: write, values: make([]float64, n), has: make([]bool, n)}
	run := "run=" + labelValue(of.Run)
	s.labels = append(s.labels, "{"+run+"}")
	for i, r := range of.Rules {
		s.labels = append(s.labels, fmt.Sprintf(`{%s,rule="%d",match=%s,scheme=%s}`, run, i, labelValue(r.Match), labelValue(r.Scheme)))
	}
	return s
}

// openOpenMetrics writes to the run folder. Readers find a whole file: it is written under another name, and renamed. Nothing is
// synced, because a crash of the host makes the values useless.
func openOpenMetrics(in *durable.Folder, of Subject) Sink {
	return OpenMetrics(func(text []byte) error {
		beside := durable.Beside(OpenMetricsName)
		file, err := in.Renew(beside)
		if err == nil {
			_, err = file.Write(text)
			err = errors.Join(err, file.Close())
		}
		if err == nil {
			err = in.Move(beside, OpenMetricsName)
		}
		if err != nil {
			return fmt.Errorf("metrics: write record: %w", err)
		}
		return nil
	}, of)
}

// Record keeps the newest value of each column. The record of an evaluation may be older than one before it: then it has no news but its
// own columns.
func (s *openMetrics) Record(r Record) error {
	isNew := r.At >= s.at
	s.at = max(s.at, r.At)
	for c := range min(len(s.values), ruleCells+len(r.Rules)*len(ruleColumns)) {
		if v, ok := r.cell(c); ok && (isNew || c >= fixedCells) {
			s.values[c], s.has[c] = v, true
		}
	}
	return s.write(s.text())
}

func (s *openMetrics) Close() error { return nil }

func (s *openMetrics) text() []byte {
	var b []byte
	for c := range families {
		b = s.appendFamily(b, c)
	}
	return append(b, "# EOF\n"...)
}

// appendFamily writes a family with its samples, or nothing if it has none.
func (s *openMetrics) appendFamily(b []byte, c int) []byte {
	f := &families[c]
	kind, suffix := "gauge", ""
	if f.counter {
		kind, suffix = "counter", "_total"
	}
	begun := false
	sample := func(cell int, labels string) {
		if !s.has[cell] {
			return
		}
		if !begun {
			begun = true
			b = append(b, "# TYPE "+f.name+" "+kind+"\n"...)
			if f.unit != "" {
				b = append(b, "# UNIT "+f.name+" "+f.unit+"\n"...)
			}
			b = append(b, "# HELP "+f.name+" "+f.help+"\n"...)
		}
		b = append(b, f.name+suffix+labels+" "...)
		b = append(appendOpenNumber(b, s.values[cell]), '\n')
	}
	if c < ruleCells {
		sample(c, s.labels[0])
		return b
	}
	for rule, labels := range s.labels[1:] {
		sample(c+rule*len(ruleColumns), labels)
	}
	return b
}

func appendOpenNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendFloat(b, v, 'g', -1, 64) // NaN, +Inf, -Inf
	}
	return appendNumber(b, v)
}

// labelValue quotes the value of a label. Whatever a terminal would obey is made visible.
func labelValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(foreign.Visible(text)) + `"`
}
