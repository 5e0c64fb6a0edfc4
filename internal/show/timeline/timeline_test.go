package timeline

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/disk/durable"
	"fluentps/internal/show/timeline/timelinetest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// script is two ranks with one shard of two pieces, and one iteration of it. The clock ticks by 10 us with every look.
func script(limits Limits, layer, shardName string) (ranks []*Rank, w *Worker, s *Server, iteration func(iter int64)) {
	plan := &shard.Plan{Params: []shard.Param{{Name: layer + ".weight", N: 4}},
		Shards: []shard.Shard{{Name: shardName, Pieces: make([]shard.Piece, 2)}}, Pieces: make([]shard.Piece, 2)}
	at := time.Duration(0)
	var mu sync.Mutex
	now := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		at += 10 * time.Microsecond
		return at
	}
	server, worker := NewRank(0, NamesOf(plan, 1), limits, now), NewRank(1, NamesOf(plan, 1), limits, now)
	w, s = NewWorker(worker, 0, plan), NewServer(server)
	push := wire.Header{Kind: wire.Push, Owner: 0}
	out := make([]core.Effect, 0, 4)
	iteration = func(iter int64) {
		push.Iter = iter
		w.Begin(iter)
		w.Awaits()
		w.Waited(iter, now(), now(), now())
		w.Computes(0)
		w.Forwarded()
		w.Turns()
		w.LayerDone(0)
		w.Stepped(&core.Input{Kind: core.PieceReady},
			append(out, core.Effect{Kind: core.Send, Msg: push}, core.Effect{Kind: core.SendPiece}), now())
		w.Stepped(&core.Input{Kind: core.PieceReady, Piece: 1}, append(out, core.Effect{Kind: core.SendPiece, Piece: 1},
			core.Effect{Kind: core.Send, Msg: wire.Header{Kind: wire.Pull, Iter: iter + 1}}), now())
		w.HandedOver(0)
		w.Backwarded()
		s.Stepped(&core.Input{Kind: core.Arrived, Msg: push})
		fold := core.Effect{Kind: core.Fold, Msg: push}
		s.Begin(iter)
		s.Fold(&fold)
		commit := core.Effect{Kind: core.Commit, Iter: iter + 1, Clock: float64(iter)}
		s.Begin(CommitIter(&commit))
		s.Commit(&commit)
		reply := core.Effect{Kind: core.Reply, Msg: wire.Header{Kind: wire.Reply, Iter: iter + 1}}
		s.BeginReply(&reply)
		s.Reply(&reply)
		w.Stepped(&core.Input{Kind: core.PieceSent}, nil, now())
		w.Stepped(&core.Input{Kind: core.PieceSent, Piece: 1}, nil, now())
		w.Stepped(&core.Input{Kind: core.Arrived, Msg: reply.Msg}, nil, now())
		w.Stepped(&core.Input{Kind: core.PieceLanded}, nil, now())
		w.Stepped(&core.Input{Kind: core.PieceLanded, Piece: 1}, nil, now())
	}
	return []*Rank{server, worker}, w, s, iteration
}

// about is two ranks whose clocks are aligned.
func about() []About {
	clock := Clock{Aligned: true}
	return []About{{Role: "s0", Host: "a", Clock: clock}, {Role: "w0", Host: "b", Clock: clock}}
}

func whole(t interface{ Fatal(...any) }, run string, ranks []*Rank, about []About) (string, *timelinetest.Trace) {
	var b bytes.Buffer
	if err := Write(&b, run, ranks, about); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := timelinetest.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err, "\n", string(text))
	}
	return string(text), trace
}

func TestOneIterationGolden(t *testing.T) {
	ranks, _, _, iteration := script(Limits{Events: 100, First: 10}, "fc1", "*/0")
	iteration(0)
	text, trace := whole(t, "a run", ranks, about())
	if f := trace.Figures(); f != (timelinetest.Figures{Ranks: 2, Spans: 12, Pushes: 1, Overlapped: 1, Whole: 1}) {
		t.Errorf("figures %+v", f)
	}
	path := filepath.Join("testdata", "iteration.json")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || text != string(want) {
		t.Errorf("%v; %s differs (rewrite with -update):\n%s", err, path, text)
	}
}

// Whatever names a configuration has, they are names, and nothing else in the file changes.
func TestHostileNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.Just(`"}]},{"ph":"X"`), rapid.Just("\x1b[31m</script>\u2028\n"))
		layer, name, run := text.Draw(t, "layer"), text.Draw(t, "shard"), text.Draw(t, "run")
		ranks, _, _, iteration := script(Limits{Events: 100, First: 10}, layer, name)
		iteration(0)
		of := about()
		of[0].Role, of[1].Host = text.Draw(t, "role"), text.Draw(t, "host")
		got, trace := whole(t, run, ranks, of)
		if f := trace.Figures(); f != (timelinetest.Figures{Ranks: 2, Spans: 12, Pushes: 1, Overlapped: 1, Whole: 1}) {
			t.Fatalf("figures %+v", f)
		}
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		hasName := func(want string) bool {
			return slices.ContainsFunc(trace.Spans, func(s timelinetest.Span) bool { return s.Name == want })
		}
		if len(strings.ToValidUTF8(name, "")) == len(name) && !hasName("push "+valid(name)) {
			t.Fatalf("no span has the name of the shard %q", name)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' && r != '\n' }) || strings.Contains(got, "</script>") {
			t.Fatalf("a control character or a tag is in the file: %q", got)
		}
		if lines := strings.Count(got, "\n"); lines != 2+2*4+2*4+12+4+1 {
			t.Fatalf("%d lines:\n%s", lines, got)
		}
	})
}

// The iterations that are recorded are few, however long the run is, and every decade has some.
func TestSampling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{First: rapid.Int64Range(1, 300).Draw(t, "first")}
		upTo := l.First * 1000
		n, last := int64(0), int64(0)
		for i := range upTo {
			if !l.Samples(i) {
				if i < l.First {
					t.Fatalf("iteration %d of the first %d is left out", i, l.First)
				}
				continue
			}
			if gap := i - last; gap > max(1, 10*i/l.First) {
				t.Fatalf("nothing between the iterations %d and %d", last, i)
			}
			n, last = n+1, i
		}
		if most := l.First + 3*(l.First*9/10+10); n > most {
			t.Fatalf("%d of %d iterations are recorded, at most %d should be", n, upTo, most)
		}
	})
	for _, huge := range []int64{1 << 40, 1 << 62} {
		if (Limits{First: 1}).Samples(huge+1) || (Limits{First: 1000}).Samples(huge+1) {
			t.Errorf("iteration %d is recorded", huge+1)
		}
	}
}

func TestLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks, busiest := rapid.IntRange(1, 20_000).Draw(t, "ranks"), rapid.IntRange(0, 1_000_000).Draw(t, "events")
		l := LimitsOf(ranks, busiest)
		if l.Events < eventsOfRankMin || l.Events > EventsOfRankMax || l.Events > eventsOfRankMin &&
			l.Events*ranks > EventsMax || l.First < 1 || l.First > FirstMax {
			t.Fatalf("%+v", l)
		}
		if l.First > 1 && l.First*int64(busiest)*sixDecades/10 > int64(l.Events) {
			t.Fatalf("%+v has no room for %d events in each of its iterations", l, busiest)
		}
	})
}

// A rank that has no room leaves spans out, counts them, and the file stays right.
func TestFullBuffer(t *testing.T) {
	ranks, _, _, iteration := script(Limits{Events: 20, First: 10}, "fc1", "*/0")
	for i := range int64(10) {
		iteration(i)
	}
	if n := ranks[1].LeftOut(); n != 10*9-20 {
		t.Errorf("%d spans left out, want %d", n, 10*9-20)
	}
	if _, trace := whole(t, "a", ranks, about()); len(trace.Spans) != 40 {
		t.Errorf("%d spans", len(trace.Spans))
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	_, _, _, iteration := script(Limits{Events: 10_000, First: 1 << 40}, "fc1", "*/0")
	iter := int64(0)
	if n := testing.AllocsPerRun(100, func() { iteration(iter); iter++ }); n != 0 {
		t.Errorf("an iteration allocates %v times", n)
	}
	var w *Worker
	var s *Server
	w.Begin(0)
	w.Stepped(&core.Input{}, nil, 0)
	s.Stepped(&core.Input{})
}

// A part is a trace after every write, and a torn end costs only that end.
func TestPartsOpenAtAnyTime(t *testing.T) {
	dir := t.TempDir()
	folder := durable.Below(dir)
	in := folder.MakeIn(Folder, 0o777)
	ranks, _, _, iteration := script(Limits{Events: 10_000, First: 1000}, "fc1", "*/0")
	var parts []*Part
	for i, r := range ranks {
		p, err := OpenPart(in, PartName(0, i), r, about()[i])
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	spans := 0
	for i := range int64(50) {
		iteration(i)
		for k, p := range parts {
			if err := p.flush(); err != nil {
				t.Fatal(err)
			}
			trace, err := timelinetest.Read(filepath.Join(dir, Folder, PartName(0, k)))
			if err != nil || trace.Closed || trace.Processes[k] == "" {
				t.Fatal(trace, err)
			}
			spans += len(trace.Spans)
		}
	}
	if want := 12 * 50 * 51 / 2; spans != want {
		t.Errorf("%d spans, want %d", spans, want)
	}
	for k, p := range parts {
		if err := p.close(closeWait); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, Folder, PartName(0, k))
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, data[:len(data)-5], 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := Join(folder, "a"); err != nil {
		t.Fatal(err)
	}
	trace, err := timelinetest.Read(filepath.Join(dir, Name))
	if err != nil || trace.Other["killed"] != true {
		t.Fatal(trace, err)
	}
	if f := trace.Figures(); f.Spans < 12*48 || f.Whole < 48 || f.Ranks != 2 {
		t.Errorf("joined: %+v", f)
	}
	if left, err := os.ReadDir(filepath.Join(dir, Folder)); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// One goroutine writes while others record.
func TestRecordingWhileWriting(t *testing.T) {
	dir := t.TempDir()
	ranks, _, _, _ := script(Limits{Events: 50_000, First: 1 << 40}, "fc1", "*/0")
	r := ranks[1]
	p, err := OpenPart(durable.Below(dir), PartName(0, 1), r, about()[1])
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for g := range 4 {
		writers.Go(func() {
			for i := range int64(5000) {
				at := time.Duration(i) * time.Microsecond
				r.add(span{kind: Step, stream: int16(10 + g), worker: 0, iter: i, from: at, till: at + 5})
			}
		})
	}
	for r.Len() < 4*5000 {
		if err := p.flush(); err != nil {
			t.Fatal(err)
		}
	}
	writers.Wait()
	recording := &Recording{Rank: r, Part: p}
	recording.BeginPart(func() {}) // writes the rest
	if err := errors.Join(recording.EndPart(), recording.EndPart()); err != nil {
		t.Fatal(err)
	}
	trace, err := timelinetest.Read(filepath.Join(dir, PartName(0, 1)))
	if err != nil || len(trace.Spans) != 4*5000 {
		t.Fatal(err)
	}
}

func TestAlignment(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		clock     Clock
		iteration time.Duration
		aligned   bool
		text      string
	}{
		{Clock{}, us, true, "the clock of rank 0"},
		{Clock{Error: 10 * us}, 0, true, "clock within 10µs at the start, drift not known"},
		{Clock{Error: 10 * us, Measured: time.Second}, 100 * us, true, "clock within 10µs"},
		{Clock{Error: 10 * us}, 99 * us, false, "clock not aligned: no arrows"},
	} {
		if c.clock.Align(c.iteration); c.clock.Aligned != c.aligned || c.clock.Text() != c.text || (c.clock.Why == "") != c.aligned {
			t.Errorf("%+v with iterations of %v", c.clock, c.iteration)
		}
	}
}

// A clock that runs evenly away is corrected, within the errors of the two measurements, and one that is measured to stand still stays.
func TestDriftIsCorrected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name))
		}
		first, second := draw("error", time.Millisecond), draw("error at the end", time.Millisecond)
		wrong := func(name string, bound time.Duration) time.Duration { return 2*draw(name, bound) - bound }
		off, offEnd := wrong("offset", first), wrong("offset at the end", second)
		drift := wrong("drift", 50*time.Millisecond)
		end := time.Second + draw("end", time.Hour)
		reads := func(at time.Duration) time.Duration { // the rank's clock at a time of rank 0's
			return at + off + time.Duration(float64(drift)*float64(at)/float64(end))
		}
		c := Clock{Error: first}.Measure(drift+off-offEnd, second, reads(end))
		for range 5 {
			at := draw("at", end)
			if wrong := (c.At(reads(at)) - at).Abs(); wrong > c.Error+first+second+2 {
				t.Fatalf("%v is corrected to %v, with an error of %v", at, c.At(reads(at)), c.Error)
			}
		}
	})
}

// Arrows lead neither from nor to a rank whose clock is not aligned.
func TestNoArrowsWithoutAlignment(t *testing.T) {
	for rank := range 2 {
		ranks, _, _, iteration := script(Limits{Events: 100, First: 10}, "fc1", "*/0")
		iteration(0)
		of := about()
		of[rank].Clock = Clock{Error: time.Millisecond}
		of[rank].Clock.Align(time.Millisecond)
		of[0].Apart = []bool{rank == 1}
		text, trace := whole(t, "a", ranks, of)
		if f := trace.Figures(); f.Spans != 12 || f.Whole != 0 || f.Loose != 0 ||
			!strings.Contains(text, "is more than a tenth of an iteration") || trace.Clocks[rank].Aligned {
			t.Errorf("without the clock of rank %d: %+v, clocks %+v", rank, f, trace.Clocks)
		}
	}
}
