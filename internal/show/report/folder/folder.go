// Package folder reads run folders for internal/show/report. It takes what is there: a file that is missing, damaged or cut off becomes a
// sentence for the reader of the page, and never an error.
package folder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/report"
)

// Limits of what is read. A run writes no file that is larger, but others may.
const (
	settingsMax   = 4 << 20
	textMax       = 4 << 20
	recordsMax    = 256 << 20
	histogramsMax = 256 << 20
	iterationsMax = 256 << 20
	notesMax      = 10
	countMax      = 1 << 40 // pushes in one row
)

// Is says whether a folder holds a run or what is left of one.
func Is(dir string) bool {
	for _, name := range []string{metrics.SummaryName, metrics.RunInfoName, "metrics.jsonl", timings.FileName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Read reads a run folder. It fails only if there is no run.
func Read(dir string) (*report.Run, error) {
	return read(dir, (*reader).summary, (*reader).settings, (*reader).records, (*reader).iterations,
		(*reader).histograms, (*reader).notes, (*reader).whatIf, (*reader).shares)
}

// Totals reads only the summary and the settings of a run folder.
func Totals(dir string) (*report.Run, error) {
	return read(dir, (*reader).summary, (*reader).settings)
}

func read(dir string, parts ...func(*reader)) (*report.Run, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder; name the folder of a run", dir)
	case !Is(dir):
		return nil, fmt.Errorf("%s holds no run: there is no %s, run.json or metrics.jsonl; name the folder that "+
			"`fluentps run` printed as its run folder, or a folder with runs for `fluentps runs`", dir, metrics.SummaryName)
	}
	in := reader{Folder: durable.Below(dir), run: &report.Run{Folder: dir}}
	defer in.Close()
	for _, part := range parts {
		part(&in)
	}
	return in.run, nil
}

type reader struct {
	*durable.Folder
	run     *report.Run
	earlier bool // the summary is of an earlier start, and so is what belongs to it
}

// file reads a file. needed says what the page lacks without it; "" is for files that may be missing.
func (in *reader) file(name string, most int64, needed string) []byte {
	data, err := in.ReadFile(name, most)
	switch {
	case err == nil:
		return data
	case !errors.Is(err, fs.ErrNotExist):
		in.damage("%s cannot be read: %v", name, err)
	case needed != "":
		in.damage("%s is missing: %s", name, needed)
	}
	return nil
}

func (in *reader) damage(format string, args ...any) {
	in.run.Damage = append(in.run.Damage, foreign.Visible(fmt.Sprintf(format, args...)))
}

// whatIf reads what the simulator told at the end of the run.
func (in *reader) whatIf() {
	data := in.file(metrics.WhatIfName, whatIfMax, "")
	if data == nil || in.earlier {
		return
	}
	var w struct {
		Line       string `json:"line"`
		Candidates []struct {
			Name  string  `json:"name"`
			Ratio float64 `json:"ratio"`
			P50   float64 `json:"staleness_p50"`
			Max   float64 `json:"staleness_max"`
		} `json:"candidates"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		in.damage("%s is damaged and was left out: %v", metrics.WhatIfName, err)
		return
	}
	in.run.WhatIf = &report.WhatIf{Line: w.Line}
	for _, c := range w.Candidates {
		in.run.WhatIf.Candidates = append(in.run.WhatIf.Candidates,
			report.Changed{Name: c.Name, Ratio: c.Ratio, StalenessP50: c.P50, StalenessMax: c.Max})
	}
}

// shares reads how many rows each worker has, if they are dealt unequally.
func (in *reader) shares() {
	data := in.file(metrics.RunInfoName, metrics.SummaryMax, "")
	if data == nil {
		return
	}
	var info struct {
		WorkerRows []int64 `json:"worker_rows"`
	}
	if err := json.Unmarshal(data, &info); err != nil {
		in.damage("%s is damaged: %v", metrics.RunInfoName, err)
		return
	}
	in.run.WorkerRows = info.WorkerRows
}

// whatIfMax is the most bytes that are read of it.
const whatIfMax = 1 << 20

func (in *reader) summary() {
	data := in.file(metrics.SummaryName, metrics.SummaryMax, "the run was killed, or is still running; totals are unknown")
	if data == nil {
		return
	}
	var s metrics.Summary
	if err := json.Unmarshal(data, &s); err != nil {
		in.damage("%s is damaged and was left out: %v", metrics.SummaryName, err)
		return
	}
	if f := (metrics.RunFolder{Folder: in.Folder}); metrics.IsOfEarlier(s.Start, f.StartIn()) {
		in.earlier = true
		in.damage("%s is of an earlier start of the run, and was left out: the newest start was killed, or is still running", metrics.SummaryName)
		return
	}
	in.run.Summary = &s
	if s.Finished != metrics.FinishedOK {
		in.damage("the run did not finish: %s", foreign.Text(s.Finished))
	}
}

// columns are the names in metrics.jsonl and metrics.csv of what a Row holds.
var columns = map[string]func(*report.Row) *float64{
	"at_s":                         func(r *report.Row) *float64 { return &r.At },
	"iteration":                    func(r *report.Row) *float64 { return &r.Iteration },
	"samples":                      func(r *report.Row) *float64 { return &r.Samples },
	records.TrainLoss.String():     func(r *report.Row) *float64 { return &r.TrainLoss },
	records.TrainAccuracy.String(): func(r *report.Row) *float64 { return &r.TrainAccuracy },
	records.TestLoss.String():      func(r *report.Row) *float64 { return &r.TestLoss },
	records.TestAccuracy.String():  func(r *report.Row) *float64 { return &r.TestAccuracy },
	records.TestR2.String():        func(r *report.Row) *float64 { return &r.TestR2 },
	records.SamplesPerS.String():   func(r *report.Row) *float64 { return &r.SamplesPerS },
	records.StalenessP50.String():  func(r *report.Row) *float64 { return &r.StalenessP50 },
	records.StalenessMax.String():  func(r *report.Row) *float64 { return &r.StalenessMax },
	records.BlockedShare.String():  func(r *report.Row) *float64 { return &r.Blocked },
}

// records reads metrics.jsonl, or metrics.csv if the run wrote only that, or if more of it is whole.
func (in *reader) records() {
	known := len(in.run.Damage)
	if data := in.file("metrics.jsonl", recordsMax, ""); data != nil {
		in.jsonl(data)
		if len(in.run.Damage) == known {
			return
		}
	}
	rows := in.run.Rows
	in.run.Rows = nil
	if data := in.file("metrics.csv", recordsMax, ""); data != nil {
		in.csv(data)
	}
	switch {
	case len(in.run.Rows) <= len(rows):
		in.run.Rows = rows
	case len(in.run.Damage) > known:
		in.damage("its records were taken from metrics.csv")
	}
}

func (in *reader) jsonl(data []byte) {
	bad := 0
	for line := range bytes.Lines(data) {
		var cells map[string]*float64
		if err := json.Unmarshal(line, &cells); err != nil {
			bad++
			continue
		}
		row := report.NoRow()
		for name, v := range cells {
			if to := columns[name]; to != nil && v != nil {
				*to(&row) = *v
			}
		}
		in.run.Rows = append(in.run.Rows, row)
	}
	in.lost("metrics.jsonl", bad)
}

func (in *reader) csv(data []byte) {
	var names []string
	bad := 0
	for line := range bytes.Lines(data) {
		cells := strings.Split(strings.TrimRight(string(line), "\r\n"), ",")
		if names == nil {
			names = cells
			continue
		}
		if len(cells) != len(names) || !bytes.HasSuffix(line, []byte("\n")) {
			bad++
			continue
		}
		row := report.NoRow()
		for k, cell := range cells {
			if to := columns[names[k]]; to != nil && cell != "" {
				v, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					v = math.NaN()
				}
				*to(&row) = v
			}
		}
		in.run.Rows = append(in.run.Rows, row)
	}
	in.lost("metrics.csv", bad)
}

func (in *reader) lost(name string, lines int) {
	if lines > 0 {
		in.damage("%s: damaged lines were left out: %d", name, lines)
	}
}

// iterations reads iterations.csv, up to the first line that no run writes.
func (in *reader) iterations() {
	data := in.file(timings.FileName, iterationsMax,
		"the times of iterations, and with them lead, causes of waiting and the Gantt chart, are unknown; a run writes them at its end")
	if data == nil {
		return
	}
	all, err := timings.Parse(bytes.NewReader(data))
	for good := data; err != nil; all, err = timings.Parse(bytes.NewReader(good)) {
		if good = upTo(good, err); good == nil {
			in.damage("%s is damaged and was left out: %v", timings.FileName, err)
			return
		}
		in.run.Cut = true
		in.damage("%s was read up to its first damaged line: %v", timings.FileName, err)
	}
	in.run.Iterations = all
}

// upTo returns the lines before the one that an error names; nil if there are none but the header.
func upTo(data []byte, err error) []byte {
	var line int
	if _, scan := fmt.Sscanf(err.Error(), "line %d:", &line); scan != nil || line <= 2 {
		return nil
	}
	end, n := 0, 1
	for row := range bytes.Lines(data) {
		if n == line {
			return data[:end]
		}
		end, n = end+len(row), n+1
	}
	return nil
}

// histograms adds the counts of all shards up.
func (in *reader) histograms() {
	if in.earlier {
		return
	}
	data := in.file("histograms.csv", histogramsMax, "")
	lines := bufio.NewScanner(bytes.NewReader(data))
	bad := 0
	for n := 0; lines.Scan(); n++ {
		cells := strings.Split(lines.Text(), ",")
		if n == 0 {
			continue
		}
		if len(cells) != 4 {
			bad++
			continue
		}
		value, err1 := strconv.ParseInt(cells[2], 10, 64)
		count, err2 := strconv.ParseInt(cells[3], 10, 64)
		if err1 != nil || err2 != nil || value < 0 || value > metrics.HistMax || count < 0 || count > countMax {
			bad++
			continue
		}
		if cells[1] == "staleness" {
			if in.run.Staleness == nil {
				in.run.Staleness = map[int64]int64{}
			}
			in.run.Staleness[value] += count
		}
	}
	in.lost("histograms.csv", bad)
}

// notes are the NOTEs of summary.txt. Their further lines are indented.
func (in *reader) notes() {
	if in.earlier {
		return
	}
	const head = "NOTE: "
	open := false
	for line := range strings.Lines(string(in.file("summary.txt", textMax, ""))) {
		line = strings.TrimRight(line, "\n")
		last := len(in.run.Notes) - 1
		switch {
		case strings.HasPrefix(line, head) && last+1 < notesMax:
			in.run.Notes, open = append(in.run.Notes, line[len(head):]), true
		case open && strings.HasPrefix(line, strings.Repeat(" ", len(head))):
			in.run.Notes[last] += " " + strings.TrimSpace(line)
		default:
			open = false
		}
	}
}
