package metrics

import (
	"math"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics/records"
)

func at(s float64) records.Record {
	r := records.Record{At: time.Duration(s * float64(time.Second)), Iteration: int64(48 * s), Epoch: s / 40, Samples: int64(12340 * s)}
	if s > 0 {
		r.Set(records.TrainLoss, 2.3/(1+s/10))
		r.Set(records.SamplesPerS, 12340.4)
		r.Set(records.StalenessP50, 1)
		r.Set(records.StalenessMax, 3)
		r.Set(records.BlockedShare, 0.0525)
	}
	return r
}

func TestProgressLines(t *testing.T) {
	var w writes
	p := NewProgress(&w, false, 0, 30*time.Second)
	update := func(r records.Record, done float64) {
		if err := p.Update(r, done); err != nil {
			t.Fatal(err)
		}
	}
	update(at(0), math.NaN())
	for s := 1.0; s <= 100; s++ {
		update(at(s), s/400)
	}
	bad := at(120)
	bad.Set(records.TrainLoss, math.NaN())
	update(bad, 0.3)
	bad.At = 150 * time.Second
	bad.Set(records.TrainLoss, 1e7)
	bad.Set(records.SamplesPerS, 3.25)
	update(bad, 1e-9)
	if err := p.Println("worker 3 waits for shard 2"); err != nil {
		t.Fatal(err)
	}
	update(at(160), 0.9999)
	update(at(401), 1)
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	golden(t, "progress_lines.txt", strings.Join(w, ""))
}

// The staleness of the rules is shown in their order. If there are too many, the rule with the largest one stands for all.
func TestProgressShowsEachRulesStaleness(t *testing.T) {
	rule := func(p50, most int64) records.Staleness { return records.Staleness{Pushes: 1, P50: p50, Max: most} }
	for want, rules := range map[string][]records.Staleness{
		"1/3":            nil, // the staleness of all shards
		"2/7":            {rule(2, 7)},
		"0/0 2/7":        {rule(0, 0), rule(2, 7)},
		"2/7 0/0":        {rule(2, 7), {}, rule(0, 0)}, // a rule without parameters, or without new pushes
		"10/90 100/1023": {rule(10, 90), rule(100, 1023)},
		"<=4/77":         {rule(10, 70), rule(4, 77), rule(10, 12)},
	} {
		r := at(1)
		r.Rules = rules
		if got := staleText(&r); got != want {
			t.Errorf("%v: %q, want %q", rules, got, want)
		}
		if line := lineText(&r, 0.5); len(line) != len(lineHeader) {
			t.Errorf("%v: a line of %d columns under a header of %d", rules, len(line), len(lineHeader))
		}
	}
}

// A batch log never holds a carriage return or an escape, and its columns never move.
func TestProgressLinesAlign(t *testing.T) {
	var w writes
	p := NewProgress(&w, false, 0, 0)
	for s := range 65 {
		if err := p.Update(at(float64(s)*100), float64(s)/65); err != nil {
			t.Fatal(err)
		}
	}
	all := strings.Join(w, "")
	if strings.ContainsAny(all, "\r\x1b") {
		t.Error("carriage return or escape in a batch log")
	}
	headers := 0
	for i, line := range strings.Split(strings.TrimSuffix(all, "\n"), "\n") {
		if len(line) != len(lineHeader) {
			t.Errorf("line %d has %d columns, the header has %d: %q", i, len(line), len(lineHeader), line)
		}
		if line == lineHeader {
			headers++
			if i%(headerEvery+1) != 0 {
				t.Errorf("header at line %d, want one every %d lines", i, headerEvery)
			}
		}
	}
	if headers != 3 {
		t.Errorf("%d headers over 65 lines, want 3", headers)
	}
}

func TestProgressFinishShowsTheLastRecord(t *testing.T) {
	var w writes
	p := NewProgress(&w, false, 0, time.Minute)
	for _, s := range []float64{0, 0.5, 0.75} {
		if err := p.Update(at(s), s); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a second Finish adds nothing
		if err := p.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	if len(w) != 2 || !strings.HasPrefix(w[1], "        36 ") {
		t.Errorf("writes %q, want the first and the last record", w)
	}
}

// Of records every 50 ms a batch log shows those of a preferred time, sooner at first, and then one an interval.
func TestProgressLinesComeSoonerAtFirst(t *testing.T) {
	for _, c := range []struct {
		interval, until time.Duration
		want            string
	}{
		{30 * time.Second, 95 * time.Second, "0s 1s 2s 5s 10s 20s 30s 1m0s 1m30s"},
		{7 * time.Second, 22 * time.Second, "0s 1s 2s 5s 7s 14s 21s"},
		{time.Hour, 1200 * time.Second, "0s 1s 2s 5s 10s 20s 50s 1m40s 3m20s 8m20s 16m40s"},
		{500 * time.Millisecond, 2 * time.Second, "0s 500ms 1s 1.5s 2s"},
	} {
		var got []string
		var w writes
		p := NewProgress(&w, false, 0, c.interval)
		for now := time.Duration(0); now <= c.until; now += 50 * time.Millisecond {
			before := len(w)
			if err := p.Update(records.Record{At: now}, 0.5); err != nil {
				t.Fatal(err)
			}
			if len(w) > before {
				got = append(got, now.String())
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("interval %v: lines at %s, want %s", c.interval, text, c.want)
		}
	}
}

// Evaluations are shown as often as lines of a batch log, whatever shows them, and clear the bar of a terminal.
func TestEvaluationsAmongProgressLines(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var w writes
		p := NewProgress(&w, terminal, 80, 30*time.Second)
		for k := range 100 {
			e := Evaluation{AtS: Float(0.1 * float64(k)), Epoch: Float(k)}
			e.Judge(Judge{Measure: Measure(k % 2), Rows: 8, Deviation: 1, Spread: 1}, Sums{Loss: 2, Correct: 7, Squared: 2})
			if err := p.Evaluated(&e); err != nil {
				t.Fatal(err)
			}
		}
		want := "evaluated at epoch 0.00, 0.0 s: test loss 0.2500, test accuracy 0.8750\nevaluated at epoch 10.00, 1.0 " +
			"s: test loss 0.2500, test accuracy 0.8750\n" +
			"evaluated at epoch 20.00, 2.0 s: test loss 0.2500, test accuracy 0.8750\nevaluated at epoch 50.00, 5.0 s: test " +
			"loss 0.2500, test accuracy 0.8750\n"
		if got := strings.Join(w, ""); got != want {
			t.Errorf("terminal %v: %s", terminal, got)
		}
	}
}

func TestProgressBar(t *testing.T) {
	var w writes
	p := NewProgress(&w, true, 120, 30*time.Second)
	for i, r := range []records.Record{at(0), at(0.01), at(1), at(1.04), at(20)} {
		if err := p.Update(r, float64(i)/4); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Println("[w3] a warning"); err != nil {
		t.Fatal(err)
	}
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := p.Println("after"); err != nil {
		t.Fatal(err)
	}
	if len(w) != 6 { // the bar is not redrawn at 0.01 s and 1.04 s
		t.Errorf("%d Write calls, want 6", len(w))
	}
	shown := strings.NewReplacer("\r", "<CR>", "\x1b[K", "<CLEAR>").Replace(strings.Join(w, "|\n"))
	golden(t, "progress_bar.txt", shown)
}

func TestBarFitsAnyWidth(t *testing.T) {
	r := at(20)
	var all strings.Builder
	for width := 1; width <= 200; width++ {
		for _, done := range []float64{0, 0.5, 1, 1.5, -1, math.NaN()} {
			if got := barText(&r, done, width); len(got) >= width {
				t.Fatalf("width %d, done %v: %d columns: %q", width, done, len(got), got)
			}
		}
		if width%20 == 0 {
			all.WriteString(barText(&r, 0.5, width) + "\n")
		}
	}
	golden(t, "progress_widths.txt", all.String())
}

func TestETA(t *testing.T) {
	for _, c := range []struct {
		at   time.Duration
		done float64
		want string
	}{
		{time.Minute, 0.5, "1:00"}, {time.Minute, 0.25, "3:00"}, {time.Hour, 0.1, "9:00:00"},
		{time.Minute, 0, "-"}, {time.Minute, math.NaN(), "-"}, {time.Minute, -1, "-"}, {time.Minute, 1, "0:00"},
		{time.Hour, 1e-9, "-"},
	} {
		if got := etaText(c.at, c.done); got != c.want {
			t.Errorf("etaText(%v, %v) = %s, want %s", c.at, c.done, got, c.want)
		}
	}
}
