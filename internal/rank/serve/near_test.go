package serve_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
)

// straggler makes worker 3 sleep 3 ms in each iteration; the others need a fraction of one.
const straggler = "faults=[{worker: 3, slow: {sleep: 3ms}}]"

// trainShared trains with as much shared memory as the hosts allow: even the shortest shard goes through it. hosts has a letter for each
// rank.
func trainShared(t *testing.T, hosts string, set ...string) *sidestest.Result {
	t.Helper()
	return sidestest.Train(t, load(t, set...), len(hosts), sidestest.Options{Hosts: hosts, Thresholds: layout.Thresholds{Shared: 1}})
}

// driverDiffers says whether a list of rules makes the sides do something that others do not: grant, publish, keep copies, drop, change the
// scheme. Schemes decide on one goroutine, so under the race detector only these are worth their time.
func driverDiffers(sync string) bool {
	for _, word := range []string{"scheme: asp", "r2sp", "essp", "cache: true", "drop", "schemes:"} {
		if strings.Contains(sync, word) {
			return true
		}
	}
	return false
}

// BSP is exact: it has the same bits through shared memory, through messages, and if some pairs use the one and some the
// other.
func TestBSPHasTheSameBitsThroughSharedMemory(t *testing.T) {
	model := []string{"model={name: mlp, layers: [24, 16]}", "shards={slice: layer, max_bytes: 256B}"}
	want := mustTrain(t, load(t, append(model, "cluster.shared_memory=off")...), 6)
	if want.Shared != 0 {
		t.Errorf("%d bytes were shared with cluster.shared_memory=off", want.Shared)
	}
	for _, c := range []struct {
		name  string
		hosts string
		set   []string
		all   bool // only headers are sent
	}{
		{"one host", "aaaaaa", nil, true},
		{"two hosts", "abaabb", nil, false},
		{"servers alone", "aabbbb", nil, false},
		{"shards by size", "aaaaaa", []string{"shards={slice: even, max_bytes: 1KiB}"}, true},
		{"priority", "aaaaaa", []string{"send={order: priority, window: 256B}"}, true},
		{"credit, two hosts", "abaabb",
			[]string{"send={order: credit, credit: 100B, tune: {points: 2, steps: 2, min: 50B, max: 500B}}"}, false},
		{"colocated", "aaaa", []string{"cluster.placement=colocate"}, true},
		{"colocated, two hosts", "abab", []string{"cluster.placement=colocate"}, false},
		{"folds at arrival would differ", "aaaaaa", []string{"device.threads=2"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := trainShared(t, c.hosts, append(append([]string{}, model...), c.set...)...)
			if got.SHA256() != want.SHA256() {
				t.Errorf("sha256 %s, want %s", got.SHA256(), want.SHA256())
			}
			var bytes int64
			for _, sh := range got.Shards() {
				bytes += got.Plan.Shards[sh.State.ID].Bytes() * (sh.State.Stats.Pushes + sh.State.Stats.Pulls)
			}
			if (got.Shared == bytes) != c.all || got.Shared > bytes {
				t.Errorf("%d bytes were shared, of %d", got.Shared, bytes)
			}
			if c.all && got.Sent >= want.Sent/2 {
				t.Errorf("%d bytes sent; without shared memory %d", got.Sent, want.Sent)
			}
		})
	}
}

// Every scheme runs to its end with some pairs in shared memory and some not, keeps its bound, and loses no push.
func TestSchemesThroughSharedMemory(t *testing.T) {
	for _, c := range []struct {
		sync string
		max  int64
	}{
		{"{match: '*', scheme: bsp, fold: arrival, strict: false}", 0},
		{"{match: '*', scheme: asp}", 1 << 40},
		{"{match: '*', scheme: ssp, staleness: 2, fold: rank}", 2},
		{"{match: '*', scheme: ssp, staleness: 3, release: lazy}", 3},
		{"{match: '*', scheme: ssp, staleness: 3, push: delta, cache: true}", 3},
		{"{match: '*', scheme: essp, staleness: 2}", 2},
		{"{match: '*', scheme: drop, required: 3}", 0},
		{"{match: '*', scheme: softsync, q: 3, staleness: 2}", 2},
		{"{match: '*', scheme: rennala, pushes: 5}", 1 << 40},
		{"{match: '*', scheme: ringleader}", 1 << 40},
		{"{match: '*', scheme: quorum}", 1 << 40},
		{"{match: '*', scheme: r2sp, skip_after: 0}", 1},
		{"{match: '*.bias', scheme: r2sp, skip_after: 0}, {match: '*', scheme: essp, staleness: 1}", 1},
		{"{match: '*', scheme: pssp, mode: dynamic, significance: true, hard_cap: 4}", 4},
		{"{match: '*', schemes: [{scheme: bsp, until: 7}, {scheme: ssp, staleness: 1, until: 15}, {scheme: bsp}]}", 1},
	} {
		for _, hosts := range []string{"aaaaaa", "ababab"} {
			if stationtest.UnderRace && hosts == "aaaaaa" && !driverDiffers(c.sync) {
				continue
			}
			t.Run(c.sync+" "+hosts, func(t *testing.T) {
				t.Parallel() // they mostly wait for the straggler
				got := trainShared(t, hosts, "sync=["+c.sync+"]", straggler, "train.stop={samples: 1600}")
				if got.Committed() < 1600 || got.LeadMax() > c.max {
					t.Errorf("%d samples at a lead of %d, the bound is %d", got.Committed(), got.LeadMax(), c.max)
				}
				for _, sh := range got.Shards() {
					if sh.State.Stats.Pushes != got.Pushes() {
						t.Errorf("shard %d got %d pushes of %d", sh.State.ID, sh.State.Stats.Pushes, got.Pushes())
					}
				}
				if none := strings.HasPrefix(c.sync, "{match: '*', scheme: r2sp"); (got.Shared == 0) != none {
					t.Errorf("%d bytes were shared", got.Shared)
				}
			})
		}
	}
}

// A worker that is answered before its push is committed overwrites its gradients; the push still counts. With one worker
// everything has an order, so the bits show it. How long a worker with published versions runs on past the stop depends on
// when they arrive: as many iterations of asp give the same bits.
func TestPushesThatWaitForACommitAreNotOverwritten(t *testing.T) {
	for _, sync := range []string{"{match: '*', scheme: softsync, q: 3}",
		"{match: '*', scheme: softsync, q: 2, staleness: 4}", "{match: '*', scheme: essp, staleness: 2}",
		"{match: '*', scheme: ssp, staleness: 2, push: delta, cache: true}"} {
		set := []string{"cluster.servers=1", "sync=[" + sync + "]", "train.stop={samples: 240}"}
		got := trainShared(t, "aa", set...)
		if strings.Contains(sync, "essp") {
			set[1], set[2] = "sync=[{match: '*', scheme: asp, push: delta}]", fmt.Sprintf("train.stop={updates: %d}", got.Pushes())
		}
		want := mustTrain(t, load(t, append(set, "cluster.shared_memory=off")...), 2)
		if got.SHA256() != want.SHA256() || got.Committed() < 240 || got.Committed() != want.Committed() || got.Shared == 0 {
			t.Errorf("%s: sha256 %s after %d samples, by messages %s after %d; %d bytes shared", sync, got.SHA256(),
				got.Committed(), want.SHA256(), want.Committed(), got.Shared)
		}
	}
}

// An announcement that fits no push ends the run, and no memory is read.
func TestAnAnnouncementWithoutAPushFailsTheRun(t *testing.T) {
	ts := stationtest.Transports("aa")
	_, errs := sidestest.Try(t, load(t, "cluster.servers=1", "model={name: synthetic, layers: [1000]}"), 2,
		sidestest.Options{Transports: []comm.Transport{ts[0], doubleAnnouncer{ts[1]}}})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "rank 1 announces piece 0 in shared memory, and no push "+
		"of that piece is in flight") {
		t.Errorf("rank 0: %v", errs[0])
	}
}

// doubleAnnouncer announces each push in shared memory twice.
type doubleAnnouncer struct{ comm.Transport }

func (a doubleAnnouncer) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch != comm.Ctl {
		return a.Transport.Isend(to, ch, tag, b, off, n, h)
	}
	frame := b.Bytes()[off:]
	if r, _, err := wire.Next(frame[:n]); err == nil && r.Kind == wire.Push {
		const first, second = wire.Size, wire.Size + wire.PieceSize
		copy(frame[second+wire.PieceSize:], bytes.Clone(frame[second:n]))
		copy(frame[second:], frame[first:second])
		n += wire.PieceSize
	}
	return a.Transport.Isend(to, ch, tag, b, off, n, h)
}
