package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// obeyCopies obeys a worker's effects about its copies.
func (c *cluster) obeyCopies(w *workernode.Worker, name string, e core.Effect) error {
	key := [2]int32{w.Me(), e.Shard}
	own := fmt.Sprintf(" w%d.%d", w.Me(), c.gradientOf(w, c.plan.Shards[e.Shard].Pieces[0].ID))
	switch e.Kind {
	case core.ExpectBeside:
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			line := fmt.Sprintf("publish %d %s", p.ID, name)
			if len(c.posted[line]) > 0 {
				return fmt.Errorf("two receives beside the arena at the same time")
			}
			c.posted[line] = append(c.posted[line], pending{line: line, node: w, name: name, in: core.Input{Kind: core.PieceLanded, Piece: p.ID}})
			c.matchPublished(line)
		}
	case core.Read:
		c.heardOf(w, e.Shard).reads()
		return c.near.read(c, w, e)
	case core.Adopt:
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			c.arena[[2]int32{w.Me(), p.ID}] = c.beside[key]
		}
		c.heardOf(w, e.Shard).takes()
	case core.Keep:
		c.kept[[3]int32{w.Me(), e.Shard, e.Slot}] = own
	case core.AddLocal:
		push := own
		if e.Slot >= 0 {
			push = c.kept[[3]int32{w.Me(), e.Shard, e.Slot}]
		}
		if want := fmt.Sprintf(" w%d.%d", w.Me(), e.Iter); push != want {
			return fmt.Errorf("adds%s, which should be%s", push, want)
		}
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			c.arena[[2]int32{w.Me(), p.ID}] += push
		}
	}
	return nil
}

// matchPublished lands a published piece, if it was sent and its receive is posted.
func (c *cluster) matchPublished(line string) {
	if len(c.publishedPieces[line]) == 0 || len(c.posted[line]) == 0 {
		return
	}
	p, content := c.posted[line][0], c.publishedPieces[line][0]
	c.posted[line], c.publishedPieces[line] = c.posted[line][1:], c.publishedPieces[line][1:]
	key := [2]int32{p.node.(*workernode.Worker).Me(), c.plan.Pieces[p.in.Piece].Shard}
	p.then = func() { c.beside[key] = content }
	c.add(p)
}

// nothingComing checks that a worker which is done has received all versions published to it, and has no receive
// posted.
func (c *cluster) nothingComing(t *rapid.T) {
	for line, sent := range c.publishedPieces {
		if len(sent) > 0 || len(c.posted[line]) > 0 {
			t.Fatalf("%s: %d pieces were sent and %d receives posted that did not meet", line, len(sent), len(c.posted[line]))
		}
	}
}

// readsOfCopies checks what a worker reads of the shards that it keeps copies of, when it starts iteration c.
func (c *cluster) readsOfCopies(w *workernode.Worker, iter int64) error {
	for i := range c.plan.Pieces {
		if err := c.readOfCopy(w, int32(i), iter); err != nil {
			return err
		}
	}
	return nil
}

// readOfCopy compares what a worker reads in iteration c, of a shard that it keeps a copy of, with the promises of
// Bösen (notes 2.5 [C]). I1: all updates of iterations before c - s. I2: all of its own, each once. And no update of an
// iteration beyond c + s, since no worker is further ahead. I3 is in checkShard: every push is in exactly one version.
func (c *cluster) readOfCopy(w *workernode.Worker, piece int32, iter int64) error {
	i := c.plan.Pieces[piece].Shard
	k := c.copyOf(c.plan.Shards[i].Rule)
	if k.Kind == scheme.Pulled {
		return nil
	}
	content := c.arena[[2]int32{w.Me(), piece}]
	read := map[string]bool{}
	for _, push := range strings.Fields(content) {
		if push != "|" && read[push] {
			return fmt.Errorf("shard %d: w%d reads %s twice at %d: %s", i, w.Me(), push, iter, content)
		}
		read[push] = true
	}
	delete(read, "|")
	for u, computed := range c.computed {
		if slices.Contains(c.dead, c.workers[u]) {
			continue
		}
		for _, j := range computed {
			push := fmt.Sprintf("w%d.%d", u, j)
			if must := j < iter-k.Bound || u == int(w.Me()) && j < iter; must && !read[push] {
				return fmt.Errorf("shard %d: w%d does not read %s at %d with s=%d: %s", i, w.Me(), push, iter, k.Bound, content)
			}
			if j > iter+k.Bound && read[push] {
				return fmt.Errorf("shard %d: w%d reads %s at %d with s=%d", i, w.Me(), push, iter, k.Bound)
			}
		}
	}
	if clock := c.heardOf(w, i).clock; iter-clock > k.Bound {
		return fmt.Errorf("shard %d: w%d computes %d on a copy of clock %d, s=%d", i, w.Me(), iter, clock, k.Bound)
	}
	return nil
}

func genCached(t *rapid.T) rule {
	release := rapid.SampledFrom([]scheme.Release{scheme.ReleaseSoft, scheme.ReleaseLazy, scheme.ReleaseBlock}).Draw(t, "cached release")
	return rule{name: "ssp", params: &scheme.SSPParams{Staleness: int64(rapid.IntRange(0, 4).Draw(t, "s")), Release: release, Cache: true}}
}

func genPublished(t *rapid.T) rule {
	return rule{name: "essp", params: &scheme.ESSPParams{Staleness: int64(rapid.IntRange(0, 3).Draw(t, "s"))}}
}

// withoutCopiesBesideDrop enforces what the configuration demands: drop sends workers past iterations, and nobody could
// add the updates of those to a copy.
func withoutCopiesBesideDrop(rules []rule) {
	if !slices.ContainsFunc(rules, func(r rule) bool {
		return slices.ContainsFunc(r.phases(), func(ph scheme.Phase) bool { return ph.Scheme == "drop" })
	}) {
		return
	}
	for i, r := range rules {
		if r.name == "essp" {
			rules[i] = rule{name: "asp"}
		} else if p, ok := r.params.(*scheme.SSPParams); ok {
			p.Cache = false
		}
	}
}

// genCopies makes a cluster in which workers keep copies of every shard, of one kind or the other.
func genCopies(t *rapid.T, budget Budget) *cluster {
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 5}, {Name: "b", Layer: 1, N: 4}},
		shard.Options{Slice: "even", MaxBytes: 8, Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: []string{"a", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for range 2 {
		if rapid.Bool().Draw(t, "published") {
			rules = append(rules, genPublished(t))
		} else {
			rules = append(rules, genCached(t))
		}
	}
	c := newCluster(plan, rapid.IntRange(1, 4).Draw(t, "workers"), rules, budget, 0)
	c.pick = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7)).IntN
	c.overtake = rapid.Bool().Draw(t, "overtake")
	return c
}

// Copies renewed by pulls and by publishing, side by side: reads keep the promises, leads keep their bound, and no
// worker computes more than the iteration that it was let into, though it asks only when its copy is too old.
func TestReadsOfCopiesUnderRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genCopies(t, Budget{Updates: int64(rapid.IntRange(1, 60).Draw(t, "updates"))})
		c.reads = c.readsOfCopies
		lead := c.copyOf(c.plan.Shards[0].Rule)
		bound := lead.Bound
		for _, s := range c.plan.Shards {
			bound = max(bound, c.copyOf(s.Rule).Bound)
		}
		var atStop []int64
		c.trace = func(string, core.Input, []core.Effect) {
			if c.servers[0].Stopping() && atStop == nil {
				for _, w := range c.workers {
					atStop = append(atStop, w.Iter())
				}
			}
		}
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		c.nothingComing(t)
		for i, w := range c.workers {
			if w.Counts.LeadMax > bound {
				t.Fatalf("worker %d had a lead of %d, the bound is %d", i, w.Counts.LeadMax, bound)
			}
			if w.Iter() > atStop[i]+1 {
				t.Fatalf("worker %d was at %d when the budget was used up and computed %d, with s=%d", i, atStop[i], w.Iter(), lead.Bound)
			}
		}
	})
}

// With s = 0 a cached copy is pulled before every iteration, and all workers stop at the same one, also where versions
// are published. I4 of the notes says that a read at c is then the value after all iterations before c and nothing
// else. Where each push is a version, that holds except for "nothing else": a late reader also reads pushes of
// iteration c. See TestReadsWithoutStalenessMayBeAhead.
func TestCopiesWithoutStalenessAreFresh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]rule{
			{name: "ssp", params: &scheme.SSPParams{Release: scheme.ReleaseSoft, Cache: true}},
			{name: "essp", params: &scheme.ESSPParams{}},
		}).Draw(t, "rule")
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 5}, {Name: "b", Layer: 1, N: 4}},
			shard.Options{Slice: "even", MaxBytes: 8, Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(plan, workers, []rule{r}, Budget{Samples: int64(50 * workers)}, 0)
		c.pick = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)).IntN
		c.reads = func(w *workernode.Worker, iter int64) error {
			if w.Counts.LeadMax != 0 {
				return fmt.Errorf("lead %d", w.Counts.LeadMax)
			}
			return c.readsOfCopies(w, iter)
		}
		if err := c.run(100000); err != nil {
			t.Fatal(err)
		}
		for i, n := range c.iters {
			if n != 5 || slices.Max(c.workers[i].Counts.Cached) != 0 {
				t.Fatalf("%s: worker %d computed %d iterations, of 5, and read its cache %v times, of 0", r.name, i, n, c.workers[i].Counts.Cached)
			}
		}
		for i := range plan.Shards {
			st := c.servers[plan.Shards[i].Server].Shard(int32(i)).Stats
			if want := map[string]int64{"ssp": int64(6 * workers), "essp": int64(workers)}[r.name]; st.Pulls != want {
				t.Fatalf("%s: %d pulls, want %d", r.name, st.Pulls, want)
			}
		}
	})
}

// I4 of the notes does not hold where each push is a version, as in Bösen: with s = 0 a worker that reads late reads
// pushes of faster workers of the iteration that it starts. That is so with and without copies.
func TestReadsWithoutStalenessMayBeAhead(t *testing.T) {
	for name, params := range map[string]scheme.Params{
		"ssp":  &scheme.SSPParams{Release: scheme.ReleaseSoft, Cache: true},
		"essp": &scheme.ESSPParams{},
	} {
		ahead := 0
		for seed := range uint64(200) {
			plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
			if err != nil {
				t.Fatal(err)
			}
			c := newCluster(plan, 3, []rule{{name: name, params: params}}, Budget{Samples: 60}, 0)
			c.pick = rand.New(rand.NewPCG(seed, 5)).IntN
			c.reads = func(w *workernode.Worker, iter int64) error {
				for u := range c.workers {
					if strings.Contains(c.arena[[2]int32{w.Me(), 0}]+" ", fmt.Sprintf(" w%d.%d ", u, iter)) {
						ahead++
					}
				}
				return nil
			}
			if err := c.run(100000); err != nil {
				t.Fatal(err)
			}
		}
		if ahead == 0 {
			t.Errorf("%s: no read at c had a push of iteration c", name)
		}
	}
}

// One worker pulls a cached shard every s+1 iterations: its copy has clock c when it arrives and c - s when it is last
// used. When the budget could be used up before the next pull, the worker pulls before each iteration, so it does not
// train past the budget.
func TestACacheSavesPulls(t *testing.T) {
	for _, s := range []int64{0, 1, 3} {
		plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(plan, 1,
			[]rule{{name: "ssp", params: &scheme.SSPParams{Staleness: s, Release: scheme.ReleaseSoft, Cache: true}}},
			Budget{Updates: 5 * (s + 2)}, 0)
		c.reads = c.readsOfCopies
		if err := c.run(10000); err != nil {
			t.Fatal(err)
		}
		iters, st := 5*(s+2), c.servers[0].Shard(0).Stats
		pulls, of, asks := int64(1), int64(0), false // of: the clock of the copy
		for next := int64(1); next <= iters; next++ {
			if asks || of < next-s {
				pulls, of, asks = pulls+1, next, asks || next+s+2 >= iters
			}
		}
		if c.iters[0] != iters || st.Pulls != pulls || c.workers[0].Counts.Cached[0] != iters+1-st.Pulls ||
			st.Pushes != iters || s > 0 && pulls >= iters-s {
			t.Errorf("s=%d: %d iterations, %+v, %v cached; want %d, %d pulls and the rest cached", s, c.iters[0], st,
				c.workers[0].Counts.Cached, iters, pulls)
		}
	}
}

// lonePublished is a worker that has started iteration 0 of one published shard of one piece with bound s.
func lonePublished(t *testing.T, s int64) (*workernode.Worker, *shard.Plan) {
	t.Helper()
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newCluster(plan, 2, []rule{{name: "essp", params: &scheme.ESSPParams{Staleness: s}}}, Budget{}, 0).workers[0]
	w.Step(core.Input{Kind: core.Begin}, nil)
	w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply}}, nil)
	w.Step(core.Input{Kind: core.PieceLanded}, nil)
	return w, plan
}

// A version that lands while the worker computes is adopted when the push was released, and the updates that it lacks
// are added. The worker then waits for no other version. Only the version has told it of v.
func TestAPublishedVersionIsAdoptedBetweenTwoIterations(t *testing.T) {
	w, _ := lonePublished(t, 1)
	iteration := func() string {
		w.Step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 4}}, nil)
		out := coretest.Text(w.Step(core.Input{Kind: core.PieceReady}, nil))
		w.Step(core.Input{Kind: core.PieceSent}, nil)
		return out + "; " + coretest.Text(w.Step(core.Input{Kind: core.TaskDone}, nil))
	}
	if got, want := iteration(), "Send to=0 Push w0 shard0 iter=0 seen=0 samples=4; SendPiece to=0 p0; Keep shard0 "+
		"slot0; AddLocal shard0 += 0.5*0.25*slot-1; Compute iter=1"; got != want {
		t.Errorf("iteration 0:\n%s, want\n%s", got, want)
	}
	// Sent when the server had w0's push 0 and not yet that of iteration 1.
	if got, want := coretest.Text(w.Step(core.Input{Kind: core.Arrived,
		Msg: wire.Header{Kind: wire.Publish, Iter: 1, Version: 2, Clock: 1}}, nil)), "ExpectBeside shard0"; got != want {
		t.Errorf("header: %s, want %s", got, want)
	}
	if got := coretest.Text(w.Step(core.Input{Kind: core.PieceLanded}, nil)); got != "" {
		t.Errorf("landed while it computes: %s, want nothing", got)
	}
	if got, want := iteration(), "Send to=0 Push w0 shard0 iter=1 seen=1 samples=4; SendPiece to=0 p0; Keep shard0 slot1; "+
		"Adopt shard0; AddLocal shard0 += 0.5*0.25*slot1; Send to=0 Taken w0 shard0 version=2; Compute iter=2"; got != want {
		t.Errorf("iteration 1:\n%s, want\n%s", got, want)
	}
	// Now its copy has clock 1, so iteration 3 has to wait for clock 2.
	if got, want := iteration(), "Send to=0 Push w0 shard0 iter=2 seen=3 samples=4; SendPiece to=0 p0; Keep shard0 "+
		"slot0; AddLocal shard0 += 0.5*0.25*slot-1; "; got != want {
		t.Errorf("iteration 2:\n%s, want\n%s", got, want)
	}
	if m := w.Missing(); !slices.Equal(m, []int32{0}) || w.State() != core.Waiting {
		t.Errorf("%v waits for %v, want shard 0", w, m)
	}
	w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Publish, Iter: 2, Version: 5, Clock: 2}}, nil)
	if got, want := coretest.Text(w.Step(core.Input{Kind: core.PieceLanded}, nil)),
		"Adopt shard0; AddLocal shard0 += 0.5*0.25*slot0; Send to=0 Taken w0 shard0 version=5; Compute iter=3"; got != want {
		t.Errorf("at last:\n%s, want\n%s", got, want)
	}
	if w.Counts.LeadMax != 1 {
		t.Errorf("lead %d, want 1", w.Counts.LeadMax)
	}
}

// A server publishes one version to a worker at a time, the newest when the last was taken, and none to a worker that
// has left. It handles the push, and the Left, of a worker that keeps its copy in turn, in whatever order they arrive.
func TestAServerPublishesOneVersionAtATime(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	s := newCluster(plan, 1, []rule{{name: "essp", params: &scheme.ESSPParams{Staleness: 3}}}, Budget{}, 0).servers[0]
	step := func(in core.Input) string {
		out := s.Step(in, nil)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		return coretest.Text(slices.DeleteFunc(out, func(e core.Effect) bool { return e.Kind == core.Fold || e.Kind == core.Commit }))
	}
	head := func(m wire.Header) string { return step(core.Input{Kind: core.Arrived, Msg: m}) }
	push := func(i int64) wire.Header { return wire.Header{Kind: wire.Push, Parts: 1, Samples: 1, Iter: i} }
	for k, c := range []struct{ got, want string }{
		{head(wire.Header{Kind: wire.Pull}), "Reply to=0 buf0 Reply w0 shard0 iter=0 version=0 v=0"},
		{step(core.Input{Kind: core.ReplySent}), ""},
		{head(push(0)), "Stage shard0 w0 slot0"},
		{head(push(1)), ""}, // the pieces of push 0 are still in flight
		{head(push(1)), ""},
		{head(push(2)), ""},
		{step(core.Input{Kind: core.PieceLanded}), "Reply to=0 buf1 Publish w0 shard0 iter=1 version=1 v=1; Stage shard0 w0 slot0"},
		{head(wire.Header{Kind: wire.Left, Iter: 3}), ""},
		{step(core.Input{Kind: core.PieceLanded}), "Send to=0 Ack w0 shard0 iter=1; Stage shard0 w0 slot0"},
		{step(core.Input{Kind: core.ReplySent, Buf: 1}), ""}, // sent, not taken
		{head(wire.Header{Kind: wire.Taken, Version: 1}), "Reply to=0 buf0 Publish w0 shard0 iter=2 version=2 v=2"},
		{step(core.Input{Kind: core.PieceLanded}), "Send to=0 Ended w0 shard0 versions=2"},
		{head(wire.Header{Kind: wire.Taken, Version: 2}), ""},
		{step(core.Input{Kind: core.ReplySent, Buf: 0}), "Done"},
	} {
		if c.got != c.want {
			t.Errorf("step %d: %q, want %q", k, c.got, c.want)
		}
	}
	if st := s.Shard(0).Stats; st.Published != 2 || st.Pushes != 3 || st.Duplicates != 1 || st.Pulls != 1 {
		t.Errorf("%+v", st)
	}
}
