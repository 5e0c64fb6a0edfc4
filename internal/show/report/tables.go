package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
)

// Table is a table in a form that HTML, CSV and LaTeX are made from.
type Table struct {
	ID, Caption string
	Columns     []Column
	Rows        [][]Cell
}

// Column is the head of a column.
type Column struct {
	Head string // for people
	Key  string // for programs, with its unit
	Text bool   // texts, aligned to the left; else numbers
	Wide bool   // for CSV only
}

// Cell is one entry: a text, or a number with its deviation.
type Cell struct {
	Text string // as people read it
	Link string // to the page of a run, in an index
	spread
}

func textCell(s string) Cell { return Cell{Text: foreign.Visible(s)} }

func numberCell(v float64, format func(float64) string) Cell {
	return spreadCell(spreadOf([]float64{v}), format)
}

func spreadCell(s spread, format func(float64) string) Cell {
	if s.n == 0 {
		return Cell{Text: absent, spread: s}
	}
	return Cell{Text: s.text(format), spread: s}
}

// whatIfTable shows what the simulator told after a run.
func whatIfTable(w *WhatIf) *Table {
	t := &Table{ID: "what-if", Caption: "What if: simulated with the computing times of this run; speed only, nothing was trained",
		Columns: []Column{{"what", "what", true, false}, {"times as fast", "ratio", false, false},
			{"staleness p50", "staleness_p50_versions", false, false}, {"staleness max", "staleness_max_versions", false, false}}}
	for _, c := range w.Candidates {
		t.Rows = append(t.Rows,
			[]Cell{textCell(c.Name), numberCell(c.Ratio, func(v float64) string { return fixed(v, 2) }),
				numberCell(c.StalenessP50, short), numberCell(c.StalenessMax, short)})
	}
	return t
}

// ranking is the table of a comparison.
func ranking(order []*standing, target *Target) *Table {
	t := &Table{ID: "comparison", Caption: "Comparison, the best first"}
	t.Columns = []Column{{"run", "run", true, false}, {"seeds", "seeds", false, false}}
	if target != nil {
		t.Caption += "; target: " + target.text()
		t.Columns = append(t.Columns, Column{"time to target", "time_to_target_s", false, false},
			Column{"×\u00a0best", "ratio_to_best", false, false},
			Column{"reached by", "reached", false, true}, Column{"samples to target", "samples_to_target", false, false},
			Column{"steps to target", "steps_to_target", false, true})
	}
	t.Columns = append(t.Columns, Column{"samples/s", "samples_per_s", false, false}, Column{"final accuracy", "test_accuracy", false, false},
		Column{"final test loss", "test_loss", false, false}, Column{"train time", "train_s", false, true},
		Column{"blocked", "blocked_share", false, false},
		Column{"staleness p50", "staleness_p50", false, false}, Column{"staleness max", "staleness_max", false, false},
		Column{"bytes/sample", "bytes_sent_per_sample", false, true})
	predicts := slices.ContainsFunc(order, func(s *standing) bool { return anyPredicts(s.Runs) })
	if predicts {
		t.Columns = append(t.Columns, Column{"final R2", "test_r2", false, false}, Column{"final RMSE", "test_rmse", false, false})
	}
	number := func(digits int) func(float64) string { return func(v float64) string { return fixed(v, digits) } }
	last := func(s *standing, get func(*metrics.Summary) *metrics.Float) spread {
		return s.over(func(r *Run) float64 { return summed(r, func(s *metrics.Summary) float64 { return optional(get(s)) }) })
	}
	for _, s := range order {
		row := []Cell{textCell(s.Label), numberCell(float64(len(s.Runs)), number(0))}
		if target != nil {
			row = append(row, spreadCell(s.time, seconds), numberCell(s.time.mean/order[0].time.mean, short),
				numberCell(float64(s.reached), number(0)),
				spreadCell(s.samples, short), spreadCell(s.steps, short))
		}
		row = append(row, spreadCell(s.speed, short),
			spreadCell(s.over(func(r *Run) float64 { return r.final(func(w *Row) float64 { return w.TestAccuracy }) }), number(4)),
			spreadCell(s.over(func(r *Run) float64 { return r.final(func(w *Row) float64 { return w.TestLoss }) }), number(4)),
			spreadCell(s.over(func(r *Run) float64 { return summed(r, func(s *metrics.Summary) float64 { return float64(s.TrainS) }) }), seconds),
			spreadCell(s.lost, percent), spreadCell(s.staleness, short), spreadCell(s.stalenessMost, short),
			spreadCell(s.over(func(r *Run) float64 { return perSample(r, func(r *Run) int64 { return r.Summary.BytesSent }) }), short))
		if predicts {
			row = append(row, spreadCell(last(s, func(s *metrics.Summary) *metrics.Float { return s.TestR2 }), number(4)),
				spreadCell(last(s, func(s *metrics.Summary) *metrics.Float { return s.TestRMSE }), short))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func summed(r *Run, get func(*metrics.Summary) float64) float64 {
	if r.Summary == nil {
		return math.NaN()
	}
	return get(r.Summary)
}

// RunsTable has a row for each run. Runs of one name are told apart by what the user set, the seed too.
func RunsTable(runs []*Run) *Table { return runsTable(runs, naming{list: true, keep: true}) }

func runsTable(runs []*Run, how naming) *Table {
	t := &Table{ID: "runs", Caption: "All runs", Columns: []Column{
		{"run", "run", true, false}, {"state", "finished", true, false}, {"mode", "mode", true, false},
		{"scheme", "scheme", true, false}, {"seed", "seed", false, false},
		{"servers", "servers", false, true}, {"workers", "workers", false, false},
		{"iterations", "iterations", false, true}, {"samples", "samples", false, true},
		{"train time", "train_s", false, false}, {"wall time", "wall_s", false, true}, {"samples/s", "samples_per_s", false, false},
		{"train loss", "train_loss", false, false}, {"test loss", "test_loss", false, true}, {"accuracy", "test_accuracy", false, false},
		{"folder", "folder", true, false},
	}}
	predicts := anyPredicts(runs)
	if predicts {
		t.Columns = append(t.Columns, Column{"R2", "test_r2", false, false}, Column{"RMSE", "test_rmse", false, false},
			Column{"MAE", "test_mae", false, false})
	}
	number := func(digits int) func(float64) string { return func(v float64) string { return fixed(v, digits) } }
	names := namesOf(runs, how)
	for i, r := range runs {
		get := func(f func(*metrics.Summary) float64) float64 { return summed(r, f) }
		mode := absent
		if r.Summary != nil {
			mode = r.Summary.Mode
		}
		t.Rows = append(t.Rows, []Cell{
			textCell(names[i]), textCell(stateWord(r)), textCell(mode), textCell(schemeOf(r)), numberCell(seedOf(r), number(0)),
			numberCell(get(func(s *metrics.Summary) float64 { return float64(s.Servers) }), number(0)),
			numberCell(get(func(s *metrics.Summary) float64 { return float64(s.Workers) }), number(0)),
			numberCell(get(func(s *metrics.Summary) float64 { return float64(s.Iterations) }), short),
			numberCell(get(func(s *metrics.Summary) float64 { return float64(s.Samples) }), short),
			numberCell(get(func(s *metrics.Summary) float64 { return float64(s.TrainS) }), seconds),
			numberCell(get(func(s *metrics.Summary) float64 { return float64(s.WallS) }), seconds),
			numberCell(r.speed(), short),
			numberCell(get(func(s *metrics.Summary) float64 { return optional(s.TrainLoss) }), number(4)),
			numberCell(get(func(s *metrics.Summary) float64 { return optional(s.TestLoss) }), number(4)),
			numberCell(get(func(s *metrics.Summary) float64 { return optional(s.TestAccuracy) }), number(4)),
			textCell(r.Folder),
		})
		if predicts {
			last := &t.Rows[len(t.Rows)-1]
			*last = append(*last, numberCell(get(func(s *metrics.Summary) float64 { return optional(s.TestR2) }), number(4)),
				numberCell(get(func(s *metrics.Summary) float64 { return optional(s.TestRMSE) }), short),
				numberCell(get(func(s *metrics.Summary) float64 { return optional(s.TestMAE) }), short))
		}
	}
	return t
}

// stateWord is how the run ended, without what follows it: tables have no room for that, and the page of the run has it.
func stateWord(r *Run) string {
	if r.Summary == nil {
		return "no summary"
	}
	word, _, _ := strings.Cut(r.Summary.Finished, ": ")
	word, _, _ = strings.Cut(word, "; ")
	return foreign.Text(word)
}

func seedOf(r *Run) float64 {
	if r.Summary != nil {
		return float64(r.Summary.Seed)
	}
	if v, err := strconv.ParseUint(r.Settings["seed"], 10, 64); err == nil {
		return float64(v)
	}
	return math.NaN()
}

// schemeOf names the synchronization of a run: its schemes, its policy of work, its local steps, its baseline.
func schemeOf(r *Run) string {
	var parts []string
	add := func(text string) {
		for _, p := range parts {
			if p == text {
				return
			}
		}
		if text != "" && text != "none" && text != "fixed" {
			parts = append(parts, text)
		}
	}
	if r.Summary != nil {
		add(r.Summary.Baseline)
		for _, s := range r.Summary.PerShard[:min(len(r.Summary.PerShard), 100)] {
			add(s.Scheme)
		}
	}
	for i := 0; len(parts) == 0 && r.Settings[fmt.Sprintf("sync[%d].scheme", i)] != ""; i++ {
		add(r.Settings[fmt.Sprintf("sync[%d].scheme", i)])
	}
	add(r.Settings["work.policy"])
	add(r.Settings["local.policy"])
	return strings.Join(parts, " + ")
}

// settingsTable has the settings that differ between groups.
func settingsTable(groups []*Group) *Table {
	t := &Table{ID: "settings", Caption: "Settings that differ", Columns: []Column{{"key", "key", true, false}}}
	for _, g := range groups {
		t.Columns = append(t.Columns, Column{g.Label, g.Label, true, false})
	}
	for _, k := range Differing(groups) {
		row := []Cell{textCell(k)}
		for _, g := range groups {
			v, ok := g.Runs[0].Settings[k]
			if !ok {
				v = absent
			}
			row = append(row, textCell(v))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rowsTable has the training rows of each worker, where data.partition deals them unequally.
func rowsTable(rows []int64) *Table {
	t := &Table{ID: "worker-rows", Caption: "Training rows of each worker", Columns: []Column{{"worker", "worker", false, false},
		{"rows", "rows", false, false}, {"share", "share", false, false}}}
	var all float64
	for _, n := range rows {
		all += float64(n)
	}
	for worker, n := range rows {
		t.Rows = append(t.Rows, []Cell{numberCell(float64(worker), short), numberCell(float64(n), short), numberCell(float64(n)/all, percent)})
	}
	return t
}

// CSV is the table for programs: numbers in full, means and deviations in columns of their own. A text that a spreadsheet would take
// for a formula begins with an apostrophe.
func (t *Table) CSV() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var head []string
	split := make([]bool, len(t.Columns))
	for c, col := range t.Columns {
		for _, row := range t.Rows {
			split[c] = split[c] || row[c].n > 1
		}
		if head = append(head, harmless(col.Key)); split[c] {
			head[len(head)-1] += "_mean"
			head = append(head, harmless(col.Key)+"_deviation")
		}
	}
	_ = w.Write(head) // a Buffer accepts every write, as below
	for _, row := range t.Rows {
		var cells []string
		for c, cell := range row {
			if t.Columns[c].Text {
				cells = append(cells, harmless(cell.Text))
				continue
			}
			if cells = append(cells, plain(cell.mean)); split[c] {
				cells = append(cells, plain(cell.deviation))
			}
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return b.Bytes()
}

// plain is a number for programs; what was not measured is empty.
func plain(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

// harmless is a text that no spreadsheet takes for a formula.
func harmless(s string) string {
	if s = foreign.Visible(s); s != "" && strings.ContainsAny(s[:1], "=+-@\t\r\n'") {
		return "'" + s
	}
	return s
}

var latexEscapes = strings.NewReplacer("\u00a0", " ", `\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`,
	`\&`, `#`, `\#`, `%`, `\%`, `_`, `\_`, `^`, `\textasciicircum{}`,
	`~`, `\textasciitilde{}`, `<`, `\textless{}`, `>`, `\textgreater{}`, `|`, `\textbar{}`, `"`, `\textquotedbl{}`, "`",
	`\textasciigrave{}`, `±`, `$\pm$`, `×`, `$\times$`, absent, `--`, "\n", " ", "\t", " ")

// LaTeX is the table as a tabular of the package booktabs.
func (t *Table) LaTeX() []byte {
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n\\begin{tabular}{")
	var head []string
	for _, c := range t.Columns {
		if c.Wide {
			continue
		}
		b.WriteString(map[bool]string{true: "l", false: "r"}[c.Text])
		head = append(head, latex(c.Head))
	}
	b.WriteString("}\n\\toprule\n" + strings.Join(head, " & ") + " \\\\\n\\midrule\n")
	for _, row := range t.Rows {
		var cells []string
		for c, cell := range row {
			if !t.Columns[c].Wide {
				cells = append(cells, latex(cell.Text))
			}
		}
		b.WriteString(strings.Join(cells, " & ") + " \\\\\n")
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	return []byte(b.String())
}

func latex(s string) string { return latexEscapes.Replace(foreign.Visible(s)) }
