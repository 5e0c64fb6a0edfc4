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
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// nearDriver is the memory that workers and servers share. A version is read when the worker says so. A push is read
// when it is folded, or as late as the next commit.
type nearDriver struct {
	near          func(shard, worker int32) bool
	unread        map[[2]int32]version // worker, shard: versions announced and not read
	queued        map[int32][]*slotOf  // shard: folds that may still read a worker's memory
	reads         int
	owns          int
	foldedInPlace int // pushes folded in their worker's memory
}

type version struct {
	buf     int32
	content string
}

// shareMemory lets some pairs of a cluster share memory for some shards.
func (c *cluster) shareMemory(near func(shard, worker int32) bool) *nearDriver {
	c.near = &nearDriver{near: near, unread: map[[2]int32]version{}, queued: map[int32][]*slotOf{}}
	for _, s := range c.servers {
		s.makeNear(near)
	}
	for w := range c.workers {
		c.workers[w].ShareMemory(func(s int32) bool { return near(s, int32(w)) })
	}
	return c.near
}

// noteReply does the deferred folds of the worker, as a driver that defers folds must.
func (d *nearDriver) noteReply(e core.Effect, content string) {
	d.queued[e.Shard] = slices.DeleteFunc(d.queued[e.Shard], func(s *slotOf) bool { return s.worker == e.To })
	d.unread[[2]int32{e.To, e.Shard}] = version{e.Src, content}
}

// read happens at once, from the buffer as it is.
func (d *nearDriver) read(c *cluster, w *workernode.Worker, e core.Effect) error {
	v := d.unread[[2]int32{w.Me(), e.Shard}]
	if got := c.bufs[[2]int32{e.Shard, e.Src}]; v.buf != e.Src || got != v.content {
		return fmt.Errorf("reads buffer %d with %q, was told of buffer %d with %q", e.Src, got, v.buf, v.content)
	}
	delete(d.unread, [2]int32{w.Me(), e.Shard})
	d.reads++
	for _, p := range c.plan.Shards[e.Shard].Pieces {
		c.write(w, p.ID, v.content)
		if c.early != nil && c.isReadInPlace(w, e.Shard) {
			c.early.mem[w].grads[p.ID].inFlight = false
		}
	}
	return nil
}

// checkInPlace checks that a push is still in its worker's memory.
func (d *nearDriver) checkInPlace(c *cluster, id int32, slot *slotOf) error {
	w := c.workers[slot.worker]
	if slices.Contains(c.dead, w) {
		return nil
	}
	for _, p := range c.plan.Shards[id].Pieces {
		if got := c.gradientOf(w, p.ID); got != slot.iter {
			return fmt.Errorf("shard %d: the gradient of iteration %d is in place of that of %d", id, got, slot.iter)
		}
	}
	return nil
}

func (d *nearDriver) folded(c *cluster, s *Server, e core.Effect, slot *slotOf) error {
	if d == nil || slot == nil || slot.copiedOut || !s.shards[e.Shard].pushIsReadInPlace(slot.worker) {
		return nil
	}
	d.queued[e.Shard] = append(d.queued[e.Shard], slot)
	d.foldedInPlace++
	return d.checkInPlace(c, e.Shard, slot)
}

func (d *nearDriver) committed(c *cluster, e core.Effect) error {
	if d == nil {
		return nil
	}
	for _, slot := range d.queued[e.Shard] {
		if err := d.checkInPlace(c, e.Shard, slot); err != nil {
			return err
		}
	}
	d.queued[e.Shard] = nil
	for k, v := range d.unread {
		w := c.workers[k[0]]
		if k[1] == e.Shard && v.buf == e.Dst && !slices.Contains(c.dead, w) && w.State() != core.Finished {
			return fmt.Errorf("wrote into the version that w%d reads", k[0])
		}
	}
	return nil
}

func (d *nearDriver) own(c *cluster, s *Server, e core.Effect) error {
	slot := c.slots[[3]int32{s.me, e.Shard, e.Slot}]
	if slot.copiedOut || slot.pieces > 0 || slot.worker != e.To {
		return fmt.Errorf("copies a push of w%d with %d pieces missing, copied: %v", slot.worker, slot.pieces, slot.copiedOut)
	}
	slot.copiedOut = true
	d.owns++
	return d.checkInPlace(c, e.Shard, slot)
}

// drawNear draws which pairs share memory. Shards whose scheme schedules the link never do.
func drawNear(t *rapid.T, c *cluster) *nearDriver {
	some := rapid.Uint64().Draw(t, "near")
	return c.shareMemory(func(s, w int32) bool {
		return !inturn.Scheduled(c.schemeOf(int(c.plan.Shards[s].Rule))) && some>>((c.plan.Shards[s].Server*8+w)%64)&1 == 1
	})
}

// The laws where some pairs share memory, although nothing is sent in return for a read or a fold: nobody hangs, no
// version is written while somebody may read it, and no gradient is overwritten before it was folded.
func TestLawsWhereMemoryIsShared(t *testing.T) {
	var all nearDriver
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genCluster(t)
		if rapid.Bool().Draw(t, "early") {
			c.startEarly(rules, c.policy)
		}
		d := drawNear(t, c)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 13))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.deliverTwice = func() bool { return rng.IntN(8) == 0 }
		if c.early == nil {
			c.reads = c.readsOfCopies
		}
		if err := c.run(400000); err != nil {
			t.Fatal(err)
		}
		for i := range c.plan.Shards {
			checkShard(t, c, &c.plan.Shards[i], rules)
		}
		checkContributors(t, c, rules, false)
		c.nothingComing(t)
		all.reads, all.owns, all.foldedInPlace = all.reads+d.reads, all.owns+d.owns, all.foldedInPlace+d.foldedInPlace
	})
	if all.reads < 100 || all.foldedInPlace < 100 {
		t.Errorf("%d versions read in place, %d pushes folded in place, %d copied", all.reads, all.foldedInPlace, all.owns)
	}
}

// Published versions are read when they are adopted, which may be long after their worker has pushed again.
func TestPublishedVersionsAreReadWhenTheyAreAdopted(t *testing.T) {
	reads := 0
	rapid.Check(t, func(t *rapid.T) {
		c := genCopies(t, Budget{Updates: int64(rapid.IntRange(1, 60).Draw(t, "updates"))})
		d := drawNear(t, c)
		c.reads = c.readsOfCopies
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		c.nothingComing(t)
		reads += d.reads
	})
	if reads < 100 {
		t.Errorf("%d versions read in place", reads)
	}
}

// A worker that shares memory and dies in the middle of everything leaves nobody hanging either.
func TestANearWorkerThatDiesLeavesNobodyHanging(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := genCluster(t)
		drawNear(t, c)
		c.runWithADeath(t)
	})
}

// Under bsp a push stays in its worker's memory until the round is over. Under ssp, with folds in rank order, it is
// copied when the worker is answered before that.
func TestAPushIsCopiedOnlyWhenItsWorkerGoesOn(t *testing.T) {
	for name, params := range map[string]scheme.Params{"bsp": nil, "asp": nil,
		"ssp": &scheme.SSPParams{Staleness: 2, Release: scheme.ReleaseSoft}} {
		plan, err := shard.Cut([]shard.Param{{Name: "a", N: 3}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		r := rule{name: name, params: params}
		if name == "ssp" {
			r.common.Fold = scheme.FoldRank
		}
		c := newCluster(plan, 3, []rule{r}, Budget{Updates: 20}, 0)
		c.pick = rand.New(rand.NewPCG(3, 4)).IntN
		d := c.shareMemory(func(int32, int32) bool { return true })
		if err := c.run(100000); err != nil {
			t.Fatal(err)
		}
		if (d.owns > 0) != (name == "ssp") || d.foldedInPlace == 0 {
			t.Errorf("%s: %d pushes folded in place, %d copied", name, d.foldedInPlace, d.owns)
		}
	}
}

// The buffer of a reply is in use until the worker's next push. A duplicate of the last push, or an older one, does not
// free it.
func TestOnlyTheNextPushSaysThatAVersionWasRead(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Plan: plan, Workers: 1, Schemes: map[int32]inturn.ShardScheme{0: mustScheme(rule{name: "asp"}, []int32{0}, 0, 1)},
		Near: func(int32, int32) bool { return true }})
	var said []string
	tell := func(in core.Input) {
		for _, e := range s.Step(in, nil) {
			said = append(said, e.Kind.String())
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	push := func(iter int64) {
		tell(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Parts: 1, Iter: iter, Samples: 1}})
	}
	tell(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull}})
	for iter := range int64(3) {
		sent := s.shards[0].peers[0].replyBuf
		if iter > 0 {
			push(iter - 1) // again
		}
		if s.shards[0].peers[0].replyBuf != sent || sent < 0 {
			t.Fatalf("iteration %d: buffer %d was given up for %d", iter, sent, s.shards[0].peers[0].replyBuf)
		}
		push(iter)
		if got := s.shards[0].peers[0].replyBuf; got >= 0 {
			t.Fatalf("iteration %d: the next push came, and buffer %d is in use", iter, got)
		}
		tell(core.Input{Kind: core.PieceLanded, Worker: 0})
		tell(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Iter: iter + 1}})
	}
	tell(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Left, Iter: 3}})
	if got, want := strings.Join(said, " "),
		"Reply Stage Fold Commit Reply Send Stage Fold Commit Reply Send Stage Fold Commit Reply Done"; got != want {
		t.Errorf("effects %s, want %s", got, want)
	}
}
