package runtime

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/show/metrics"
)

// All bytes of messages count, headers included: with a list of tensors 12 bytes a tensor beside the values, each way, and
// 8 in a pull; with a key for every scalar 12 bytes a parameter pushed, 8 pulled and 12 replied. All is on server 0.
func TestBytesOfMessagesWithKeys(t *testing.T) {
	const workers, iterations = 4, 5
	for _, c := range []struct {
		keys       string
		messages   int64                  // pushes of an iteration of a worker, each short enough for a frame
		push, pull func(n, k int64) int64 // bytes of n parameters in k tensors, beside headers
	}{
		{shard.KeysTensor, 4, func(n, _ int64) int64 { return 4 * n }, func(_, _ int64) int64 { return 0 }},
		{shard.KeysList, 1, func(n, k int64) int64 { return 4*n + 12*k }, func(_, k int64) int64 { return 8 * k }},
		{shard.KeysScalar, 1, func(n, _ int64) int64 { return 12 * n }, func(n, _ int64) int64 { return 8 * n }},
	} {
		cfg := load(t, "baseline={name: pslite, keys: "+c.keys+"}", "model={name: mlp, layers: [12]}",
			"train.stop={updates: 5}", "evaluate={every_epochs: 0}")
		s := mustTrain(t, cfg, 6).Summary
		n, k := int64(0), int64(4)
		for _, sh := range s.PerShard {
			n += sh.Bytes / shard.ElemBytes
			if sh.Server != 0 {
				t.Errorf("%s: %s lies on server %d", c.keys, sh.Name, sh.Server)
			}
		}
		if int64(len(s.PerShard)) != c.messages {
			t.Errorf("%s: %d shards, want %d", c.keys, len(s.PerShard), c.messages)
		}
		// Pushes and acknowledgements, one more pull and reply than those, barriers and releases, and Left to both servers.
		headers := int64(wire.Size) * (2*iterations*c.messages + 2*(iterations+1)*c.messages + 2*iterations + 2)
		each := headers + (2*iterations+1)*(c.push(n, k)+c.messages*wire.PieceSize) + (iterations+1)*c.pull(n, k)
		if s.BytesSent != workers*each || s.BytesReceived != s.BytesSent {
			t.Errorf("%s: %d bytes sent, %d received, want %d", c.keys, s.BytesSent, s.BytesReceived, workers*each)
		}
		// plan counts the messages of an iteration, in which each push is answered once.
		messages, bytes := 4*c.messages+2, wire.Size*(4*c.messages+2)+2*(c.push(n, k)+c.messages*wire.PieceSize)+c.pull(n, k)
		if c.keys != shard.KeysTensor {
			messages++ // the keys of a pull never travel in a frame
		}
		text := planOf(t, cfg, 6)
		if want := fmt.Sprintf("each worker at most %d messages, %s; all 4", messages,
			metrics.Size(bytes)); !strings.Contains(text, want) || !strings.Contains(text, "Baseline pslite: keys: "+c.keys+": every ") {
			t.Errorf("%s: no word of %q in %s", c.keys, want, text)
		}
	}
}

// The receiver of a push, a pull or a reply finds a wrong key, which ends the run.
func TestAWrongKeyEndsTheRun(t *testing.T) {
	for _, c := range []struct {
		keys   string
		sender int // a server is rank 0, a worker rank 1
		tag    uint32
		at     int // index of the byte to change
		want   string
	}{
		{"scalar", 1, link.TagPush, 9, "push of shard */range0 from worker 0"},
		{"scalar", 1, link.TagKeys, 9, "pull of shard */range0 from worker 0"},
		{"scalar", 0, link.TagReply, 9, "reply of shard */range0 from"},
		{"list", 1, link.TagPush, 0, "push of shard */range0 from worker 0"},
		{"list", 1, link.TagPush, 6 * 8, "received key 0 with"}, // a length
		{"list", 1, link.TagKeys, 1, "pull of shard */range0 from worker 0"},
		{"list", 0, link.TagReply, 8, "reply of shard */range0 from"},
	} {
		t.Run(fmt.Sprintf("%s %x byte %d", c.keys, c.tag, c.at), func(t *testing.T) {
			// too much for a frame
			set := []string{"baseline={name: pslite, keys: " + c.keys + "}", "cluster.servers=1", "model={name: mlp, layers: [80, 40]}"}
			ts := inproc.New(3, inproc.Options{})
			ts[c.sender] = &changing{Transport: ts[c.sender], tag: c.tag, at: c.at}
			_, errs := runOver(t, ts, load(t, set...), nil)
			said := false
			for _, err := range errs {
				said = said || err != nil && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), "key")
			}
			if !said {
				t.Errorf("errors %v, want %q", errs, c.want)
			}
		})
	}
}

// changing is a Transport that changes a byte of the third message of a kind on Data.
type changing struct {
	comm.Transport
	tag uint32
	at  int
	n   int
}

func (c *changing) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch != comm.Data || tag&^(layout.PiecesMax-1) != c.tag {
		return c.Transport.Isend(to, ch, tag, b, off, n, h)
	}
	if c.n++; c.n != 3 {
		return c.Transport.Isend(to, ch, tag, b, off, n, h)
	}
	other, err := c.Alloc(n)
	if err != nil {
		panic(err)
	}
	copy(other.Bytes(), b.Bytes()[off:off+n])
	other.Bytes()[c.at] ^= 0x40
	return c.Transport.Isend(to, ch, tag, other, 0, n, h)
}

// planOf is the text of plan for a run of so many ranks.
func planOf(t *testing.T, c *configs.Config, ranks int) string {
	t.Helper()
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	hosts := make([]string, ranks)
	roles, err := layout.Roles(c, hosts)
	if err != nil {
		t.Fatal(err)
	}
	q, err := layout.Prepare(c, roles, hosts, set, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	return layout.Text(c, q.Plan, roles, hosts, set, layout.Link{})
}
