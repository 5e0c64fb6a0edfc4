package link_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/sidestest"
	"fluentps/ps/workload"
)

// counted counts the messages of one rank, and decodes the frames.
type counted struct {
	comm.Transport
	mu     sync.Mutex
	frames []string // the kinds in each, in order
	bulk   int
}

func (c *counted) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ch == comm.Ctl:
		var kinds []string
		for rest := b.Bytes()[off : off+n]; len(rest) > 0; {
			r, after, err := wire.Next(rest)
			if err != nil {
				panic(err)
			}
			kinds = append(kinds, r.Kind.String())
			rest = after
		}
		c.frames = append(c.frames, strings.Join(kinds, " "))
	case tag >= link.TagPush && tag < link.TagSnapshot:
		c.bulk++
	}
	return c.Transport.Isend(to, ch, tag, b, off, n, h)
}

// traced trains with one server and one worker and counts the messages of both.
func traced(t *testing.T, set ...string) (server, worker *counted) {
	t.Helper()
	all := []*counted{{}, {}}
	var ts []comm.Transport
	for i, tr := range inproc.New(2, inproc.Options{}) {
		all[i].Transport = tr
		ts = append(ts, all[i])
	}
	c := configstest.Load(t, append(set, "cluster.servers=1", "evaluate.every_epochs=0")...)
	sidestest.Train(t, c, 2, sidestest.Options{Transports: ts})
	return all[0], all[1]
}

func mustContain(t *testing.T, frames []string, want string, n int) {
	t.Helper()
	got := 0
	for _, f := range frames {
		if f == want {
			got++
		}
	}
	if got != n {
		t.Errorf("%d frames %q, want %d, of %d: %q", got, want, n, len(frames), frames[:min(len(frames), 8)])
	}
}

// A small push and its pull are one message up and one down.
func TestASmallShardTakesOneMessageEachWay(t *testing.T) {
	s, w := traced(t)
	mustContain(t, w.frames, "push pushpiece pull", 30)
	mustContain(t, s.frames, "reply replypiece", 31)
	if w.bulk != 0 || s.bulk != 0 {
		t.Errorf("%d pieces up and %d down on the data channel, want none", w.bulk, s.bulk)
	}
	mustContain(t, w.frames, "pull", 1) // the first parameters
	mustContain(t, w.frames, "left", 1)
}

// A large push has one message of headers, and one for each of its pieces, each way.
func TestALargeShardTakesOneFrameEachWay(t *testing.T) {
	n := layout.InlineMax/shard.ElemBytes + 1
	s, w := traced(t, fmt.Sprintf("model={name: synthetic, layers: [%d]}", n), "cluster.shared_memory=off")
	mustContain(t, w.frames, "push pull", 30)
	mustContain(t, s.frames, "reply", 31)
	if w.bulk != 30 || s.bulk != 31 {
		t.Errorf("%d pieces up and %d down on the data channel", w.bulk, s.bulk)
	}
}

// Layers that become ready one after another leave one after another. A full frame leaves, and the next frame has the rest.
func TestFramesAreFilledAndSplit(t *testing.T) {
	n := layout.InlineMax / shard.ElemBytes
	s, w := traced(t, fmt.Sprintf("model={name: synthetic, layers: [%d, 1, %d]}", n, n), "cluster.shared_memory=off")
	mustContain(t, w.frames, "push pushpiece", 30)
	mustContain(t, w.frames, "pushpiece", 30)
	mustContain(t, w.frames, "pushpiece pull", 30)
	mustContain(t, s.frames, "reply replypiece replypiece", 31)
	mustContain(t, s.frames, "replypiece", 31)
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

// memoryMeter counts the memory of frames and of the ring, by their sizes.
type memoryMeter struct {
	comm.Transport
	mu    sync.Mutex
	bytes int64
}

func (k *memoryMeter) Alloc(n int) (*comm.Buf, error) {
	if n == layout.FrameSmall || n == comm.CtlMax {
		k.mu.Lock()
		k.bytes += int64(n)
		k.mu.Unlock()
	}
	return k.Transport.Alloc(n)
}

// A server that answers all workers in one batch fills a message for each of them, which plan counts.
func TestFramesStayWithinTheirLimit(t *testing.T) {
	const workers = 12
	c := configstest.Load(t, "model={name: synthetic, layers: [3000]}", "cluster={servers: 1, shared_memory: off}", "evaluate.every_epochs=0")
	all := make([]*memoryMeter, workers+1)
	var ts []comm.Transport
	for i, tr := range inproc.New(len(all), inproc.Options{}) {
		all[i] = &memoryMeter{Transport: tr}
		ts = append(ts, all[i])
	}
	sidestest.Train(t, c, len(ts), sidestest.Options{Transports: ts})
	roles, err := layout.Roles(c, make([]string, len(all)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := layout.Plan(c, []workload.Param{{Name: "w", Shape: []int{3000}}}, 1, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	routes := layout.NewRoutes(c, p, roles, nil, layout.Thresholds{})
	for i, k := range all {
		if most := int64(layout.RingDepth(len(all)))*comm.CtlMax + routes.FrameBytes(i); k.bytes > most {
			t.Errorf("rank %d took %d bytes for control messages, and the limit is %d", i, k.bytes, most)
		}
	}
}
