package gpucheck

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawn is a check of a test: what it takes, and what it says.
type drawn struct {
	name   string
	budget time.Duration
	takes  time.Duration
	rows   []Row
	err    error
	stderr string
	gate   bool
	signal os.Signal

	elastic bool
}

// play runs drawn checks on a clock of its own. It returns the table, the other text, the exit code and the time that all took.
func play(limit time.Duration, checks []drawn) (table, text string, code int, took time.Duration) {
	clock, began := time.Unix(1000, 0), time.Unix(1000, 0)
	var out, errs strings.Builder
	r := Runner{Out: &out, Err: &errs, Limit: limit, Now: func() time.Time { return clock }}
	by := map[string]drawn{}
	for _, d := range checks {
		by[d.name] = d
		r.Checks = append(r.Checks,
			Check{Name: d.name, Budget: d.budget, Elastic: d.elastic, Gate: d.gate,
				Size: func(s Sizes) string { return fmt.Sprint("batch ", s.Batch) }})
	}
	r.Start = func(c Check, _ Sizes, budget time.Duration, emit func(Row)) Ending {
		d := by[c.Name]
		for _, row := range d.rows {
			emit(row)
		}
		if d.takes > budget {
			clock = clock.Add(budget)
			return Ending{Over: true, Stderr: d.stderr}
		}
		clock = clock.Add(d.takes)
		return Ending{Err: d.err, Stopped: d.signal, Stderr: d.stderr}
	}
	code = r.Run()
	return out.String(), errs.String(), code, clock.Sub(began)
}

const second = time.Second

func TestEveryOutcomeIsARow(t *testing.T) {
	ok := func(name string) []Row { return []Row{{Name: name, Size: "7", Outcome: OK, Text: "a|b\n c"}} }
	table, text, code, _ := play(100*second, []drawn{
		{name: "right", budget: 10 * second, takes: second, rows: ok("right"), stderr: "nobody asks"},
		{name: "wrong", budget: 10 * second, takes: second,
			rows: append(ok("part"), Row{Name: "wrong: fill", Size: "7", Outcome: Failed, Text: "3, not 4"}), stderr: "more\nof it"},
		{name: "crash", budget: 10 * second, takes: second, err: errors.New("exit status 2"), stderr: "panic: x"},
		{name: "crash at the end", budget: 10 * second, takes: second, rows: ok("first"), err: errors.New("signal: killed")},
		{name: "silent", budget: 10 * second, takes: second},
		{name: "absent", budget: 10 * second, takes: second, rows: []Row{{Name: "absent", Size: "7", Outcome: Skipped, Text: "no such program"}}},
		{name: "hang", budget: 10 * second, takes: 1000 * second, rows: ok("before it hung")},
		{name: "emulated", budget: 10 * second, takes: second, rows: []Row{{Name: "emulated", Size: "7", Outcome: OK, Emulated: true}}},
		{name: "long", budget: 90 * second, takes: 1000 * second},
		{name: "late", budget: 10 * second, takes: second, rows: ok("late")},
	})
	want := `| check | size | outcome | at s |
|---|---|---|---|
| right | 7 | ok: a\|b c | 0 |
| part | 7 | ok: a\|b c | 1 |
| wrong: fill | 7 | **FAIL**: 3, not 4 | 1 |
| crash | batch 128 | **FAIL**: exit status 2 | 3 |
| first | 7 | ok: a\|b c | 3 |
| crash at the end | batch 128 | **FAIL**: signal: killed | 4 |
| silent | batch 128 | **FAIL**: it ended without an outcome | 5 |
| absent | 7 | skipped: no such program | 5 |
| before it hung | 7 | ok: a\|b c | 6 |
| hang | batch 128 | **over budget**: ended after 10s | 16 |
| emulated | 7 | ok | 16 |
| long | batch 1 | **over budget**: ended after 1m23s | 100 |
| late | batch 1 | **over budget**: no time left of 1m40s | 100 |

5 ok, 4 failed, 3 over budget, 1 skipped, in 100 of 100 s
`
	if table != want || code != 1 {
		t.Errorf("code %d, must be 1; table:\n%s\nmust be:\n%s", code, table, want)
	}
	if want := "wrong:\n    more\n    of it\ncrash:\n    panic: x\n"; text != want {
		t.Errorf("beside the table:\n%s\nmust be:\n%s", text, want)
	}
}

func TestWhatIsSkippedIsNoFailure(t *testing.T) {
	_, _, code, _ := play(9*second,
		[]drawn{{name: "a", budget: second, rows: []Row{{Name: "a", Outcome: Skipped}}},
			{name: "b", budget: second, rows: []Row{{Name: "b", Outcome: OK}}}})
	if code != 0 {
		t.Errorf("code %d, must be 0", code)
	}
}

func TestNothingPassesAFailedGate(t *testing.T) {
	table, _, code, _ := play(9*second, []drawn{
		{name: "driver", budget: second, gate: true, rows: []Row{{Name: "driver", Size: "-", Outcome: Failed, Text: "none"}}},
		{name: "fill", budget: second, rows: []Row{{Name: "fill", Outcome: OK}}},
	})
	if code != 1 || !strings.Contains(table, "\n| fill | batch 128 | skipped: the row \"driver\" says why | 0 |\n") {
		t.Errorf("code %d, must be 1; table:\n%s", code, table)
	}
}

func TestNothingRunsBehindASignal(t *testing.T) {
	table, _, code, _ := play(9*second, []drawn{
		{name: "hang", budget: second, rows: []Row{{Name: "before it hung", Outcome: OK}}, signal: os.Interrupt},
		{name: "fill", budget: second, rows: []Row{{Name: "fill", Outcome: OK}}},
	})
	if code != 1 || !strings.Contains(table,
		"\n| hang | batch 128 | **FAIL**: gpu-check was ended: interrupt | 0 |\n| fill | batch 128 | skipped: the row "+
			"\"hang\" says why | 0 |\n") {
		t.Errorf("code %d, must be 1; table:\n%s", code, table)
	}
}

// Whatever checks take, all of them together take no longer than the limit, and each has a row, in its place. A check within its
// budget is ended only if the checks before it have used up its time.
func TestTheWholeBudgetIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.IntRange(1, 600).Draw(t, "limit")) * second
		var checks []drawn
		total := time.Duration(0)
		for i := range rapid.IntRange(1, 30).Draw(t, "checks") {
			d := drawn{name: fmt.Sprintf("check %d.", i), budget: time.Duration(rapid.IntRange(0, 60).Draw(t, "budget")) * second,
				takes: time.Duration(rapid.IntRange(0, 90000).Draw(t, "takes")) * time.Millisecond, elastic: rapid.Bool().Draw(t, "elastic")}
			d.rows = []Row{{Name: d.name, Size: "-", Outcome: OK}}
			total += d.budget
			checks = append(checks, d)
		}
		table, _, _, took := play(limit, checks)
		if took > limit {
			t.Fatalf("took %v of %v", took, limit)
		}
		at := 0
		for _, d := range checks {
			next := strings.Index(table[at:], "\n| "+d.name+" |")
			if next < 0 {
				t.Fatalf("no row of %s in its place:\n%s", d.name, table)
			}
			at += next
			ended, longer := strings.Contains(table, "\n| "+d.name+" | batch 128 | **over"), d.takes > d.budget
			if (ended && !longer || !ended && longer && !d.elastic) && d.budget > 0 && total <= limit && !sharesTime(checks) {
				t.Fatalf("%s takes %v of %v, ended: %t\n%s", d.name, d.takes, d.budget, ended, table)
			}
		}
	})
}

// An elastic check takes what those before it have left over, and leaves those behind it their budgets, and shareMin where there is none.
func TestAnElasticCheckTakesWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		last  string // its outcome
	}{{130 * second, "ok"}, {131 * second, "**over budget**: ended after 2m10s"}} {
		table, _, _, _ := play(200*second, []drawn{
			{name: "quick", budget: 60 * second, takes: 10 * second, rows: []Row{{Name: "quick", Size: "7", Outcome: OK}}},
			{name: "elastic", budget: 20 * second, takes: c.takes, elastic: true},
			{name: "behind", budget: 30 * second, takes: 30 * second, rows: []Row{{Name: "behind", Size: "7", Outcome: OK}}},
			{name: "share", takes: 30 * second, rows: []Row{{Name: "share", Size: "7", Outcome: OK}}},
		})
		want := c.last
		if want == "ok" {
			want = "**FAIL**: it ended without an outcome"
		}
		if !strings.Contains(table, "\n| elastic | batch 128 | "+want+" |") || strings.Count(table, "| 7 | ok |") != 3 {
			t.Errorf("an elastic check that takes %v must be %q, and the others ok:\n%s", c.takes, want, table)
		}
	}
}

// sharesTime says whether a check takes a share of what is left.
func sharesTime(checks []drawn) bool {
	for _, d := range checks {
		if d.budget == 0 {
			return true
		}
	}
	return false
}
