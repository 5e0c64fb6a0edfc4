package serve_test

import (
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/faulty"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
)

// Pushes that are received ahead give the bits of pushes that are read in shared memory, also if a fold still reads the
// memory for the next push, and if pieces arrive before their headers. The first layer has 16 kB.
func TestPushesReceivedAheadHaveTheSameBits(t *testing.T) {
	for _, c := range []struct {
		sync    string
		workers int
	}{
		{"{match: '*', scheme: bsp}", 3},
		{"{match: '*', scheme: asp}", 1},
		{"{match: '*', scheme: softsync, q: 3}", 1},
		{"{match: '*', scheme: rennala, pushes: 3}", 1},
		{"{match: '*', scheme: ringleader}", 1},
	} {
		if stationtest.UnderRace && c.workers == 1 && !strings.Contains(c.sync, "rennala") { // one way into the memory for all of one worker
			continue
		}
		set := []string{"sync=[" + c.sync + "]", "cluster.servers=1", "shards={slice: layer, max_bytes: 1MiB}",
			"model={name: mlp, layers: [200]}", "train.stop={samples: 480}"}
		want := trainShared(t, stationtest.OneHost(c.workers+1), set...)
		for seed := range uint64(4) {
			ts := faulty.Wrap(inproc.New(c.workers+1, inproc.Options{}), faulty.Options{Seed: seed, DelayMax: int(2 * seed)})
			got := sidestest.Train(t, load(t, append(set, "cluster.shared_memory=off")...), c.workers+1, sidestest.Options{Transports: ts})
			if got.SHA256() != want.SHA256() || got.Shared != 0 || want.Shared == 0 {
				t.Errorf("%s, seed %d: sha256 %s with %d bytes shared, want %s (%d)", c.sync, seed, got.SHA256(),
					got.Shared, want.SHA256(), want.Shared)
			}
		}
	}
}

// receiveCounter counts the receives of pushes that its rank has posted at the end of setup.
type receiveCounter struct {
	comm.Transport
	posted int
	ahead  chan int
}

func (p *receiveCounter) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch == comm.Data && tag&^(layout.PiecesMax-1) == link.TagPush {
		p.posted++
	}
	return p.Transport.Irecv(from, ch, tag, b, off, n, h)
}

func (p *receiveCounter) Barrier() error {
	select {
	case p.ahead <- p.posted:
	default: // a later barrier
	}
	return p.Transport.Barrier()
}

// A server posts a bounded number of receives ahead, however many shards there are.
func TestReceivesAheadAreBounded(t *testing.T) {
	const layers, workers = 80, 4
	c := load(t, "sync=[{match: '*', scheme: bsp}]", "cluster={servers: 1, shared_memory: off}", "shards={slice: layer}",
		"model={name: synthetic, layers: ["+strings.Repeat("4096, ", layers)+"]}", "train.stop={updates: 3}")
	ts := inproc.New(1+workers, inproc.Options{})
	server := &receiveCounter{Transport: ts[0], ahead: make(chan int, 1)}
	ts[0] = server
	sidestest.Train(t, c, len(ts), sidestest.Options{Transports: ts})
	if n := <-server.ahead; n != layout.AheadReceivesMax {
		t.Errorf("%d receives posted ahead, want %d", n, layout.AheadReceivesMax)
	}
}
