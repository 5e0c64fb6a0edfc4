// Package metrics writes the measurements of a run for readers: records during the run (metrics.jsonl, metrics.csv, a
// progress line), a summary at its end (summary.json, summary.txt), a log per rank, and the run folder with all of these.
//
// Formatting is pure: it reads no clock, and times are arguments. Only run folders and ReadIterations touch the file system.
package metrics
