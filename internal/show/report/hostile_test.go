package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

var hostile = rapid.OneOf(rapid.SampledFrom([]string{"a", "bsp", "", "</style><script>alert(1)</script>",
	`"><img src="http://evil/x" onerror="alert(1)">`, "=HYPERLINK(\"http://evil\")", "@SUM(1)", "+1", "-1", "\t=1",
	`\input{/etc/passwd}`, `$\write18{id}$ & % # _ ^ ~`, "\x1b]0;x\x07\x1b[2J", "a\r\nb", "\u202eevil", "\xff\xfe",
	"javascript:alert(1)", "{{.}}", "--><svg onload=alert(1)>", "]]>", strings.Repeat("模", 90)}), rapid.String())

var number = rapid.OneOf(rapid.Float64Range(0, 100),
	rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, -1}), rapid.Float64())

func drawRun(t *rapid.T) *Run {
	r := &Run{Folder: hostile.Draw(t, "folder"), Notes: rapid.SliceOfN(hostile, 0, 2).Draw(t, "notes"),
		Damage: rapid.SliceOfN(hostile, 0, 2).Draw(t, "damage")}
	if rapid.Bool().Draw(t, "settings") {
		r.Settings = map[string]string{"name": hostile.Draw(t, "name"), "seed": hostile.Draw(t, "seed"),
			hostile.Draw(t, "key"): hostile.Draw(t, "value"), "sync[0].scheme": hostile.Draw(t, "scheme")}
	}
	if rapid.Bool().Draw(t, "what if") {
		r.WhatIf = &WhatIf{Line: hostile.Draw(t, "line"),
			Candidates: []Changed{{Name: hostile.Draw(t, "what"), Ratio: number.Draw(t, "ratio"),
				StalenessP50: number.Draw(t, "p50"), StalenessMax: number.Draw(t, "max")}}}
	}
	for range rapid.IntRange(0, 3).Draw(t, "shares") {
		r.WorkerRows = append(r.WorkerRows, rapid.Int64().Draw(t, "share"))
	}
	for range rapid.IntRange(0, 8).Draw(t, "rows") {
		n := func() float64 { return number.Draw(t, "n") }
		r.Rows = append(r.Rows, Row{n(), n(), n(), n(), n(), n(), n(), n(), n(), n(), n(), n(), n()})
	}
	for range rapid.IntRange(0, 4).Draw(t, "workers") {
		var all []timings.Iteration
		for range rapid.IntRange(0, 4).Draw(t, "iterations") {
			d := func() time.Duration {
				return rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, time.Second, 1e18}).Draw(t, "d")
			}
			all = append(all, timings.Iteration{Iter: rapid.SampledFrom([]int64{0, 1, 2, 3, 1 << 62}).Draw(t, "iter"),
				Start: d(), Compute: d(), Injected: d(), Push: d(), Blocked: d(), Pull: d()})
		}
		r.Iterations = append(r.Iterations, all)
	}
	for range rapid.IntRange(0, 3).Draw(t, "staleness") {
		if r.Staleness == nil {
			r.Staleness = map[int64]int64{}
		}
		r.Staleness[rapid.Int64Range(0, 1024).Draw(t, "value")] = rapid.Int64Range(0, 1<<40).Draw(t, "count")
	}
	if rapid.Bool().Draw(t, "summary") {
		f := func() metrics.Float { return metrics.Float(number.Draw(t, "f")) }
		r.Summary = &metrics.Summary{
			Job: metrics.Job{
				Name: hostile.Draw(t, "name"), Finished: hostile.Draw(t, "finished"),
				Mode: rapid.SampledFrom([]string{"local", "simulated", "<b>"}).Draw(t, "mode"),
			},
			Costs:   metrics.Costs{TrainS: f(), WallS: f(), SamplesPerS: f()},
			Extent:  metrics.Extent{Samples: rapid.Int64().Draw(t, "samples"), Iterations: rapid.Int64().Draw(t, "iterations")},
			Traffic: metrics.Traffic{BytesSent: rapid.Int64().Draw(t, "sent")},
			PerShard: []metrics.ShardSummary{{Scheme: hostile.Draw(t, "scheme"),
				DelayedPulls: rapid.Int64Range(0, 3).Draw(t, "delayed"),
				TurnCounts:   metrics.TurnCounts{DelayedGrants: rapid.Int64Range(0, 3).Draw(t, "grants")}}},
			PerRole: map[string]metrics.RoleTimes{metrics.RoleWorker: {"compute": {Avg: f()}, "blocked": {Avg: f()}}},
		}
		if rapid.Bool().Draw(t, "target") {
			v := f()
			r.Summary.Target = &v
		}
		if rapid.Bool().Draw(t, "wire") {
			r.Summary.Wire = &metrics.Wire{LimitS: f(), IterationS: f()}
		}
	}
	return r
}

// Whatever runs hold, every form of a report is well-formed, and nothing of a run is more than text in it.
func TestNothingOfARunIsMoreThanText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs []*Run
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			runs = append(runs, drawRun(t))
		}
		d, err := Make(runs, Options{Build: hostile.Draw(t, "build")})
		if err != nil {
			t.Fatalf("%v", err)
		}
		checkPage(t, d.Page)
		for _, f := range d.Figures {
			checkElements(t, f.File())
		}
		for _, table := range d.Tables {
			checkCSV(t, table)
			checkLaTeX(t, table)
		}
		links := make([]string, len(runs))
		links[0] = "./a/report.html"
		index, err := Index(hostile.Draw(t, "title"), runs, links, "")
		if err != nil {
			t.Fatalf("%v", err)
		}
		checkPage(t, index)
	})
}

// elements and attributes are all that our pages have.
var (
	elements = " html head meta title style body a header p h1 h2 h3 ul li nav main div strong section table " +
		"caption thead tbody tr th td figure svg desc path text details summary footer span "
	attributes = " lang charset http-equiv content name id class href aria-label aria-labelledby role tabindex scope " +
		"xmlns viewBox width height d stroke-width stroke-dasharray opacity x y font-size font-weight text-anchor textLength lengthAdjust "
)

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// checkPage reads a page as XML, after the few elements without an end are closed: so an attribute or element that a text opened is found.
func checkPage(t failer, page []byte) {
	t.Helper()
	text := strings.TrimPrefix(string(page), "<!doctype html>\n")
	text = regexp.MustCompile(`<meta [^>]*>`).ReplaceAllStringFunc(text, func(m string) string { return strings.TrimSuffix(m, ">") + "/>" })
	checkElements(t, []byte(text))
	for _, r := range string(page) {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			t.Fatalf("the page holds %q", r)
		}
	}
}

func checkElements(t failer, document []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !strings.Contains(elements, " "+e.Name.Local+" ") {
			t.Fatalf("an element %s\n%s", e.Name.Local, document)
		}
		for _, a := range e.Attr {
			switch name := a.Name.Local; {
			case !strings.Contains(attributes, " "+name+" "):
				t.Fatalf("an attribute %s of %s\n%s", name, e.Name.Local, document)
			case name == "href" && !strings.HasPrefix(a.Value, "#") && !strings.HasPrefix(a.Value, "./"):
				t.Fatalf("a link to %s", a.Value)
			case name == "id" && ids[a.Value]:
				t.Fatalf("two elements have the id %s", a.Value)
			case name == "id":
				ids[a.Value] = true
			}
		}
	}
}

// checkCSV fails for a cell that a spreadsheet takes for a formula, and for rows of other lengths.
func checkCSV(t failer, table *Table) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(table.CSV())).ReadAll()
	if err != nil || len(rows) != len(table.Rows)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	plain := regexp.MustCompile(`^-?[0-9.]+(e[+-]?[0-9]+)?$`)
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") && !plain.MatchString(cell) {
				t.Fatalf("a formula %q", cell)
			}
			if !utf8.ValidString(cell) || strings.ContainsFunc(cell, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
				t.Fatalf("%q", cell)
			}
		}
	}
}

var ourCommands = regexp.MustCompile(
	`\\(\\|begin\{tabular\}\{[lr]+\}|end\{tabular\}|toprule|midrule|bottomrule|text[a-z]+\{\}|pm|times|[{}$&#%_])`)

// checkLaTeX removes what we write ourselves. Then no special character is left but those that part the cells.
func checkLaTeX(t failer, table *Table) {
	t.Helper()
	_, text, _ := strings.Cut(string(table.LaTeX()), "\n")
	text = strings.NewReplacer(`$\pm$`, "", `$\times$`, "").Replace(text)
	if rest := ourCommands.ReplaceAllString(text, ""); strings.ContainsAny(rest, `\{}$#%_^~`) {
		t.Fatalf("LaTeX sees %q in\n%s", rest, text)
	}
	rows := strings.Count(text, ` \\`+"\n")
	if rows != len(table.Rows)+1 {
		t.Fatalf("%d rows of LaTeX, want %d", rows, len(table.Rows)+1)
	}
}
