package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/wire"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
)

// lossyPayloads are the codecs, in one direction and in both.
var lossyPayloads = []string{"{push: float16}", "{push: bfloat16, pull: bfloat16}", "{pull: float16}",
	"{push: topk, ratio: 0.1}", "{push: topk, ratio: 0.1, thresholds: reused}",
	"{push: topk, ratio: 0.1, pull: bfloat16}", "{push: threshold, threshold: 0.3, ratio: 0.2}"}

// The same numbers arrive however pieces travel: in frames or on the data channel, whole or in the order of a policy, also
// to ranks that serve and work.
func TestPayloadsGiveTheSameBitsOnAllWays(t *testing.T) {
	model := []string{"model={name: mlp, layers: [24]}", "shards={slice: layer, max_bytes: 256B}", "evaluate.every_epochs=0"}
	hash := func(ranks, longest int, set ...string) string {
		t.Helper()
		res, errs := world(t, load(t, append(set, model...)...), ranks, func(o *Options) { o.thresholds.Inline = longest })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(set, err)
		}
		if s := res[0].Summary; s.BytesSent != s.BytesReceived || s.Iterations != 30 {
			t.Errorf("%v: %d bytes sent, %d received in %d iterations", set, s.BytesSent, s.BytesReceived, s.Iterations)
		}
		return res[0].Summary.ParametersSHA256
	}
	seen := map[string]string{hash(6, 0): "{}"}
	for _, p := range lossyPayloads {
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

// parameters trains and returns the final parameters.
func parameters(t *testing.T, set ...string) []float32 {
	t.Helper()
	return mustTrain(t, load(t, set...), 6).Parameters
}

func distance(a, b []float32) (most float64) {
	for i := range a {
		most = math.Max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

// slowEnd lets a run end at a small learning rate, so that its accuracy does not depend on which worker was late with which
// rows.
var slowEnd = []string{"train.stop={epochs: 14}", "data.partition=overlap_reshuffle",
	"train.schedule={name: step, at: [100], factor: 0.02}"}

// Halved floats change the parameters a little; a topk that leaves nothing out does not change them.
func TestPayloadsLearn(t *testing.T) {
	learns(t)
	full := parameters(t)
	for payload, most := range map[string]float64{"{push: topk, ratio: 1}": 0, "{push: threshold, threshold: 0, ratio: 1}": 0,
		"{push: float16, pull: float16}": 0.002, "{push: bfloat16, pull: bfloat16}": 0.02} {
		if d := distance(full, parameters(t, "payload="+payload)); d > most || most > 0 && d == 0 {
			t.Errorf("%s: a parameter is off by %g, want at most %g", payload, d, most)
		}
	}
	for _, scheme := range []string{"bsp", "asp", "ssp, staleness: 2", "r2sp", "dynsgd", "consgd"} {
		for _, payload := range []string{"{push: topk, ratio: 0.1}", "{push: threshold, threshold: 0.02, ratio: 0.1, pull: bfloat16}"} {
			s := mustTrain(t, load(t, append(slowEnd, "payload="+payload, "sync=[{match: '*', scheme: "+scheme+"}]")...), 6).Summary
			if acc := float64(*s.TestAccuracy); acc < 0.8 {
				t.Errorf("%s, %s: test accuracy %.3f, want 0.8 as without", payload, scheme, acc)
			}
			if !s.Payload.Lossy || !strings.Contains(s.Payload.Push, payload[7:11]) {
				t.Errorf("%s: the summary says %+v", payload, s.Payload)
			}
		}
	}
}

// Workers refresh their copies from lossy versions, and push lossy gradients; lossy pushes may be dropped.
func TestPayloadsOfCopiesAndOfDrops(t *testing.T) {
	for scheme, payload := range map[string]string{"essp, staleness: 2": "{pull: bfloat16}",
		"ssp, staleness: 2, push: delta, cache: true": "{pull: float16}", "drop, required: 3": "{push: bfloat16, pull: float16}"} {
		for _, longest := range []int{-1, 0} {
			res, errs := world(t, load(t, append(slowEnd, "payload="+payload, "sync=[{match: '*', scheme: "+scheme+"}]")...),
				6, func(o *Options) { o.thresholds.Inline = longest })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if s := res[0].Summary; float64(*s.TestAccuracy) < 0.8 || s.BytesSent != s.BytesReceived {
				t.Errorf("%s, %s: test accuracy %.3f, %d bytes sent, %d received", scheme, payload, *s.TestAccuracy, s.BytesSent, s.BytesReceived)
			}
		}
	}
}

// The bytes on the wire are those of the codec, to the byte.
func TestPayloadsTakeTheirBytes(t *testing.T) {
	const updates, layer = 30, 5000
	set := []string{fmt.Sprintf("model={name: synthetic, layers: [%d, 100]}", layer), "cluster.servers=1",
		"shards.slice=layer", "train.optimizer.lr=0.001"}
	full := mustTrain(t, load(t, append(set, "cluster.shared_memory=off")...), 5).Summary
	pushes, replies := int64(4*updates), int64(4*(updates+1))
	for payload, saved := range map[string]int64{
		"{push: bfloat16}":                pushes * 2 * (layer + 100),
		"{pull: float16}":                 replies * 2 * (layer + 100),
		"{push: float16, pull: bfloat16}": (pushes + replies) * 2 * (layer + 100),
		// the large piece now travels in a frame
		"{push: topk, ratio: 0.01}": pushes * (4*(layer+100) - (4 + 8*50) - (4 + 8*1) - wire.PieceSize),
	} {
		s := mustTrain(t, load(t, append(set, "payload="+payload)...), 5).Summary
		if got := full.BytesSent - s.BytesSent; got != saved || s.BytesReceived != s.BytesSent || s.BytesShared != 0 {
			t.Errorf("%s: %d bytes less than %d were sent, want %d; %d received of %d", payload, got, full.BytesSent, saved,
				s.BytesReceived, s.BytesSent)
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
			[]string{"push of shard */0 from worker 0 (rank 1, host here)", "both sides must have the same payload"}},
		"an index out of range": {"{push: topk, ratio: 0.1}", link.TagPush,
			func(v []byte) int { binary.LittleEndian.PutUint32(v[4:], 1<<20); return len(v) },
			[]string{"push of shard */0 from worker 0 (rank 1, host here)", "index 1048576", "the message is damaged"}},
		"more than the ratio": {"{push: topk, ratio: 0.1}", link.TagPush,
			func(v []byte) int { binary.LittleEndian.PutUint32(v, 9999); return len(v) },
			[]string{"push of shard */0 from worker 0 (rank 1, host here)", "9999 of 84 elements"}},
		"a short reply": {"{pull: float16}", link.TagReply, func(v []byte) int { return len(v) - 2 },
			[]string{"reply of shard */0 from rank 0, host here", "received 166 bytes for 84 elements of 2 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			ts := inproc.New(2, inproc.Options{})
			for i := range ts {
				ts[i] = damaging{ts[i], c.tag, c.damage}
			}
			_, errs := runOver(t, ts, load(t, "cluster.servers=1", "payload="+c.payload), func(o *Options) { o.thresholds.Inline = -1 })
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
	teams := func(payload string) Result {
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
	if s := teams("{push: topk, ratio: 0.1, pull: float16}").Summary; float64(*s.TestAccuracy) < 0.8 || s.BytesSent >= half.Summary.BytesSent {
		t.Errorf("a tenth: test accuracy %.3f, %d bytes sent", *s.TestAccuracy, s.BytesSent)
	}
}
