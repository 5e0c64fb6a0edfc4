package records

import (
	stdcsv "encoding/csv"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/disk/durable"
)

func records() []Record {
	a := Record{At: 500 * time.Millisecond, Iteration: 1, Epoch: 0.0021, Samples: 128}
	a.Set(TrainLoss, 2.302585)
	a.Set(TrainAccuracy, 0.109375)
	a.Set(TrainLR, 0.05)
	a.Set(SamplesPerS, 12340.123456789)

	b := Record{At: 30*time.Second + 1234567*time.Nanosecond, Iteration: 4700, Epoch: 10, Samples: 601600}
	b.Set(TrainLoss, math.NaN())
	b.Set(StalenessP50, 3)
	b.Set(StalenessMax, 12)
	b.Set(LeadMax, 3)
	b.Set(BlockedShare, 0.125)
	b.Set(DelayedPulls, 1e7)
	b.Rules = []Staleness{{}, {Pushes: 12, P50: 3, P99: 9, Max: 12}}
	b.Set(TestLoss, math.Inf(1))
	b.Set(TestAccuracy, 0.1)
	return []Record{a, b, {At: time.Hour}}
}

func TestSinksWriteGoldens(t *testing.T) {
	for name, mk := range map[string]func(w *writes) Sink{
		"metrics.jsonl": func(w *writes) Sink { return JSONL(w) },
		"metrics.csv":   func(w *writes) Sink { return CSV(w, 2) },
	} {
		var w writes
		s := mk(&w)
		for _, r := range records() {
			if err := s.Record(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		want := 3
		if name == "metrics.csv" {
			want = 4
		}
		if len(w) != want {
			t.Errorf("%s: %d Write calls, want %d", name, len(w), want)
		}
		for _, line := range w {
			if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
				t.Errorf("%s: a Write call is not one whole line: %q", name, line)
			}
		}
		golden(t, name, strings.Join(w, ""))
	}
}

func TestColumnTable(t *testing.T) {
	const want = "at_s iteration epoch samples train/loss train/accuracy train/lr samples_per_s sync/staleness_p50" +
		" sync/staleness_max sync/lead_max sync/blocked_share sync/delayed_pulls test/loss test/accuracy test/mse test/mae test/r2"
	if got := strings.Join(ColumnNames(0), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := ColumnNames(2); strings.Join(got[len(ColumnNames(0)):],
		" ") != "sync[0]/staleness_p50 sync[0]/staleness_p99 sync[0]/staleness_max"+
		" sync[1]/staleness_p50 sync[1]/staleness_p99 sync[1]/staleness_max" {
		t.Errorf("with two rules: %s", got)
	}
	var r Record
	for c := range columnCount {
		if v, ok := r.Get(c); ok || !math.IsNaN(v) {
			t.Errorf("%v of an empty record: %v, %v", c, v, ok)
		}
		r.Set(c, float64(c))
	}
	for c := range columnCount {
		if v, ok := r.Get(c); !ok || v != float64(c) {
			t.Errorf("%v: %v, %v; want %d", c, v, ok, c)
		}
	}
}

// Standard readers read every record back, and both sinks agree.
func TestSinksReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{At: time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "at")), Iteration: rapid.Int64Range(0, 1<<50).Draw(t, "iteration"),
			Samples: rapid.Int64Range(0, 1<<50).Draw(t, "samples"), Epoch: rapid.Float64Range(0, 1e6).Draw(t, "epoch")}
		for c := range columnCount {
			if rapid.Bool().Draw(t, "set "+c.String()) {
				r.Set(c, rapid.Float64().Draw(t, c.String()))
			}
		}
		rules := rapid.IntRange(0, 3).Draw(t, "rules")
		for range rules {
			n := rapid.SampledFrom([]int64{0, 0, 1, 1 << 40})
			r.Rules = append(r.Rules, Staleness{Pushes: n.Draw(t, "pushes"), P50: n.Draw(t, "p50"), P99: n.Draw(t, "p99"), Max: n.Draw(t, "max")})
		}
		var j, c writes
		if err := errors.Join(JSONL(&j).Record(r), CSV(&c, rules).Record(r)); err != nil {
			t.Fatal(err)
		}
		var object map[string]*float64
		if err := json.Unmarshal([]byte(j[0]), &object); err != nil {
			t.Fatalf("%v in %s", err, j[0])
		}
		rows, err := stdcsv.NewReader(strings.NewReader(c[0] + c[1])).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, name := range rows[0] {
			want, ok := r.cell(i)
			got, in := object[name]
			if in != ok || (rows[1][i] != "") != ok {
				t.Fatalf("%s: present %v, in jsonl %v, in csv %q", name, ok, in, rows[1][i])
			}
			if !ok {
				continue
			}
			v, err := strconv.ParseFloat(rows[1][i], 64)
			if err != nil {
				t.Fatal(err)
			}
			finite := !math.IsInf(want, 0) && !math.IsNaN(want)
			if finite != (got != nil) || finite && *got != v || finite && math.Abs(v-want) > 1e-8*math.Abs(want) || !finite &&
				!math.IsNaN(want) && v != want {
				t.Fatalf("%s: recorded %v, csv %v, jsonl %v", name, want, v, got)
			}
		}
	})
}

func TestCSVOfNoRecordsHasAHeader(t *testing.T) {
	var w writes
	if err := CSV(&w, 0).Close(); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(ColumnNames(0), ",") + "\n"; len(w) != 1 || w[0] != want {
		t.Errorf("got %q, want the header", w)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(durable.Below(dir), sinkNames, subject(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(records()[0]); err != nil {
		t.Fatal(err)
	}
	// Before Close, because nothing may wait in a buffer.
	for name, lines := range map[string]int{"metrics.jsonl": 1, "metrics.csv": 2} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Count(string(data), "\n") != lines {
			t.Errorf("%s: %d lines, %v; want %d", name, strings.Count(string(data), "\n"), err, lines)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(records()[0]); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Record after Close: %v, want fs.ErrClosed", err)
	}
	if _, err := Open(durable.Below(dir), []string{"csv"}, subject(1)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Open: %v, want fs.ErrExist", err)
	}
	if _, err := Open(durable.Below(dir), []string{"tsv"}, subject(1)); err == nil ||
		!strings.Contains(err.Error(), `sink "tsv" is not known; use some of jsonl, csv`) {
		t.Errorf("unknown sink: %v", err)
	}
}
