package metrics

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func text(t *testing.T, s *Summary) string {
	t.Helper()
	var w writes
	if err := WriteText(&w, s, TextWidth); err != nil {
		t.Fatal(err)
	}
	if len(w) != 1 {
		t.Errorf("%d Write calls, want 1", len(w))
	}
	return w[0]
}

func TestWriteText(t *testing.T) {
	golden(t, "summary.txt", text(t, sample()))

	failed := &Summary{
		Job: Job{
			Name: "first", Mode: "local", Servers: 1, Workers: 1,
			Finished: "rank 3 (worker 1 on node-b): no data file\nsee logs/rank-0003.log",
		},
		Seed:    1,
		Quality: Quality{Target: Some(0.95), TrainLoss: Some(math.NaN())},
		Costs:   Costs{SamplesPerS: Float(math.NaN())},
	}
	golden(t, "summary_failed.txt", text(t, failed))
}

// A summary of many shards with long names and large counts, under schemes with long names, on many devices, fits into 80 columns.
// It also fits with the label of simulated runs.
func TestSummaryFitsItsWidth(t *testing.T) {
	for _, width := range []int{TextWidth, TextWidth - len("simulated: ")} {
		s := sample()
		s.Target = nil
		s.Payload = Payload{Push: "topk (ratio 0.01)", Pull: "bfloat16", Lossy: true}
		s.BytesBetween, s.BytesShared, s.Hierarchy, s.Computing = new(int64), 1<<40, "node", 1024
		s.Resumed = &Resumed{Iteration: 3050, Samples: 780800}
		for i := range s.PerWorker {
			s.PerWorker[i].Device = fmt.Sprintf("cuda (GPU %d, NVIDIA H100 80GB HBM3, cuBLAS 12)", i)
		}
		for i := range 12 {
			s.PerShard = append(s.PerShard, ShardSummary{
				Shard:        100 + i,
				Server:       11,
				Bytes:        9999 << 20,
				Scheme:       "bounded_delay",
				Pushes:       1_234_567,
				Pulls:        1,
				DelayedPulls: 1,
				DroppedFor:   map[string]int64{"late": 1 << 40, "surplus": 1 << 41},
				Dropped:      1 << 42,
				Lags:         Lags{StalenessP50: 100, StalenessP99: 900, StalenessMax: 1000},
				WaitedLast:   1,
				Name:         fmt.Sprintf("layer%d.*/residual.block.1.conv2.weight/%d", i, i),
			})
			s.PerShard[len(s.PerShard)-1].TurnCounts = TurnCounts{DelayedGrants: 1_000_000, DelayedGrantsS: 1e6,
				MissedTurns: 1 << 30, Strays: 1 << 30}
			s.PerShard[len(s.PerShard)-1].Published = 1 << 50
		}
		var b strings.Builder
		if err := WriteText(&b, s, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := len(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns, at most %d: %s", n, width, line)
			}
		}
		if !strings.Contains(b.String(), "..") || !strings.Contains(b.String(), "ght/11\n") {
			t.Errorf("the end of a cut name is missing:\n%s", b.String())
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text          string
		width, indent int
		want          string
	}{
		{"", 10, 2, ""},
		{"ten chars.", 10, 2, "ten chars."},
		{"eleven char", 10, 2, "eleven\n  char"},
		{"a averyveryverylongword b", 10, 2, "a\n  averyveryverylongword\n  b"},
		{"  label  a b c d", 11, 9, "  label  a\n         b\n         c\n         d"},
	} {
		if got := Wrap(c.text, c.width, c.indent); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestWriteTextBoundsItsTables(t *testing.T) {
	s := sample()
	for i := range 100 {
		s.PerShard = append(s.PerShard, ShardSummary{Shard: 3 + i, Scheme: "asp"})
		s.Evaluations = append(s.Evaluations, Evaluation{Samples: int64(i)})
	}
	got := text(t, s)
	for _, want := range []string{"63 shards more in summary.json\n", "82 evaluations before these in summary.json\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > 110 {
		t.Errorf("%d lines, want at most 110", n)
	}
}

// The head shows the first changes of scheme, and how many more there are.
func TestTheHeadShowsTheFirstChanges(t *testing.T) {
	s := sample()
	if got := text(t, s); strings.Contains(got, "  scheme ") {
		t.Errorf("a change that was none:\n%s", got)
	}
	for i := range 12 {
		s.Changes = append(s.Changes, Change{Iteration: 1000 * int64(i), Match: "*", Scheme: "asp", Why: "worker 3 is slow"})
	}
	got := text(t, s)
	if n := strings.Count(got, "  scheme   asp from iteration "); n != 10 ||
		!strings.Contains(got, "asp from iteration 9,000 on (*), because worker 3 is slow\n") ||
		!strings.Contains(got, "  scheme   and 2 changes more, in summary.json\n") {
		t.Errorf("%d changes in:\n%s", n, got)
	}
}

func TestPerformanceLine(t *testing.T) {
	for _, c := range []struct {
		change func(*Summary)
		want   string
	}{
		{func(*Summary) {}, "Performance: 12,340 samples/s, 48.1 iterations/s, target 0.90 reached after 81 s"},
		{func(s *Summary) { s.TargetReachedS = Some(8.13) }, "Performance: 12,340 samples/s, 48.1 iterations/s, target 0.90 reached after 8.1 s"},
		{func(s *Summary) { s.TargetReachedS, s.Target = nil, Some(0.95) },
			"Performance: 12,340 samples/s, 48.1 iterations/s, target 0.95 not reached (best 0.9012)"},
		{func(s *Summary) { s.Target = nil }, "Performance: 12,340 samples/s, 48.1 iterations/s"},
		{func(s *Summary) { s.Target, s.TrainS, s.SamplesPerS = nil, 0, Float(math.Inf(1)) }, "Performance: - samples/s, - iterations/s"},
		{func(s *Summary) { s.Target, s.SamplesPerS = nil, 42.25 }, "Performance: 42.2 samples/s, 48.1 iterations/s"},
		{func(s *Summary) { s.Target, s.Resumed = nil, &Resumed{Iteration: 3050, Samples: 780800} },
			"Performance: 12,340 samples/s, 10.0 iterations/s"},
	} {
		s := sample()
		c.change(s)
		if got := performanceText(s); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// The times and rates of a resumed run are those of its last part, and the head says so.
func TestTheHeadSaysWhereARunResumed(t *testing.T) {
	s := sample()
	s.Resumed = &Resumed{Iteration: 3050, Samples: 780800}
	if got, want := headText(s, TextWidth),
		"\n  resumed  at iteration 3,050, sample 780,800: times, traffic and counts are of\n           the part since "+
			"then\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in:\n%s", want, got)
	}
	s.Resumed.Iteration = s.Iterations
	if got, want := headText(s, TextWidth),
		"nothing was left to train: to\n           continue, raise train.stop\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in:\n%s", want, got)
	}
	s.Resumed = nil
	if got := headText(s, TextWidth); strings.Contains(got, "resumed") {
		t.Errorf("the head says that a run resumed, which did not:\n%s", got)
	}
}

func TestTheHeadCountsRanksByDevice(t *testing.T) {
	s := sample()
	if got := devicesText(s); got != "" {
		t.Errorf("%q, but no worker has a device", got)
	}
	for w := range s.PerWorker {
		s.PerWorker[w].Device = "cuda (GPU 0)"
	}
	s.PerWorker[1].Device = "cpu"
	s.PerWorker[2].Members = []MemberSummary{{Device: "cpu"}}
	if got, want := devicesText(s), "3 ranks on cuda (GPU 0), 2 ranks on cpu"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 10 {
		s.PerWorker = append(s.PerWorker, WorkerSummary{Device: fmt.Sprint("gpu", i)})
	}
	if got := devicesText(s); !strings.HasSuffix(got, ", 1 rank on gpu5, 4 more in summary.json") {
		t.Errorf("got %q, want 8 devices and a count of the others", got)
	}
}

func TestWriteTextReportsTheWriter(t *testing.T) {
	if err := WriteText(broken{}, sample(), TextWidth); err == nil || err.Error() != "disk full" {
		t.Errorf("error %v, want disk full", err)
	}
}

// quiet is a run that needs no advice.
func quiet() *Summary {
	const wall = 100 * time.Second
	s := &Summary{
		Job:    Job{Servers: 2, Workers: 3},
		Costs:  Costs{TrainS: 100},
		Extent: Extent{Iterations: 100},
		PerRole: map[string]RoleTimes{
			RoleWorker: OverRanks([]Spans{spans(wall, 90000, 2000, 5000, 2000)}),
			RoleServer: OverRanks([]Spans{spans(wall, 0, 1000, 0, 1000, 40000, 58000)}),
		},
		PerShard: []ShardSummary{
			{Shard: 0, Name: "*/0", Scheme: "bsp", BoundKey: "scheme: ssp, staleness", Bytes: 1000, WaitedLast: 50},
			{Shard: 1, Name: "*/1", Scheme: "bsp", BoundKey: "scheme: ssp, staleness", Bytes: 1000, WaitedLast: 50, Server: 1},
			{Shard: 2, Name: "*/2", Scheme: "bsp", BoundKey: "scheme: ssp, staleness", Bytes: 1000, WaitedLast: 50},
		},
	}
	for w := range 3 {
		s.PerWorker = append(s.PerWorker,
			WorkerSummary{Worker: w, Rank: w + 2, Host: "node-a", Iterations: 100, ComputeS: 90, BlockedS: 5,
				Pace: paced(100, func(int) float64 { return 0.9 })})
	}
	return s
}

// paced is the pace of a worker whose iterations compute for so many seconds.
func paced(n int, seconds func(i int) float64) *Pace {
	p := NewPace(3)
	for i := range n {
		p.Add(time.Duration(seconds(i) * 1e9))
	}
	return &p
}

// blockedFor makes every worker wait for that share of the time.
func (s *Summary) blockedFor(share float64) {
	s.PerRole[RoleWorker][Blocked.String()] = Range{Avg: s.TrainS * Float(share)}
	for i := range s.PerWorker {
		s.PerWorker[i].BlockedS = s.TrainS * Float(share)
	}
}

func TestNotes(t *testing.T) {
	times := func(s *Summary, w int, seconds func(i int) float64) { s.PerWorker[w].Pace = paced(100, seconds) }
	slow := func(s *Summary) { // one worker is always slow
		s.blockedFor(0.6)
		for w := range 3 {
			times(s, w, func(int) float64 { return []float64{0.18, 0.9, 0.18}[w] })
		}
	}
	inTurn := func(s *Summary) { // each worker is 6 times as slow in every ninth iteration
		s.blockedFor(0.4)
		for w := range 3 {
			times(s, w, func(i int) float64 { return 0.2 + float64(b2i(i%9 == 3*w)) })
		}
	}
	lead := func(s *Summary, most int64) {
		for i := range s.PerShard {
			s.PerShard[i].LeadMax = most
		}
	}
	turns := func(s *Summary) {
		s.blockedFor(0.5)
		setScheme(s, "r2sp")
		lead(s, 2)
		for i := range s.PerShard {
			s.PerShard[i].TurnCounts = TurnCounts{DelayedGrants: 290, DelayedGrantsS: 120, MissedTurns: 12, Strays: 3}
		}
	}
	last := func(s *Summary) {
		s.blockedFor(0.5)
		s.PerShard[2].WaitedLast = 900
		s.PerRole[RoleServer]["idle"] = Range{Avg: 20}
	}
	var all strings.Builder
	for _, c := range []struct {
		name   string
		change func(*Summary)
	}{
		{"quiet", func(*Summary) {}},
		{"no training at all", func(s *Summary) { s.TrainS = 0 }},
		{"slow worker under bsp", slow},
		{"slow worker under ssp", func(s *Summary) { slow(s); setScheme(s, "ssp"); lead(s, 3) }},
		{"slow worker under asp", func(s *Summary) { slow(s); setScheme(s, "asp"); lead(s, 400) }},
		{"slow worker under a bound that was never reached", func(s *Summary) {
			slow(s)
			setScheme(s, "ssp")
			lead(s, 80)
			s.PerWorker[0].Iterations, s.PerWorker[1].Iterations, s.PerWorker[2].Iterations = 140, 30, 130
		}},
		{"slow worker, nobody waits", func(s *Summary) { slow(s); s.blockedFor(0.05) }},
		{"slow worker under a baseline", func(s *Summary) { slow(s); s.Baseline = "pslite" }},
		{"slow worker, too little seen of one", func(s *Summary) {
			slow(s)
			s.PerWorker[2].Pace = paced(seenMin-1, func(int) float64 { return 0.18 })
		}},
		{"slow worker after 19 iterations of a resumed run", func(s *Summary) {
			slow(s)
			s.Resumed = &Resumed{Iteration: 81}
		}},
		{"slow worker in half of the run", func(s *Summary) {
			slow(s)
			times(s, 1, func(i int) float64 { return 0.18 + 0.72*float64(i/50) })
		}},
		{"two slow workers of five", func(s *Summary) {
			slow(s)
			for range 2 {
				s.PerWorker = append(s.PerWorker, s.PerWorker[0])
			}
			s.PerWorker[3].Worker, s.PerWorker[4].Worker, s.PerWorker[4].Pace = 3, 4, paced(100, func(int) float64 { return 0.4 })
			s.Workers = 5
		}},
		{"slightly slow worker", func(s *Summary) {
			s.blockedFor(0.3)
			times(s, 1, func(int) float64 { return 0.9 * 1.4 })
		}},
		{"slow in turn under bsp", inTurn},
		{"slow in turn under ssp with 2", func(s *Summary) { inTurn(s); setScheme(s, "ssp"); lead(s, 2) }},
		{"slow in turn under bounded_delay with 1", func(s *Summary) { inTurn(s); setScheme(s, "bounded_delay"); lead(s, 1) }},
		{"slow in turn under ssp with 12, which evens it out", func(s *Summary) { inTurn(s); setScheme(s, "ssp"); lead(s, 12) }},
		{"slow in turn, but the exchange takes ten times as long", func(s *Summary) { inTurn(s); s.TrainS = 1000; s.blockedFor(0.4) }},
		{"slow worker under r2sp", func(s *Summary) { slow(s); turns(s) }},
		{"turns under r2sp", turns},
		{"turns under r2sp, hardly any wait", func(s *Summary) { turns(s); s.blockedFor(0.05) }},
		{"last shard, all bsp", last},
		{"last shard is the only bsp", func(s *Summary) {
			last(s)
			s.PerShard[0].Scheme, s.PerShard[1].Scheme, s.PerShard[2].DelayedS = "ssp", "ssp", 120
		}},
		{"last shard is the only bsp, which hardly delayed a pull", func(s *Summary) {
			last(s)
			s.PerShard[0].Scheme, s.PerShard[1].Scheme, s.PerShard[2].DelayedS = "ssp", "ssp", 20
		}},
		{"last shard, little to gain", func(s *Summary) { last(s); s.blockedFor(0.15) }},
		{"last shard is large", func(s *Summary) { last(s); s.PerShard[2].Bytes = 9000 }},
		{"last shard is large, of another rule", func(s *Summary) { last(s); s.PerShard[2].Bytes, s.PerShard[2].Name = 9000, "fc3.*/0" }},
		{"last shard, servers idle", func(s *Summary) { last(s); s.PerRole[RoleServer]["idle"] = Range{Avg: 90} }},
		{"last shard, too few waits", func(s *Summary) { last(s); s.PerShard = []ShardSummary{{WaitedLast: 2}, {}} }},
		{"fold-bound", func(s *Summary) { s.blockedFor(0.5); s.PerRole[RoleServer]["fold"] = Range{Max: 85} }},
		{"idle servers", func(s *Summary) { s.PerRole[RoleServer]["idle"] = Range{Min: 95} }},
		{"one idle server", func(s *Summary) { s.Servers = 1; s.PerRole[RoleServer]["idle"] = Range{Min: 95} }},
		{"one idle server of many workers", func(s *Summary) {
			s.Servers, s.Workers = 1, 16
			s.PerRole[RoleServer]["idle"] = Range{Min: 100}
		}},
		{"idle servers that are goroutines", func(s *Summary) { s.Mode = "local"; s.PerRole[RoleServer]["idle"] = Range{Min: 95} }},
		{"idle servers without cores of their own", func(s *Summary) { s.Crowded = true; s.PerRole[RoleServer]["idle"] = Range{Min: 95} }},
		{"idle servers behind a slow network", func(s *Summary) { s.blockedFor(0.6); s.PerRole[RoleServer]["idle"] = Range{Min: 95} }},
		{"traffic", func(s *Summary) {
			s.PerRole[RoleWorker]["push"] = Range{Avg: 30}
			s.PerRole[RoleWorker]["pull"] = Range{Avg: 15}
		}},
		{"the two of four that gain the most", func(s *Summary) {
			slow(s)
			last(s)
			s.PerRole[RoleServer]["fold"] = Range{Max: 85}
			s.PerRole[RoleWorker]["push"] = Range{Avg: 45}
		}},
	} {
		s := quiet()
		c.change(s)
		got := Notes(s)
		if len(got) > notesMax {
			t.Errorf("%s: %d notes, limit %d", c.name, len(got), notesMax)
		}
		all.WriteString(c.name + "\n")
		for _, n := range got {
			fmt.Fprintf(&all, "  %s\n", n)
		}
	}
	golden(t, "notes.txt", all.String())
}

// setScheme gives all shards a scheme, and the key that bounds its lead in the table of schemes.
func setScheme(s *Summary, name string) {
	keys := map[string]string{"bsp": "scheme: ssp, staleness", "ssp": "staleness", "dssp": "s_u", "dsps": "s_max", "bounded_delay": "tau"}
	for i := range s.PerShard {
		s.PerShard[i].Scheme, s.PerShard[i].BoundKey = name, keys[name]
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(1000), "1,000"}, {thousands(-1234567), "-1,234,567"},
		{Size(0), "0 B"}, {Size(1023), "1023 B"}, {Size(1536), "1.5 KiB"}, {Size(3 << 40), "3.00 TiB"},
		{Size(5000 << 40), "5000.00 TiB"},
		{clock(59400 * time.Millisecond), "0:59"}, {clock(59600 * time.Millisecond), "1:00"}, {clock(3661 * time.Second), "1:01:01"},
		{rate(99.94), "99.9"}, {rate(100), "100"}, {rate(math.NaN()), "-"}, {rate(math.Inf(1)), "-"}, {rate(1e300), "-"},
		{percent(1, 0), "-"}, {percent(0, 0), "-"}, {percent(1, 8), "12.5"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestATargetIsNotRoundedAway(t *testing.T) {
	for v, want := range map[float64]string{0.9: "0.90", 0.999: "0.999", 1: "1.00", 0.855: "0.855"} {
		if got := target(v); got != want {
			t.Errorf("target(%v) = %s, want %s", v, got, want)
		}
	}
}

// The text sums up cached reads and published versions over all shards. It is silent if there were none.
func TestTextSaysWhatCopiesSavedAndCost(t *testing.T) {
	s := sample()
	if text := text(t, s); strings.Contains(text, "cached") || strings.Contains(text, "published") {
		t.Errorf("copies in a run that keeps none:\n%s", text)
	}
	s.PerShard[0].AddCached(3, 1<<20)
	s.PerShard[1].AddCached(1000, 1<<10)
	s.PerShard[1].Published = 12
	for _, want := range []string{"Over all shards: 1,003 pulls and 3.98 MiB saved by cached copies\n",
		"Over all shards: 12 versions published\n"} {
		if text := text(t, s); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := s.PerShard[0]; got.CachedReads != 3 || got.SavedBytes != 3<<20 {
		t.Errorf("%d cached reads saved %d bytes", got.CachedReads, got.SavedBytes)
	}
}

// Without classes the root of the mean squared error replaces the accuracy.
func TestRMSEInsteadOfAccuracy(t *testing.T) {
	s := sample()
	if got := text(t, s); strings.Contains(got, "RMSE") {
		t.Errorf("an RMSE in spite of classes:\n%s", got)
	}
	for i := range s.Evaluations {
		e := &s.Evaluations[i]
		e.TestAccuracy = nil
		loss := 0.0625 * float64(i+1)
		e.Judge(Judge{Measure: Misses, Rows: 4, Deviation: 1, Spread: 2}, Sums{Loss: 4 * loss, Squared: 4 * loss, Absolute: 2})
	}
	s.Conclude()
	if s.TestAccuracy != nil || s.TestRMSE == nil || *s.TestLoss != Float(0.0625*float64(len(s.Evaluations))) {
		t.Errorf("the run has accuracy %v, RMSE %v, loss %v", s.TestAccuracy, s.TestRMSE, *s.TestLoss)
	}
	got := text(t, s)
	if want := fmt.Sprintf("test RMSE %.4f, test MAE\n           0.5000, test R2 %.4f\n", math.Sqrt(float64(*s.TestLoss)),
		1-float64(*s.TestLoss)/2); !strings.Contains(got, want) ||
		strings.Contains(got, "ccuracy") {
		t.Errorf("no %q, or an accuracy, in\n%s", want, got)
	}
	if !strings.Contains(got, "| Test RMSE | Test MAE | Test R2 |") ||
		!strings.Contains(got, "|    0.2500 |   0.5000 |  0.9688 |    0.0625 | snapshot\n") {
		t.Errorf("evaluations without RMSE in\n%s", got)
	}
	if j, err := s.JSON(); err != nil || !strings.Contains(string(j), `"test_accuracy": null`) ||
		!strings.Contains(string(j), `"test_rmse": 0.25`) {
		t.Errorf("error %v, JSON\n%s", err, j)
	}
}

// The number of clipped gradients is shown only where there are some that could be.
func TestClippedGradientsAreCounted(t *testing.T) {
	s := sample()
	s.AddClipped(0, 0)
	if got := text(t, s); strings.Contains(got, "clipped") {
		t.Errorf("a line on clipped gradients without train.clip:\n%s", got)
	}
	s.AddClipped(1200, 2000)
	s.AddClipped(34, 1000)
	if got := text(t, s); !strings.Contains(got, "  clipped  1,234 of 3,000 gradients, to train.clip.norm\n") {
		t.Errorf("no line on clipped gradients in\n%s", got)
	}
}

// The number of zero parameters is shown only with an L1 penalty.
func TestZeroParametersAreCounted(t *testing.T) {
	s := sample()
	if got := text(t, s); strings.Contains(got, "sparsity") {
		t.Errorf("a line on sparsity without l1:\n%s", got)
	}
	s.Sparsity = SparsityOf([]float32{1, 0, float32(math.Copysign(0, -1)), 1e-30, float32(math.NaN())})
	if *s.Sparsity != (Sparsity{Parameters: 5, Zeros: 2}) {
		t.Errorf("counted %+v, want 2 of 5", *s.Sparsity)
	}
	if got := text(t, s); !strings.Contains(got, "  sparsity 2 of 5 parameters are exactly 0\n") {
		t.Errorf("no line on sparsity in\n%s", got)
	}
}

// Every note states its gain, which is gainMin or more, and the one that gains the most is first. None is about anything else.
func TestNotesStateTheirGain(t *testing.T) {
	stated := regexp.MustCompile(`(?:about|at least|up to) ([0-9.]+) times`)
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		s := quiet()
		s.Servers, s.Workers, s.Samples = 1+r.IntN(4), 3, 1e6
		s.blockedFor(r.Float64())
		for w := range s.PerWorker {
			base, burst := 0.1+r.Float64(), 4*r.Float64()
			s.PerWorker[w].Pace = paced(100, func(i int) float64 { return base + burst*float64(b2i(i%9 == 3*w)) })
		}
		setScheme(s, []string{"bsp", "ssp", "r2sp", "asp"}[r.IntN(4)])
		for i := range s.PerShard {
			h := &s.PerShard[i]
			h.LeadMax, h.WaitedLast, h.Bytes, h.DelayedGrantsS, h.DelayedS = int64(r.IntN(4)), int64(r.IntN(900)),
				int64(1+r.IntN(9000)), Float(200*r.Float64()), Float(200*r.Float64())
		}
		s.PerRole[RoleServer]["fold"] = Range{Max: Float(100 * r.Float64())}
		s.PerRole[RoleServer]["idle"] = Range{Min: Float(100 * r.Float64()), Avg: Float(100 * r.Float64())}
		s.PerRole[RoleWorker]["push"], s.PerRole[RoleWorker]["pull"] = Range{Avg: Float(50 * r.Float64())}, Range{Avg: Float(50 * r.Float64())}
		all, got := findings(s), Notes(s)
		if len(got) > notesMax {
			t.Fatalf("%d notes", len(got))
		}
		for i, n := range got {
			found := stated.FindAllStringSubmatch(n, -1)
			best := 0.0
			for _, m := range found {
				v, err := strconv.ParseFloat(m[1], 64)
				if err != nil {
					t.Fatal(err)
				}
				best = max(best, v)
			}
			if best < gainMin || all[i].gain < gainMin || i > 0 && all[i].gain > all[i-1].gain || all[i].text != n {
				t.Fatalf("note %d gains %v, after %v: %s", i, all[i].gain, all[max(0, i-1)].gain, n)
			}
		}
	}
}

// That the payload is lossy is no advice: it stands in the head.
func TestALossyPayloadIsDeclared(t *testing.T) {
	s := sample()
	advice := Notes(s)
	s.Payload = Payload{Push: "topk (ratio 0.01)", Pull: "bfloat16", Lossy: true}
	if got := Notes(s); !slices.Equal(got, advice) {
		t.Errorf("notes %q, want %q", got, advice)
	}
	if text, want := text(t, s),
		"  payload  lossy: pushes travelled as topk (ratio 0.01), parameters as bfloat16\n"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	if s.Payload.Lossy = false; strings.Contains(text(t, s), "lossy") {
		t.Error("a payload that is not lossy is called so")
	}
}
