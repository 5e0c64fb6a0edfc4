// Package metrics writes the measurements of a run for readers: a progress line while it runs, a summary at its end (summary.json,
// summary.txt, histograms.csv) with NOTEs on what would be faster, a log per rank, and the run folder with all of these. Below it
// and unknown to it lie the measurements that are a row each: records holds those of a run at one time (metrics.jsonl, metrics.csv
// and other forms), timings those of each worker's iterations (iterations.csv).
//
// Formatting is pure: it reads no clock, and times are arguments. Only run folders touch the file system.
package metrics
