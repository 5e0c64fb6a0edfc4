package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
)

// shareAllShards lets even the shortest shard go through shared memory.
func shareAllShards(o *Options) { o.thresholds.Shared = 1 }

// trainShared runs a world with as much shared memory as its hosts allow. hosts is the host of each rank.
func trainShared(t *testing.T, hosts []int, set ...string) Result {
	t.Helper()
	res, errs := runOver(t, inproc.New(len(hosts), inproc.Options{Hosts: hosts}), load(t, set...), shareAllShards)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return res[0]
}

// BSP is exact: it has the same bits through shared memory, through messages, and if some pairs use the one and some the
// other.
func TestBSPHasTheSameBitsThroughSharedMemory(t *testing.T) {
	model := []string{"model={name: mlp, layers: [24, 16]}", "shards={slice: layer, max_bytes: 256B}"}
	want := mustTrain(t, load(t, append(model, "cluster.shared_memory=off")...), 6).Summary
	if want.BytesShared != 0 {
		t.Errorf("%d bytes were shared with cluster.shared_memory=off", want.BytesShared)
	}
	one := []int{0, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		name  string
		hosts []int
		set   []string
		all   bool // only headers are sent
	}{
		{"one host", one, nil, true},
		{"two hosts", []int{0, 1, 0, 0, 1, 1}, nil, false},
		{"servers alone", []int{0, 0, 1, 1, 1, 1}, nil, false},
		{"shards by size", one, []string{"shards={slice: even, max_bytes: 1KiB}"}, true},
		{"priority", one, []string{"send={order: priority, window: 256B}"}, true},
		{"credit, two hosts", []int{0, 1, 0, 0, 1, 1},
			[]string{"send={order: credit, credit: 100B, tune: {points: 2, steps: 2, min: 50B, max: 500B}}"}, false},
		{"colocated", []int{0, 0, 0, 0}, []string{"cluster.placement=colocate"}, true},
		{"colocated, two hosts", []int{0, 1, 0, 1}, []string{"cluster.placement=colocate"}, false},
		{"folds at arrival would differ", one, []string{"device.threads=2"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := trainShared(t, c.hosts, append(append([]string{}, model...), c.set...)...).Summary
			if s.ParametersSHA256 != want.ParametersSHA256 {
				t.Errorf("sha256 %s, want %s", s.ParametersSHA256, want.ParametersSHA256)
			}
			var bytes int64
			for _, sh := range s.PerShard {
				bytes += sh.Bytes * (sh.Pushes + sh.Pulls)
			}
			if (s.BytesShared == bytes) != c.all || s.BytesShared > bytes {
				t.Errorf("%d bytes were shared, of %d", s.BytesShared, bytes)
			}
			if s.BytesSent != s.BytesReceived || c.all && s.BytesSent >= want.BytesSent/2 {
				t.Errorf("%d bytes sent, %d received; without shared memory %d", s.BytesSent, s.BytesReceived, want.BytesSent)
			}
		})
	}
}

// A checkpoint during training reads the version where workers read it, in shared memory: the version on disk equals that
// of a run that saves none.
func TestVersionsAreSavedFromSharedMemory(t *testing.T) {
	for _, placement := range []string{"spread", "colocate"} {
		t.Run(placement, func(t *testing.T) {
			n := map[string]int{"spread": 6, "colocate": 4}[placement]
			set := []string{"model={name: mlp, layers: [24, 16]}", "shards={slice: layer, max_bytes: 256B}",
				"evaluate.every_epochs=0", "checkpoint.keep=1000", "cluster.placement=" + placement}
			with := func(more ...string) *configs.Config { return load(t, append(slices.Clone(set), more...)...) }
			dir := filepath.Join(t.TempDir(), "out")
			signals, ended := make(chan string, 1), make(chan struct{})
			go interruptAt(dir, 3, signals, ended)
			res, errs := runPart(t, with("train.stop={time: 1h}", "checkpoint.every_updates=2"), n, dir, "", func(o *Options) {
				shareAllShards(o)
				if o.Transport.Rank() == 0 {
					o.Interrupt = signals
				}
			})
			close(ended)
			if s := mustAgree(t, CodeAgain, res, errs).Summary; s.BytesShared == 0 {
				t.Error("nothing went through shared memory: the test looks at nothing")
			}
			dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
			if err != nil || len(dirs) < 3 {
				t.Fatalf("checkpoints %v, %v", dirs, err)
			}
			for _, d := range dirs[:3] {
				m, err := checkpoint.Open(d)
				if err != nil {
					t.Fatal(err)
				}
				want := mustTrain(t, with(updates(m.Iteration+5)), n).Summary.ParametersSHA256
				if got := mustRunPart(t, with(updates(m.Iteration+5)), n, "", d).Summary.ParametersSHA256; got != want {
					t.Errorf("from iteration %d in %s: sha256 %s, want %s", m.Iteration, d, got, want)
				}
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
		for _, hosts := range [][]int{{0, 0, 0, 0, 0, 0}, {0, 1, 0, 1, 0, 1}} {
			if underRace && hosts[1] == 0 && !driverDiffers(c.sync) {
				continue
			}
			t.Run(fmt.Sprint(c.sync, hosts), func(t *testing.T) {
				t.Parallel() // they mostly wait for the straggler
				s := trainShared(t, hosts, "sync=["+c.sync+"]", straggler, "train.stop={samples: 1600}").Summary
				if s.Finished != "ok" || s.Samples < 1600 || s.MaxLead > c.max {
					t.Errorf("finished %q after %d samples at a lead of %d, the bound is %d", s.Finished, s.Samples, s.MaxLead, c.max)
				}
				for _, sh := range s.PerShard {
					if sh.Pushes != sumIterations(s) {
						t.Errorf("shard %d got %d pushes of %d", sh.Shard, sh.Pushes, sumIterations(s))
					}
				}
				if none := strings.HasPrefix(c.sync, "{match: '*', scheme: r2sp"); (s.BytesShared == 0) != none {
					t.Errorf("%d bytes were shared", s.BytesShared)
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
		s := trainShared(t, []int{0, 0}, set...).Summary
		if strings.Contains(sync, "essp") {
			set[1], set[2] = "sync=[{match: '*', scheme: asp, push: delta}]", fmt.Sprintf("train.stop={updates: %d}", sumIterations(s))
		}
		want := mustTrain(t, load(t, append(set, "cluster.shared_memory=off")...), 2).Summary
		if s.ParametersSHA256 != want.ParametersSHA256 || s.Samples < 240 || s.Samples != want.Samples || s.BytesShared == 0 {
			t.Errorf("%s: sha256 %s after %d samples, by messages %s after %d; %d bytes shared", sync, s.ParametersSHA256,
				s.Samples, want.ParametersSHA256, want.Samples, s.BytesShared)
		}
	}
}

// A shard in shared memory takes a header and an announcement up, and a header down.
func TestANearShardTakesHeadersAlone(t *testing.T) {
	s, w := traced(t, "model={name: synthetic, layers: [1000, 1500]}", "shards.max_bytes=4KiB")
	mustContain(t, w.frames, "push piecethere piecethere", 30)
	mustContain(t, w.frames, "piecethere pull", 30)
	mustContain(t, s.frames, "reply", 31)
	if w.bulk != 0 || s.bulk != 0 {
		t.Errorf("%d pieces up and %d down on the data channel, want none", w.bulk, s.bulk)
	}
}

// noSharedMemory is a Transport without shared memory.
type noSharedMemory struct{ comm.Transport }

func (p noSharedMemory) Shared(int) (*comm.Window, error) {
	return nil, fmt.Errorf("rank 1 cannot have 5 bytes: %w", comm.ErrNoMemory)
}

// Without shared memory ranks send messages, and one of them warns.
func TestWithoutSharedMemoryRanksSendMessages(t *testing.T) {
	want := mustTrain(t, load(t, "cluster.shared_memory=off"), 6).Summary
	var warned lines
	var ts []comm.Transport
	for _, tr := range inproc.New(6, inproc.Options{}) {
		ts = append(ts, noSharedMemory{tr})
	}
	res, errs := runOver(t, ts, load(t), func(o *Options) { o.thresholds.Shared, o.Warn = 1, &warned })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s := res[0].Summary; s.ParametersSHA256 != want.ParametersSHA256 || s.BytesShared != 0 || s.BytesSent != want.BytesSent {
		t.Errorf("sha256 %s, %d bytes shared, %d sent; want %s, 0, %d", s.ParametersSHA256, s.BytesShared, s.BytesSent,
			want.ParametersSHA256, want.BytesSent)
	}
	if got := warned.String(); strings.Count(got, "WARN") != 1 || !strings.Contains(got, "no shared memory") ||
		!strings.Contains(got, "rank 1 cannot have 5 bytes") {
		t.Errorf("warnings %q", got)
	}
}

// An announcement that fits no push ends the run, and no memory is read.
func TestAnAnnouncementWithoutAPushFailsTheRun(t *testing.T) {
	ts := inproc.New(2, inproc.Options{})
	_, errs := runOver(t, []comm.Transport{ts[0], doubleAnnouncer{ts[1]}},
		load(t, "cluster.servers=1", "model={name: synthetic, layers: [1000]}"), nil)
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
