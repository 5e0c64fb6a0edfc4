package servernode

import (
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// pairs is a code of two pairs of workers: the first sum of each pair counts, and each worker pushes 3 samples alone before its sum.
type pairs struct{}

func (pairs) Decodes(arrived []int32) bool {
	var has [2]bool
	for _, w := range arrived {
		has[w/2] = true
	}
	return has[0] && has[1]
}

func (pairs) Weights(arrived []int32) (weights []float64) {
	var has [2]bool
	for _, w := range arrived {
		if weights = append(weights, 0); !has[w/2] {
			has[w/2], weights[len(weights)-1] = true, 1
		}
	}
	return weights
}

func (pairs) Samples() int64 { return 16 }

func (pairs) Deadline() time.Duration { return 0 }

func (pairs) Private() bool { return true }

// newApartServer makes a server of four workers whose scheme hears of both pushes of an iteration.
func newApartServer(t *testing.T) *aheadServer {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	coded, _ := scheme.All.Lookup("coded")
	ss, err := inturn.NewShardSchemes([]scheme.Phase{{Scheme: "coded", Common: scheme.Common{Fold: coded.Fold}, Params: coded.Params()}},
		scheme.Env{Workers: 4, Shards: []int32{0}, Servers: 1, Code: pairs{}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Plan: plan, Workers: 4, Ahead: &core.Ahead{Apart: true}, Schemes: map[int32]inturn.ShardScheme{0: ss}})
	return &aheadServer{t: t, s: s, sh: s.shards[0]}
}

// pushPart pushes the private part of an iteration, 3 samples, or the sum, with 1 sample of its worker's own.
func (a *aheadServer) pushPart(w int32, iter int64, part int32) {
	a.offerPart(w, iter, part)
	a.step(core.Input{Kind: core.PieceLanded, Worker: w, Slot: a.sh.peers[w].landing.slot})
}

func (a *aheadServer) offerPart(w int32, iter int64, part int32) {
	a.step(core.Input{Kind: core.Arrived,
		Msg: wire.Header{Kind: wire.Push, Worker: w, Owner: w, Part: part, Parts: 2, Iter: iter, Samples: 3 - 2*int64(part)}})
}

// A scheme that counts on private parts hears of each as it lands. The part of a slow worker counts, though its sum
// comes too late; one that is lost is waited for no more; and a header that arrives twice counts once.
func TestTheSchemeHearsOfEachPart(t *testing.T) {
	a := newApartServer(t)
	for w := range int32(4) {
		a.tell(wire.Pull, w, 0, 0)
		a.tell(wire.Pull, w, 1, 0)
	}
	a.expect("w0@0", "w1@0", "w2@0", "w3@0")
	for w := range int32(3) {
		a.pushPart(w, 0, 0)
	}
	a.offerPart(2, 0, 0) // again
	a.pushPart(0, 0, 1)
	a.pushPart(2, 0, 1)
	a.expect() // worker 3's private part is missing
	if n := a.sh.stats.Duplicates; n != 1 || a.sh.low != 0 || a.sh.slots.staged != 5 {
		t.Errorf("%d headers arrived twice, v is %d, %d pushes staged; want 1, 0 and 5", n, a.sh.low, a.sh.slots.staged)
	}
	a.pushPart(3, 0, 0)
	a.expect("w3@1", "w0@1", "w1@1", "w2@1")
	if a.sh.versions.version != 1 || a.sh.versions.samples != 16 || a.sh.samplesTaken != 16 ||
		a.sh.versions.accepted != 4 || a.sh.slots.staged != 0 {
		t.Errorf("version %d of %d samples, %d taken, %d pushes, %d staged; want 1, 16, 16, 4 and 0", a.sh.versions.version,
			a.sh.versions.samples, a.sh.samplesTaken, a.sh.versions.accepted, a.sh.slots.staged)
	}
	a.pushPart(3, 0, 1) // its sum of iteration 0
	if n := a.sh.stats.DroppedFor[scheme.Late]; n != 1 {
		t.Errorf("%d pushes late, want 1", n)
	}
	for w := range int32(4) {
		a.tell(wire.Pull, w, 2, 0)
	}
	a.pushPart(0, 1, 0)
	a.pushPart(0, 1, 1)
	a.pushPart(1, 1, 0)
	a.pushPart(3, 1, 0)
	a.pushPart(3, 1, 1)
	a.offerPart(2, 1, 0) // worker 2 is lost meanwhile
	a.expect()
	a.tell(wire.Left, 2, 0, 0)
	a.expect("w0@2", "w1@2", "w3@2")
	// worker 1 has not pushed its sum of iteration 0
	if a.sh.versions.version != 2 || a.sh.versions.samples != 32 || a.sh.stats.Pushes != 12 || a.sh.stats.Skipped != 1 {
		t.Errorf("version %d of %d samples after %d pushes and %d skipped iterations, want 2, 32, 12 and 1",
			a.sh.versions.version, a.sh.versions.samples, a.sh.stats.Pushes, a.sh.stats.Skipped)
	}
	if err := a.s.Check(); err != nil {
		t.Error(err)
	}
}
