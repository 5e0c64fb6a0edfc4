// Package metrics turns what a run measured into what a reader sees: records while it runs (metrics.jsonl,
// metrics.csv, a progress line), a summary after it (summary.json, summary.txt), logs per rank, and the run
// folder that holds them.
//
// Formatting is pure: it reads no clock and times come in as values. Only the run folder, OpenSinks and OpenLog
// touch the file system.
package metrics
