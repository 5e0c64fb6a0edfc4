package runtime

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
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
