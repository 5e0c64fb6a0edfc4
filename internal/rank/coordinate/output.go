package coordinate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
)

// RankInfo is one row of run.json's rank map.
type RankInfo struct {
	Rank int    `json:"rank"`
	Role string `json:"role"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Device is what the rank computes on; "": it does not compute.
	Device string `json:"device,omitempty"`
	// KernelSet names the kernels, which decide the last bits of results.
	KernelSet string `json:"kernel_set,omitempty"`
	// CUDAAware says whether MPI reaches the memory of the rank's GPU: yes, or why not.
	CUDAAware string `json:"cuda_aware_mpi,omitempty"`
}

func (r *Run) rankMap() []RankInfo {
	all := make([]RankInfo, len(r.station.Hosts))
	for i := range all {
		all[i] = RankInfo{Rank: i, Role: r.station.Roles.Name(i), Host: r.station.Hosts[i], PID: r.PIDs[i],
			Device: r.Units[i].Name, KernelSet: r.Units[i].KernelSet, CUDAAware: r.Units[i].CUDAAware}
	}
	return all
}

// WriteStart writes what is known before training, so that a job that dies leaves its inputs behind.
func (r *Run) WriteStart(f *metrics.RunFolder) error {
	for _, name := range slices.Sorted(maps.Keys(r.o.Lead.Files)) {
		if err := f.Write(name, r.o.Lead.Files[name]); err != nil {
			return err
		}
	}
	if err := f.Write("plan.txt",
		[]byte(layout.Text(r.station.Config, r.station.Plan, r.station.Roles, r.station.Hosts, r.station.Set, r.station.Link))); err != nil {
		return err
	}
	for name, of := range map[string][]string{"row_names.txt": r.station.Set.RowNames, "column_names.txt": r.station.Set.ColumnNames} {
		if of == nil {
			continue
		}
		if err := f.Write(name, []byte(strings.Join(of, "\n")+"\n")); err != nil {
			return err
		}
	}
	info := map[string]any{"ranks": r.rankMap(), "data_sha256": r.station.Set.SHA256(), "mode": r.o.Mode,
		"start": r.Token, "build": r.o.Build, "config_sha256": r.o.Hash}
	if names := r.station.Set.ClassNames; names != nil {
		info["classes"] = names
	}
	if t := r.targets(); t != nil {
		info["targets"] = t
	}
	if rows := r.workerRows(); rows != nil {
		info["worker_rows"] = rows
	}
	if names := csv.Names(r.station.Set.Columns); names != nil {
		info["columns"] = names
		info["inputs"] = r.inputs()
	}
	maps.Copy(info, r.o.Lead.RunInfo)
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("run.json: %w", err)
	}
	return f.Write(metrics.RunInfoName, append(text, '\n'))
}

// targets says what predictions mean, if they are not numbers as the files have them.
func (r *Run) targets() *checkpoint.Targets {
	t := r.station.Set.Targets
	if t == (dataset.Targets{}) || t == (dataset.Targets{Deviation: 1}) {
		return nil
	}
	return &checkpoint.Targets{Mean: t.Mean, Deviation: t.Deviation}
}

// workerRows are the training rows of each rank that computes, if they are dealt unequally.
func (r *Run) workerRows() (rows []int) {
	c := r.station.Config
	if c.Data.Skew == (dataset.Skew{}) {
		return nil
	}
	shares, err := r.station.Set.Shares(c.Data.Skew, r.station.Roles.Computes(), c.Seed)
	if err != nil { // which the set-up has checked
		return nil
	}
	for _, share := range shares {
		rows = append(rows, len(share))
	}
	return rows
}

// Open starts the output of rank 0: the echo of the input, and the metrics files.
func (l *Lead) Open() error {
	r := l.r
	var b strings.Builder
	const shown = 16
	for i, q := range r.rankMap() {
		if i == shown {
			fmt.Fprintf(&b, "  ... and %d more, see run.json\n", len(r.station.Hosts)-shown)
			break
		}
		fmt.Fprintf(&b, "  rank %-4d %-8s host %s pid %d", q.Rank, q.Role, q.Host, q.PID)
		if r.Units[i].ID != "" {
			fmt.Fprintf(&b, " on %s", q.Device)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Plan: %s, %s, %s, %s", metrics.Count(len(r.station.Roles.Servers), "server"),
		metrics.Count(len(r.station.Roles.Workers), "worker"), metrics.Count(len(r.station.Plan.Shards), "shard"),
		metrics.Count(r.station.Plan.Arena, "parameter"))
	if r.station.Config.Baseline != configs.BaselineNone {
		fmt.Fprintf(&b, "; baseline %s", metrics.BaselineText(r.station.Config.Baseline, r.station.Config.BaselineKeys, r.algorithm()))
	}
	fmt.Fprintf(&b, "; data %s: %d training rows, %d test rows\n", r.station.Config.Data.Set, r.station.Set.Train.Rows(),
		r.station.Set.Test.Rows())
	for _, line := range r.station.Set.Found {
		fmt.Fprintf(&b, "Data: %s\n", foreign.Visible(line))
	}
	if rows := r.workerRows(); rows != nil {
		fmt.Fprintf(&b, "Data: workers have %d to %d of the training rows\n", slices.Min(rows), slices.Max(rows))
	}
	if r.From != nil {
		if other := otherKernels(setsOf(r.From.Manifest), kernelSets(r.Units)); other != "" {
			fmt.Fprintf(&b, "WARNING: %s\n", other)
		}
	}
	for _, w := range slices.Concat(layout.Warnings(r.station.Config, r.station.Plan, r.station.Roles),
		layout.ReplicaWarnings(r.station.Config, r.station.Hosts), unitWarnings(r.Units, r.station.Hosts)) {
		fmt.Fprintf(&b, "WARNING: %s\n", w)
	}
	if r.Folder != nil {
		fmt.Fprintf(&b, "Run folder: %s\n", r.Dir())
		if r.From != nil {
			b.WriteString(r.From.Text())
		}
		sinks, err := r.openSinks()
		if err != nil {
			return err
		}
		l.out.sinks = sinks
	}
	l.print(b.String() + "\n")
	return nil
}

// writeEnd prints the breakdown and writes the summaries, each one completely or not at all.
func (r *Run) writeEnd(s *metrics.Summary) error {
	var text strings.Builder
	if r.Lead.checkpoints.final != "" {
		fmt.Fprintf(&text, checkpointLabel+"%s\n", r.Lead.checkpoints.final)
		if s.Finished != metrics.FinishedOK {
			fmt.Fprintf(&text, "  to resume from it: the same command with --resume %s, without --out\n", r.Dir())
		}
	}
	if err := metrics.WriteText(&text, s, metrics.TextWidth); err != nil {
		return err
	}
	if kept := r.Lead.out.kept; kept != nil && r.Lead.counts.version == r.From.State.Version && s.Finished == metrics.FinishedOK {
		r.Lead.print("\n" + kept.text + "\nNothing was left to train, so the summary above is still that of the run: to " +
			"continue, raise train.stop\n")
		// a supervisor knows by it that this start has ended by itself
		return r.Folder.Write(metrics.SummaryName, metrics.WithStart(kept.json, r.Token))
	}
	r.Lead.print("\n" + text.String())
	if r.Folder == nil {
		return nil
	}
	f := r.Folder
	writeErr := errors.Join(f.Write("summary.txt", []byte(text.String())), f.Write("histograms.csv", s.HistogramsCSV()))
	if writeErr != nil && s.Finished == metrics.FinishedOK {
		s.Finished = "failed: " + writeErr.Error()
	}
	data, err := s.JSON()
	if err != nil {
		return err
	}
	return errors.Join(writeErr, f.Write(metrics.SummaryName, data))
}

// RemoveSummary removes the summary of the previous part of a run that is resumed, and what the simulator told of it:
// the run is not finished any more. The summary of a run that has finished stays if nothing is left to train.
func (r *Run) RemoveSummary() error {
	if r.station.Me != 0 || r.From == nil && !r.Search.Again {
		return nil
	}
	if r.From != nil && r.hasNothingLeft() {
		if r.Lead.out.kept = r.finishedBefore(); r.Lead.out.kept != nil {
			return nil
		}
	}
	if err := r.Folder.Remove(metrics.SummaryName); err != nil {
		return err
	}
	return r.Folder.Remove(metrics.WhatIfName)
}

// hasNothingLeft says whether the checkpoint that the run resumes from has used up the budget.
func (r *Run) hasNothingLeft() bool {
	budget, stop := layout.BudgetOf(r.station.Config, r.station.Set.Train.Rows(), r.station.Roles), &r.station.Config.Train.Stop
	return budget.Spent(r.From.Manifest.Samples, r.From.State.Version) || stop.Time > 0 && r.From.State.Trained >= stop.Time
}

// finished is the summary of a run that has finished.
type finished struct {
	json []byte
	text string // summary.txt, without the line of a checkpoint
}

// finishedBefore reads the summary in the folder of a run that has finished; nil if the run has not, or if a file cannot be read.
func (r *Run) finishedBefore() *finished {
	var s struct{ Finished string }
	data, err := durable.ReadFile(filepath.Join(r.Dir(), metrics.SummaryName), metrics.SummaryMax)
	if err != nil || json.Unmarshal(data, &s) != nil || s.Finished != metrics.FinishedOK {
		return nil
	}
	text, err := durable.ReadFile(filepath.Join(r.Dir(), "summary.txt"), metrics.SummaryMax)
	if err != nil {
		return nil
	}
	if first, rest, _ := strings.Cut(string(text), "\n"); strings.HasPrefix(first, checkpointLabel) { // this part writes none
		return &finished{data, rest}
	}
	return &finished{data, string(text)}
}

// checkpointLabel begins the line of the summary that names the final checkpoint.
const checkpointLabel = "Checkpoint: "
