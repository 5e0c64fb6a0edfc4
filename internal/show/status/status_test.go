package status

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"fluentps/internal/disk/durable"
	"fluentps/internal/show/metrics"
)

var update = flag.Bool("update", false, "write the goldens")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func ago(s float64) time.Time { return now.Add(-seconds(s)) }

// some is a run of two servers and four workers, of which w3 is late and s1 is silent.
func some() *Run {
	rank := func(k int, role string, r Rank) Rank {
		r.Rank, r.Role, r.Host, r.EveryS = k, role, "n"+fmt.Sprint(k/3), 1
		if r.Phase == "" {
			r.Phase = Training
		}
		if r.At.IsZero() {
			r.At = ago(0.4)
		}
		return r
	}
	saved := ago(41)
	waits := &Worker{Name: "w0", Iteration: 40, Doing: Waits, ForS: 2.13,
		Shards: []Shard{{Shard: 2}, {Shard: 5, Server: 1}}, Others: []string{"its turn to push to s0"}}
	return &Run{Dir: "runs/a/1", Name: "a", Started: "2026-11-26T11:57:00Z", Now: now, Size: 8,
		Checkpoint: "000000000003", SavedAt: &saved, Ranks: []Rank{
			rank(0, "s0", Rank{Progress: ago(0.4),
				Server: &Server{Name: "s0",
					Held: []Held{{Shard: 0, For: []int32{3}, Iteration: 37}, {Shard: 2, For: []int32{3}, Iteration: 37},
						{Shard: 4, For: []int32{1, 2, 3, 0, 5}, Iteration: 36}}},
				Lead: &Lead{Iteration: 39, Epoch: 0.75, Samples: 100, Done: 0.25, Loss: 0.575, SamplesPerS: 12345.6, ETAS: 370}}),
			rank(1, "s1", Rank{At: ago(43), Progress: ago(44), Server: &Server{Name: "s1", Server: 1}}),
			rank(2, "w0", Rank{Progress: ago(2.2), Worker: waits}),
			rank(3, "w1", Rank{Progress: ago(2.4),
				Worker: &Worker{Name: "w1", Iteration: 40, Doing: Waits, ForS: 200, Shards: []Shard{{Shard: 0}}}}),
			rank(4, "w2", Rank{Phase: Setup}),
			rank(5, "w3", Rank{Progress: ago(9), Worker: &Worker{Name: "w3", Iteration: 37, Doing: Computes}}),
			rank(6, "w4", Rank{Progress: ago(9), Worker: &Worker{Name: "w4", Iteration: -1, Doing: Waits, ForS: 8000}}),
		}}
}

func TestText(t *testing.T) {
	var b strings.Builder
	r := some()
	b.WriteString(r.Text(false))
	for i := range r.Ranks {
		fmt.Fprintf(&b, "%s\n", r.Ranks[i].Words())
	}
	ended := some()
	ended.Ended = "ok"
	gone := some()
	gone.Now = now.Add(time.Hour)
	for _, r := range []*Run{ended, gone, {Dir: "x", Size: 1, Damaged: []string{"rank-0000.state: bad"}, unread: 1}} {
		b.WriteString("\n== " + r.Text(false))
	}
	golden(t, "text.txt", b.String())
}

// A run of very many ranks fits on a screen: the silent ranks come first, then those that others wait for.
func TestTextOfManyRanks(t *testing.T) {
	r := &Run{Dir: "x", Now: now}
	for k := range 1000 {
		w := &Worker{Name: fmt.Sprintf("w%d", k), Iteration: 3, Doing: Waits, Shards: []Shard{{}}}
		of := Rank{Rank: k, Role: w.Name, At: now, EveryS: 1, Phase: Training, Worker: w}
		switch k {
		case 0:
			of.Server = &Server{Name: "s0", Held: []Held{{For: []int32{777}, Iteration: 2}}}
		case 777:
			w.Doing = Computes
		case 900:
			of.At = now.Add(-time.Minute)
		}
		r.Ranks = append(r.Ranks, of)
	}
	lines := strings.Split(r.Text(false), "\n")
	if len(lines) != rowsMax+8 || !strings.HasPrefix(lines[4], "900 ") || !strings.HasPrefix(lines[5], "777 ") ||
		!strings.HasPrefix(lines[6], "0 ") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if all := strings.Count(r.Text(true), "\n"); all < 1000 {
		t.Errorf("with all, there are %d lines", all)
	}
}

// What a rank writes is what a reader gets, also while the file is written again and again, longer and shorter. What
// cannot be read is told.
func TestReadWhileRanksWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o777); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("run.json", `{"mode": "mpi", "started": "then", "ranks": [{"rank": 0}, {"rank": 1}, {"rank": 2}]}`)
	w, err := Open(durable.Below(dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for k := range 3000 {
			w.Tell(Rank{Phase: Training, Worker: &Worker{Name: strings.Repeat("n", k%100), Iteration: int64(k)}})
		}
		w.Close(time.Minute)
	}()
	last := int64(-1)
	for over := false; !over; {
		select {
		case <-stop:
			over = true
		default:
		}
		r, err := Read(dir, now)
		if err != nil || r.Size != 3 || len(r.Damaged) > 0 {
			t.Fatal(r, err)
		}
		if len(r.Ranks) == 0 || r.Ranks[0].Worker == nil { // nothing is written yet
			continue
		}
		if at := r.Ranks[0].Worker; at.Iteration < last || len(at.Name) != int(at.Iteration%100) {
			t.Fatalf("iteration %d, name %q, after %d", at.Iteration, at.Name, last)
		}
		last = r.Ranks[0].Worker.Iteration
	}
	if last != 2999 {
		t.Errorf("the last state is %d, want 2999", last)
	}
	put("logs/rank-0001.state", "{")
	put("logs/rank-0002.state", `{"rank": 7}`)
	if r, err := Read(dir, now); err != nil || len(r.Ranks) != 1 || len(r.Damaged) != 2 ||
		!strings.Contains(r.Text(false), "it says that it is of rank 7") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Read(filepath.Join(dir, "logs"), now); err == nil || !strings.Contains(err.Error(), "is not the folder of a run") {
		t.Errorf("a folder that no run made: %v", err)
	}
}

// A run that is damaged in one place is shown in all others: the summary of a run of very many ranks is long, a rank
// that has not told of itself is missing however many other files are damaged, and a summary that cannot be read says
// nothing of a kill.
func TestDamageHidesNothingElse(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o777); err != nil {
		t.Fatal(err)
	}
	put("run.json", `{"ranks": [{"rank": 0}, {"rank": 1}]}`)
	put("logs/rank-0000.state", `{"rank": 0, "phase": "has ended", "role": "s0"}`)
	put("checkpoints", "")
	put("summary.json", `{"finished": "ok", "per_role": "`+strings.Repeat("x", 2*fileMax)+`"}`)
	show := func() string {
		r, err := Read(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		return r.Text(false)
	}
	if text := show(); !strings.Contains(text, "ended: ok\n") || !strings.Contains(text, "\n0     s0 ") ||
		strings.Count(text, "WARNING") != 1 {
		t.Errorf("checkpoints that are a file:\n%s", text)
	}
	put("summary.json", `{"finished": "o`)
	if text := show(); !strings.Contains(text, "its summary cannot be read") || strings.Contains(text, "killed") ||
		!strings.Contains(text, "1 rank has told nothing of itself") {
		t.Errorf("a summary that was cut off:\n%s", text)
	}
	if err := os.Remove(filepath.Join(dir, "summary.json")); err != nil {
		t.Fatal(err)
	}
	if text := show(); !strings.Contains(text, "no rank has written for") {
		t.Errorf("a rank that was killed:\n%s", text)
	}
	put("logs/rank-0001.state", `{"rank": 1, "phase": "has ended", "role": "w0"}`)
	if text := show(); !strings.Contains(text,
		"over without a summary: all ranks have ended, so rank 0 could not write it") || strings.Contains(text, "killed") {
		t.Errorf("no summary although all ranks have ended:\n%s", text)
	}
}

// A part of a run that resumes with fewer ranks has no rows for the others, which are silent. One with more has them before run.json does.
func TestRanksOfAnEarlierPart(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("run.json", `{"started": "2026-11-26T11:59:00Z", "ranks": [{"rank": 0}]}`)
	put("logs/rank-0000.state", `{"rank": 0, "at": "2026-11-26T11:59:59.5Z", "phase": "trains"}`)
	put("logs/rank-0001.state", `{"rank": 1, "at": "2026-11-26T11:58:59.5Z", "phase": "trains"}`)
	put("logs/rank-0002.state", `{"rank": 2, "at": "2026-11-26T11:59:59Z", "phase": "sets up"}`)
	r, err := Read(dir, now)
	if err != nil || len(r.Ranks) != 2 || r.Ranks[1].Rank != 2 || len(r.Damaged) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Tell never waits, also if nothing is ever written, and the newest state is the one that waits.
func TestTellNeverWaits(t *testing.T) {
	w := &Writer{next: make(chan Rank, 1)} // its goroutine hangs in the file system
	for k := range 100 {
		w.Tell(Rank{Rank: k})
	}
	if r := <-w.next; r.Rank != 99 {
		t.Errorf("state %d waits, want the newest", r.Rank)
	}
	w.done = make(chan struct{})
	w.Close(time.Millisecond)
}

func TestAllRanksTogetherWriteSeldom(t *testing.T) {
	for ranks, want := range map[int]time.Duration{1: time.Second, 100: time.Second, 1000: 10 * time.Second} {
		if got := Every(ranks); got != want {
			t.Errorf("%d ranks: every %v, want %v", ranks, got, want)
		}
	}
}

// Whatever a neighbour writes into the files, the text has no control characters, and the words fit into one line.
func TestHostileFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2J", "a\nb", "\u202e", ""}))
		ints := rapid.Int32()
		r := &Run{Dir: text.Draw(t, "dir"), Name: text.Draw(t, "name"), Started: text.Draw(t, "started"), Now: now,
			Ended: text.Draw(t, "ended"), Damaged: []string{text.Draw(t, "damaged")}}
		for k := range rapid.IntRange(0, 4).Draw(t, "ranks") {
			r.Ranks = append(r.Ranks,
				Rank{Rank: k, Role: text.Draw(t, "role"), Host: text.Draw(t, "host"),
					Phase: Phase(rapid.SampledFrom([]string{string(Training), "x\x1b"}).Draw(t, "phase")),
					At:    now.Add(time.Duration(rapid.Int64().Draw(t, "at"))), EveryS: rapid.Float64().Draw(t, "every"),
					Lead: &Lead{Loss: metrics.Float(rapid.Float64().Draw(t, "loss"))},
					Worker: &Worker{Name: text.Draw(t, "worker"),
						Doing:     Doing(rapid.SampledFrom([]string{string(Waits), "\r"}).Draw(t, "doing")),
						Iteration: rapid.Int64().Draw(t, "iter"), ForS: rapid.Float64().Draw(t, "for"),
						Shards: []Shard{{ints.Draw(t, "shard"), "", ints.Draw(t, "of")}}, Others: []string{text.Draw(t, "other")}},
					Server: &Server{Name: text.Draw(t, "server"), Server: ints.Draw(t, "index"),
						Held: []Held{{ints.Draw(t, "held"), rapid.SliceOf(ints).Draw(t, "workers"), 3}}}})
		}
		out := r.Text(rapid.Bool().Draw(t, "all"))
		if i := strings.IndexFunc(out, func(c rune) bool { return c != '\n' && !unicode.IsGraphic(c) }); i >= 0 {
			t.Fatalf("%q has a control character", out[i:])
		}
		if n := strings.Count(out, "\n"); n > len(r.Ranks)+12 {
			t.Fatalf("%d lines of %d ranks:\n%s", n, len(r.Ranks), out)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

// What an earlier start has left, or its orphans write, is not told of the newest one.
func TestAnEarlierStartIsNotTheNewest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"run.json":             `{"start": "s.2", "started": "2026-11-26T11:59:00Z", "ranks": [{"rank": 0}, {"rank": 1}]}`,
		"summary.json":         `{"start": "s.1", "name": "a", "finished": "stopped by a closed output"}`,
		"logs/rank-0000.state": `{"rank": 0, "start": "s.2", "at": "2026-11-26T11:59:59.5Z", "phase": "trains"}`,
		"logs/rank-0001.state": `{"rank": 1, "start": "s.1", "at": "2026-11-26T11:59:59.5Z", "phase": "trains"}`,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Read(dir, now)
	if err != nil || r.Ended != "" || len(r.Ranks) != 1 || r.Ranks[0].Rank != 0 || r.Size != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a run that has just resumed has not measured yet reads as if it had diverged.
func TestWhatIsNotMeasuredYetIsNotShown(t *testing.T) {
	nan := metrics.Float(math.NaN())
	if text := (&Lead{Iteration: 7, Samples: 100, Done: -1, ETAS: -1, Loss: nan, SamplesPerS: nan}).words(); strings.Contains(text, "NaN") {
		t.Errorf("a run that has just resumed is shown as %q", text)
	}
	if text := (&Lead{Samples: 100, Loss: nan, SamplesPerS: 5}).words(); !strings.Contains(text, "loss NaN") {
		t.Errorf("a run that has diverged is shown as %q", text)
	}
}
