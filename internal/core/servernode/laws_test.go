package servernode

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// The golden of every input and effect: 2 servers, 4 workers, 3 shards, one iteration, then everybody leaves.
func TestOneIterationGolden(t *testing.T) {
	ssp := &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}
	for name, r := range map[string]rule{"bsp": {name: "bsp"}, "ssp": {name: "ssp", params: ssp}, "r2sp": {name: "r2sp"}} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			c := newCluster(coretest.ThreeShards(t), 4, []rule{r, r}, Budget{Samples: 40}, 40)
			c.trace = func(node string, in core.Input, out []core.Effect) {
				fmt.Fprintf(&b, "%s < %v\n", node, in)
				for _, e := range out {
					fmt.Fprintf(&b, "%s     > %v\n", node, e)
				}
			}
			if err := c.run(10000); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "one-iteration-"+name+".txt"), b.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		gl, wl := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range gl {
			if i >= len(wl) || gl[i] != wl[i] {
				t.Fatalf("%s: line %d\ngot  %s\nwant %s\n(go test ./internal/core/servernode -update rewrites it)", file, i+1, gl[i],
					wl[min(i, len(wl)-1)])
			}
		}
		t.Fatalf("%s: got %d lines, want %d", file, len(gl), len(wl))
	}
}

func genCluster(t *rapid.T) (*cluster, []rule) {
	var params []shard.Param
	for l := range rapid.IntRange(1, 4).Draw(t, "layers") {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d.w", l), Layer: l, N: rapid.IntRange(1, 9).Draw(t, "n")})
	}
	globs := [][]string{{"*"}, {"l0.*", "*"}, {"l1.*", "l0.*", "*"}}
	o := shard.Options{
		Slice: rapid.SampledFrom(shard.Slices()).Draw(t, "slice"), MaxBytes: int64(4 * rapid.IntRange(1, 6).Draw(t, "piece")),
		Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: globs[rapid.IntRange(0, 2).Draw(t, "rules")],
	}
	plan, err := shard.Cut(params, o)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule
	rotation := &scheme.R2SPParams{SkipAfter: int64(rapid.IntRange(0, 3).Draw(t, "skip_after")),
		Profile: int64(rapid.IntRange(1, 3).Draw(t, "profile")),
		Delta:   0.25, DeltaRounds: 2, Smoothing: 0.2} // the same for all rules, as the configuration demands
	strict := rapid.IntRange(0, 4).Draw(t, "strict") == 0
	for range o.Rules {
		switch {
		case strict:
			rules = append(rules, genStrictRule(t))
		case rapid.IntRange(0, 2).Draw(t, "r2sp") == 0:
			rules = append(rules, rule{name: "r2sp", params: rotation})
		default:
			rules = append(rules, genPhases(t))
		}
	}
	withoutCopiesBesideDrop(rules)
	workers := rapid.IntRange(1, 5).Draw(t, "workers")
	budget := Budget{Samples: int64(rapid.IntRange(1, 200).Draw(t, "samples")), PerPush: 10}
	order := rapid.SampledFrom(send.All.Names()).Draw(t, "order")
	options := send.Options{Spec: send.Spec{Window: int64(rapid.IntRange(0, 40).Draw(t, "window")),
		Credit: int64(rapid.IntRange(1, 40).Draw(t, "credit"))}}
	return newOrderedCluster(plan, workers, rules, budget, 25, order, options), rules
}

// genStrictRule draws a rule of a run in which no worker ever waits for slower ones, as the strict form of vap
// requires.
func genStrictRule(t *rapid.T) rule {
	switch rapid.IntRange(0, 6).Draw(t, "scheme") {
	case 0:
		return rule{name: "asp"}
	case 6:
		return genUnhindered(t)
	case 1:
		return rule{name: "softsync",
			params: &scheme.SoftsyncParams{Q: int64(rapid.IntRange(1, 5).Draw(t, "q")), Staleness: -1, Release: scheme.ReleaseSoft}}
	default:
		return genVAP(t, true)
	}
}

// genUnhindered draws a scheme that drops stale pushes, or keeps a table of them, and answers every pull at once.
func genUnhindered(t *rapid.T) rule {
	switch rapid.IntRange(0, 2).Draw(t, "unhindered") {
	case 0:
		return rule{name: "ringmaster", params: &scheme.RingmasterParams{DelayThreshold: int64(rapid.IntRange(0, 5).Draw(t, "delay_threshold"))}}
	case 1:
		return rule{name: "rennala", params: &scheme.RennalaParams{Pushes: int64(rapid.IntRange(0, 5).Draw(t, "pushes"))}}
	}
	return rule{name: "ringleader", params: &scheme.RingleaderParams{Staleness: -1, Release: scheme.ReleaseSoft}}
}

func genVAP(t *rapid.T, strict bool) rule {
	p := &scheme.VAPParams{V0: rapid.SampledFrom([]float64{0, 0, 0.5, 2}).Draw(t, "v0"), Strict: strict, Staleness: -1,
		Release: rapid.SampledFrom([]scheme.Release{scheme.ReleaseSoft, scheme.ReleaseLazy}).Draw(t, "value release")}
	if !strict {
		p.Staleness = int64(rapid.IntRange(-1, 2).Draw(t, "s"))
	}
	return rule{name: "vap", params: p}
}

func genRule(t *rapid.T) rule {
	release := rapid.SampledFrom([]scheme.Release{scheme.ReleaseSoft, scheme.ReleaseLazy, scheme.ReleaseBlock}).Draw(t, "release")
	fold := rapid.SampledFrom([]scheme.FoldOrder{scheme.FoldRank, scheme.FoldArrival}).Draw(t, "fold")
	switch rapid.IntRange(0, 12).Draw(t, "scheme") {
	case 0:
		return rule{name: "bsp", common: scheme.Common{Fold: fold}, params: &scheme.BSPParams{Strict: true, Release: release}}
	case 1:
		return rule{name: "asp"}
	case 2:
		low := int64(rapid.IntRange(0, 2).Draw(t, "s_l"))
		return rule{name: "dssp", common: scheme.Common{Fold: fold}, params: &scheme.DSSPParams{
			SL: low, SU: low + int64(rapid.IntRange(0, 3).Draw(t, "range")), Mode: scheme.DSSPBounded, Release: release}}
	case 3:
		return rule{name: "pssp", params: &scheme.PSSPParams{Staleness: int64(rapid.IntRange(0, 2).Draw(t, "s")), Mode: scheme.PSSPDynamic,
			Alpha: 0.7, Centre: scheme.PSSPCentreS, CutOff: true, PauseOnlyFastest: rapid.Bool().Draw(t, "fastest"),
			Significance: rapid.Bool().Draw(t, "significance"), Recheck: rapid.Bool().Draw(t, "recheck"),
			Coin: rapid.SampledFrom([]scheme.PSSPCoin{scheme.PSSPCoinServer, scheme.PSSPCoinShard}).Draw(t, "coin"), Release: release}}
	case 4:
		low := int64(rapid.IntRange(0, 2).Draw(t, "s_min"))
		return rule{name: "dsps", common: scheme.Common{Fold: fold}, params: &scheme.DSPSParams{
			SMin: low, SMax: low + int64(rapid.IntRange(0, 3).Draw(t, "range")), Window: 2, Smoothing: 0.5, Release: release}}
	case 5:
		return rule{name: "drop", common: scheme.Common{Fold: fold}, params: &scheme.DropParams{
			Required:     int64(rapid.IntRange(0, 4).Draw(t, "required")),
			Contributors: rapid.SampledFrom([]string{"shard", "step"}).Draw(t, "contributors")}}
	case 6:
		return rule{name: "softsync", params: &scheme.SoftsyncParams{
			Q: int64(rapid.IntRange(1, 5).Draw(t, "q")), Staleness: int64(rapid.IntRange(-1, 2).Draw(t, "s")), Release: release}}
	case 7:
		return genVAP(t, false)
	case 8:
		return genCached(t)
	case 9:
		return genPublished(t)
	case 10:
		return genUnhindered(t)
	case 11:
		return rule{name: "quorum", params: &scheme.QuorumParams{Required: int64(rapid.IntRange(0, 5).Draw(t, "required")), MAD: 3,
			GraceMax: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "grace_max")}}
	default:
		return rule{name: "ssp", common: scheme.Common{Fold: fold},
			params: &scheme.SSPParams{Staleness: int64(rapid.IntRange(0, 4).Draw(t, "s")), Release: release}}
	}
}

// The laws of the design, on random plans, random mixes of schemes over shards, and random orders of events, with some
// push headers delivered twice: nobody hangs, every push is folded exactly once (or dropped, by drop), every pull is
// answered exactly once, no version changes in flight, and leads keep their bound.
func TestLawsUnderRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genCluster(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.deliverTwice = func() bool { return rng.IntN(8) == 0 }
		c.reads = c.readsOfCopies
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		for i := range c.plan.Shards {
			checkShard(t, c, &c.plan.Shards[i], rules)
		}
		checkContributors(t, c, rules, false)
		for k, n := range c.replied {
			if n != 1 {
				t.Fatalf("%s was answered %d times", k, n)
			}
		}
		c.nothingComing(t)
	})
}

func checkShard(t *rapid.T, c *cluster, sh *shard.Shard, rules []rule) {
	pushes, folded := map[string]int64{}, map[string]bool{} // pushes: by name, their iteration
	for w, computed := range c.computed {
		for _, i := range computed {
			pushes[fmt.Sprintf("w%d.%d", w, i)] = i
		}
	}
	for _, version := range c.versions[sh.ID] {
		for _, push := range strings.Fields(version) {
			if _, pushed := pushes[push]; !pushed || folded[push] {
				t.Fatalf("shard %d folded %s twice, or nobody pushed it: %v of %v", sh.ID, push, c.versions[sh.ID], pushes)
			}
			folded[push] = true
		}
	}
	st := c.servers[sh.Server].Shard(sh.ID)
	n := int64(len(folded))
	if st.Stats.Pushes != int64(len(pushes)) || st.Stats.Dropped != int64(len(pushes))-n || st.Accepted != n || st.Samples != 10*n {
		t.Fatalf("shard %d counts %+v for %d pushes of which %d were folded", sh.ID, st, len(pushes), n)
	}
	if want := marksOf(c.versions[sh.ID], 25); !slices.Equal(c.snaps[sh.ID], want) {
		t.Fatalf("shard %d kept snapshots %v, want %v", sh.ID, c.snaps[sh.ID], want)
	}
	checkPhases(t, c, sh, rules[sh.Rule].phases(), pushes, folded)
}

// marksOf are the snapshots of a shard by the rule: a commit of 10 samples a push that passes one or more multiples
// of every is a snapshot, of the last of them.
func marksOf(commits []string, every int64) []int64 {
	var list []int64
	samples := int64(0)
	for _, c := range commits {
		before := samples
		samples += 10 * int64(len(strings.Fields(c)))
		if samples/every > before/every {
			list = append(list, samples/every-1)
		}
	}
	return list
}

// A stop from outside (time, target, signal) ends all workers of a BSP run at the same iteration, whenever it comes.
func TestAStopFromOutsideEndsBSPInStep(t *testing.T) {
	for at := 1; at < 400; at++ {
		c := newCluster(coretest.ThreeShards(t), 3, []rule{{name: "bsp"}, {name: "bsp"}}, Budget{Updates: 4}, 0)
		c.pick = rand.New(rand.NewPCG(uint64(at), 4)).IntN
		steps := 0
		c.trace = func(string, core.Input, []core.Effect) {
			if steps++; steps == at {
				c.add(pending{line: "stop", node: c.servers[0], name: "s0", in: core.Input{Kind: core.StopNow}})
			}
		}
		if err := c.run(100000); err != nil {
			t.Fatalf("stop at step %d: %v", at, err)
		}
		if c.iters[0] != c.iters[1] || c.iters[0] != c.iters[2] || c.iters[0] > 4 {
			t.Fatalf("stop at step %d: the workers computed %v iterations", at, c.iters)
		}
	}
}

// When a worker starts an iteration it knows the largest v of all its shards' replies, and its pushes report that v.
// Its lead is measured against the shard with the smallest v: any other shard would make the lead look smaller than it
// was.
func TestAPushReportsTheLargestClockOfTheReplies(t *testing.T) {
	plan := coretest.ThreeShards(t)
	w := newCluster(plan, 1, []rule{{name: "asp"}, {name: "asp"}}, Budget{}, 0).workers[0]
	w.Step(core.Input{Kind: core.Begin}, nil)
	for s, v := range []int64{3, 5, 4} {
		for _, p := range plan.Shards[s].Pieces {
			w.Step(core.Input{Kind: core.PieceLanded, Piece: p.ID}, nil)
		}
		w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: int32(s), Iter: 7, Clock: v}}, nil)
	}
	if w.Iter() != 7 || w.Counts.LeadMax != 4 {
		t.Fatalf("iteration %d at a lead of %d, want 7 at 4", w.Iter(), w.Counts.LeadMax)
	}
	w.Step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}}, nil)
	out := w.Step(core.Input{Kind: core.PieceReady, Piece: 0}, nil)
	if out[0].Msg.Kind != wire.Push || out[0].Msg.Clock != 5 {
		t.Fatalf("the push says %+v, want clock 5", out[0].Msg)
	}
}

// BSP is exact: every worker reads, at iteration c, exactly the pushes of iterations before c, folded in rank
// order, whatever the order in which messages arrive (FluentPS notes 1.8 P4, 1.9 BSP race).
func TestBSPReadsAreTheSameForAllOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkReadsLikeBSP(t, rule{name: "bsp"})
	})
}

// This is why the configuration refuses vap with strict: true beside a scheme under which workers wait for slower ones.
// A fast worker that vap's shard has answered waits at the other shard for a slow worker. vap holds the slow worker's
// push back until the fast one has pushed. With strict: false nobody hangs in the same orders.
func TestStrictVAPBesideLazySSPStalls(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}, {Name: "b", N: 1}},
		shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"a", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	lazy := rule{name: "ssp", params: &scheme.SSPParams{Staleness: 3, Release: scheme.ReleaseLazy}}
	for _, strict := range []bool{true, false} {
		stalls := 0
		for seed := range uint64(300) {
			vap := rule{name: "vap", params: &scheme.VAPParams{Strict: strict, Staleness: -1, Release: scheme.ReleaseSoft}}
			c := newCluster(plan, 3, []rule{lazy, vap}, Budget{Samples: 300}, 0)
			c.pick = rand.New(rand.NewPCG(seed, 5)).IntN
			if err := c.run(100000); err != nil && strings.Contains(err.Error(), "nothing left to happen") {
				stalls++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if (stalls > 0) != strict {
			t.Errorf("strict: %v: %d of 300 orders stall", strict, stalls)
		}
	}
}

// A worker that dies in the middle of its push never makes the others hang, under any scheme.
func TestAWorkerThatDiesLeavesNobodyHanging(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := genCluster(t)
		c.runWithADeath(t)
	})
}

// runWithADeath runs to the end; one worker dies before that.
func (c *cluster) runWithADeath(t *rapid.T) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	c.pick = rng.IntN
	c.overtake = rapid.Bool().Draw(t, "overtake")
	dead := c.workers[rng.IntN(len(c.workers))]
	name := fmt.Sprintf("w%d", dead.Me())
	at := rng.IntN(300)
	c.reads = c.readsOfCopies
	steps := 0
	c.trace = func(string, core.Input, []core.Effect) {
		if steps++; steps != at || dead.State() == core.Finished {
			return
		}
		c.kill(dead, name)
	}
	if err := c.run(200000); err != nil {
		t.Fatal(err)
	}
}

// kill makes the worker vanish: its messages in flight are lost, and the servers are told Left.
func (c *cluster) kill(w *workernode.Worker, name string) {
	c.done[w] = true
	c.pending = slices.DeleteFunc(c.pending, func(p pending) bool {
		return strings.HasPrefix(p.line, "data "+name+" ") || strings.HasPrefix(p.line, "ctl "+name+"s")
	})
	for i := range c.pending {
		if c.pending[i].node == core.Node(w) { // the worker receives nothing any more
			c.pending[i].node, c.pending[i].when = deadNode{}, nil
		}
	}
	for line := range c.posted {
		if strings.HasPrefix(line, "data "+name+" ") {
			delete(c.posted, line)
		}
	}
	for line := range c.inbox {
		if strings.HasPrefix(line, "data "+name+" ") {
			delete(c.inbox, line)
		}
	}
	for m, s := range c.servers {
		c.add(pending{line: "ctl " + name + fmt.Sprintf("s%d", m), node: s, name: fmt.Sprintf("s%d", m),
			in: core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Left, Worker: w.Me(), Clock: c.lives[w.Me()]}}})
	}
	c.dead = append(c.dead, w)
	for _, other := range c.workers {
		if c.work != nil && !slices.Contains(c.dead, other) {
			c.add(pending{line: fmt.Sprintf("peer %sw%d", name, other.Me()), node: other, name: fmt.Sprintf("w%d", other.Me()),
				in: core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Peer, Worker: w.Me(), Flags: wire.Gone}}})
		}
	}
}

type deadNode struct{}

func (deadNode) Step(_ core.Input, out []core.Effect) []core.Effect { return out }

func (deadNode) Check() error { return nil }

func (deadNode) String() string { return "deaf" }

func TestABadInputPanics(t *testing.T) {
	plan := coretest.ThreeShards(t)
	for name, in := range map[string]core.Input{
		"task done while waiting":       {Kind: core.TaskDone},
		"a send that was never made":    {Kind: core.PieceSent},
		"a reply that was not asked":    {Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Iter: 1}},
		"a push is not for a worker":    {Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push}},
		"a piece without an open reply": {Kind: core.PieceLanded},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(plan, 1, []rule{{name: "bsp"}, {name: "bsp"}}, Budget{Updates: 1}, 0)
			defer func() {
				if recover() == nil {
					t.Fatal("the worker accepted the input")
				}
			}()
			c.workers[0].Step(in, nil)
		})
	}
}

// spy records the events that a scheme is told, and otherwise behaves like the scheme that it wraps.
type spy struct {
	scheme.Scheme
	events []scheme.Event
}

func (s *spy) Step(ev scheme.Event, out []scheme.Decision) []scheme.Decision {
	s.events = append(s.events, ev)
	return s.Scheme.Step(ev, out)
}

// The scheme is told of a push with the norms that came with its last piece.
func TestEventsCarryTheNormsOfTheirPush(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	ss := mustScheme(rule{name: "vap"}, []int32{0}, 0, 1)
	s := &spy{Scheme: ss.Scheme}
	ss.Scheme = s
	node := New(Config{Plan: plan, Workers: 1, Schemes: map[int32]inturn.ShardScheme{0: ss}})
	out := node.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Parts: 1, Samples: 7}}, nil)
	if len(out) != 1 || out[0].Kind != core.Stage || out[0].Samples != 7 {
		t.Errorf("effects %v: the driver is not told that the push sums 7 samples", out)
	}
	node.Step(core.Input{Kind: core.PieceLanded, Piece: 0}, nil)
	node.Step(core.Input{Kind: core.PieceLanded, Piece: 1, Norm2: 5, NormInf: 4, NormW: 3}, nil)
	ev := s.events[len(s.events)-1]
	if ev.Kind != scheme.Pushed || ev.Norm2 != 5 || ev.NormInf != 4 || ev.NormW != 3 {
		t.Errorf("told %v", ev)
	}
	for name, want := range map[string]bool{"vap": true, "pssp": false, "bsp": false} {
		e, _ := scheme.All.Lookup(name)
		ss, err := inturn.NewShardSchemes([]scheme.Phase{{Scheme: name, Params: e.Params()}},
			scheme.Env{Workers: 2, Shards: []int32{0}, Servers: 1, Seed: 1}, 0)
		if err != nil || ss.Norms != want {
			t.Errorf("%s: needs norms: %v, %v; want %v", name, ss.Norms, err, want)
		}
	}
}

func TestEventsCarryTheTimeOfTheirInput(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	ss := mustScheme(rule{name: "asp"}, []int32{0}, 0, 1)
	s := &spy{Scheme: ss.Scheme}
	ss.Scheme = s
	node := New(Config{Plan: plan, Workers: 1, Schemes: map[int32]inturn.ShardScheme{0: ss}})
	node.Step(core.Input{Kind: core.Arrived, At: 3, Msg: wire.Header{Kind: wire.Pull}}, nil)
	node.Step(core.Input{Kind: core.Arrived, At: 5, Msg: wire.Header{Kind: wire.Push, Parts: 1, Samples: 1}}, nil)
	node.Step(core.Input{Kind: core.PieceLanded, At: 8}, nil)
	var got []string
	for _, ev := range s.events {
		got = append(got, fmt.Sprint(ev.Kind, " ", int64(ev.At)))
	}
	if want := "wanted 3; offered 5; pushed 8"; strings.Join(got, "; ") != want {
		t.Errorf("the scheme was told %s, want %s", strings.Join(got, "; "), want)
	}
}
