package train_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
)

// lossyPayloads are the codecs, in one direction and in both.
var lossyPayloads = []string{"{push: float16}", "{push: bfloat16, pull: bfloat16}", "{pull: float16}",
	"{push: topk, ratio: 0.1}", "{push: topk, ratio: 0.1, thresholds: reused}",
	"{push: topk, ratio: 0.1, pull: bfloat16}", "{push: threshold, threshold: 0.3, ratio: 0.2}"}

// The same numbers arrive however pieces travel: in frames or on the data channel, whole or in the order of a policy, also
// to ranks that serve and work.
func TestPayloadsGiveTheSameBitsOnAllWays(t *testing.T) {
	model := []string{"model={name: mlp, layers: [24]}", "shards={slice: layer, max_bytes: 256B}", "train.stop={updates: 12}"}
	hash := func(ranks, longest int, set ...string) string {
		t.Helper()
		got := sidestest.Train(t, load(t, append(set, model...)...), ranks, sidestest.Options{Thresholds: layout.Thresholds{Inline: longest}})
		if got.Workers[0].Iterations != 12 {
			t.Errorf("%v: %d iterations", set, got.Workers[0].Iterations)
		}
		return got.SHA256()
	}
	seen := map[string]string{hash(6, 0): "{}"}
	for i, p := range lossyPayloads {
		if stationtest.UnderRace && i%2 > 0 { // the codecs start no goroutine
			continue
		}
		p = "payload=" + p
		want := hash(6, 0, p)
		if other := seen[want]; other != "" {
			t.Errorf("%s gives the parameters of %s", p, other)
		}
		seen[want] = p
		for _, longest := range []int{-1, 100} { // no pieces in frames; some pieces in frames
			if got := hash(6, longest, p); got != want {
				t.Errorf("%s with pieces of up to %d bytes in frames: sha256 %.12s, want %.12s", p, longest, got, want)
			}
		}
		if got := hash(4, 0, p, "cluster.placement=colocate"); got != want {
			t.Errorf("%s, colocate: sha256 %.12s, want %.12s", p, got, want)
		}
		if got := hash(6, -1, p, "send={order: priority, window: 100B}"); got != want {
			t.Errorf("%s, priority: sha256 %.12s, want %.12s", p, got, want)
		}
	}
}

// The bytes on the wire are those of the codec, to the byte.
func TestPayloadsTakeTheirBytes(t *testing.T) {
	const updates, layer = 30, 5000
	set := []string{fmt.Sprintf("model={name: synthetic, layers: [%d, 100]}", layer), "cluster.servers=1",
		"shards.slice=layer", "train.optimizer.lr=0.001"}
	full := mustTrain(t, load(t, append(set, "cluster.shared_memory=off")...), 5)
	pushes, replies := int64(4*updates), int64(4*(updates+1))
	for payload, saved := range map[string]int64{
		"{push: bfloat16}":                pushes * 2 * (layer + 100),
		"{pull: float16}":                 replies * 2 * (layer + 100),
		"{push: float16, pull: bfloat16}": (pushes + replies) * 2 * (layer + 100),
		// the large piece now travels in a frame
		"{push: topk, ratio: 0.01}": pushes * (4*(layer+100) - (4 + 8*50) - (4 + 8*1) - wire.PieceSize),
	} {
		s := mustTrain(t, load(t, append(set, "payload="+payload)...), 5)
		if got := full.Sent - s.Sent; got != saved || s.Shared != 0 {
			t.Errorf("%s: %d bytes less than %d were sent, want %d; %d were shared", payload, got, full.Sent, saved, s.Shared)
		}
	}
}

// damaging changes messages on the data channel before they leave.
type damaging struct {
	comm.Transport
	tag    uint32
	damage func(values []byte) (n int)
}

func (d damaging) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch == comm.Data && tag&^(layout.PiecesMax-1) == d.tag {
		n = d.damage(b.Bytes()[off : off+n])
	}
	return d.Transport.Isend(to, ch, tag, b, off, n, h)
}

// A message that no codec writes ends the run, and the error names the sender and the content.
func TestDamagedPiecesEndTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		tag     uint32
		damage  func(values []byte) int
		want    []string
	}{
		"a short push": {"{push: bfloat16}", link.TagPush, func(v []byte) int { return len(v) - 1 },
			[]string{"push of shard */0 from worker 0 (rank 1, host a)", "both sides must have the same payload"}},
		"an index out of range": {"{push: topk, ratio: 0.1}", link.TagPush,
			func(v []byte) int { binary.LittleEndian.PutUint32(v[4:], 1<<20); return len(v) },
			[]string{"push of shard */0 from worker 0 (rank 1, host a)", "index 1048576", "the message is damaged"}},
		"more than the ratio": {"{push: topk, ratio: 0.1}", link.TagPush,
			func(v []byte) int { binary.LittleEndian.PutUint32(v, 9999); return len(v) },
			[]string{"push of shard */0 from worker 0 (rank 1, host a)", "9999 of 84 elements"}},
		"a short reply": {"{pull: float16}", link.TagReply, func(v []byte) int { return len(v) - 2 },
			[]string{"reply of shard */0 from rank 0, host a", "received 166 bytes for 84 elements of 2 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			ts := stationtest.Transports("aa")
			for i := range ts {
				ts[i] = damaging{ts[i], c.tag, c.damage}
			}
			_, errs := sidestest.Try(t, load(t, "cluster.servers=1", "payload="+c.payload), 2,
				sidestest.Options{Transports: ts, Thresholds: layout.Thresholds{Inline: -1}})
			err := errors.Join(errs...)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

// A team's worker encodes the sums of its members' gradients, and decodes parameters into the memory that the members read.
func TestPayloadsOfTeams(t *testing.T) {
	teams := func(payload string) *sidestest.Result {
		return trainOn(t, "saabb", load(t, "cluster={servers: 1, hierarchy: node}", "payload="+payload))
	}
	full := teams("{}")
	if d := distance(full.Parameters, teams("{push: topk, ratio: 1}").Parameters); d > 0 {
		t.Errorf("a topk of all moves a parameter by %g", d)
	}
	half := teams("{push: bfloat16, pull: bfloat16}")
	if d := distance(full.Parameters, half.Parameters); d == 0 || d > 0.02 {
		t.Errorf("halves move a parameter by %g", d)
	}
	tenth := teams("{push: topk, ratio: 0.1, pull: float16}")
	if _, share := sidestest.OnTestSet(t, load(t), tenth.Parameters); share < 0.8 || tenth.Sent >= half.Sent {
		t.Errorf("a tenth: test accuracy %.3f, %d bytes sent", share, tenth.Sent)
	}
}
