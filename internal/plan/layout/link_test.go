package layout

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/core/shard"
	"fluentps/ps/workload"
)

// What a link wants: over up to 1.6 Gbit/s shards and pieces of 32 KiB, at most 32 shards a server, and so much in
// flight as the link carries in half a millisecond; over faster links longer shards, whole pieces and no window;
// within a host one shard a server.
func TestTheLinkDecidesTheCut(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		set          string
		bytes        int
		link         Link
		parts, piece int64 // of server 0; bytes of the longest piece
		windows      string
	}{
		{"", mib, Link{}, 1, 512 << 10, "[]"},
		{"", mib, Link{Rate: 25e6}, 16, 32 << 10, "[32768 32768]"},
		{"", mib, Link{Rate: 25e6, Given: true}, 16, 32 << 10, "[32768 32768]"},
		{"", 64 * mib, Link{Rate: 25e6}, 32, 32 << 10, "[32768 32768]"},
		{"", mib, Link{Rate: 125e6}, 8, 32 << 10, "[65536 65536]"},
		{"", mib, Link{Rate: 1250e6}, 1, 512 << 10, "[]"},
		{"", 64 * mib, Link{Rate: 1250e6}, 32, 1 << 20, "[]"},
		{"", 64 * mib, Link{Rate: 12500e6}, 4, 4 << 20, "[]"},
		{"shards.parts=3", mib, Link{}, 3, 174764, "[]"},
		{"shards.parts=3", mib, Link{Rate: 25e6}, 3, 29128, "[32768 32768]"},
		{"shards.max_bytes=16KiB", mib, Link{Rate: 25e6}, 16, 16 << 10, "[32768 32768]"},
		{"shards.slice=layer", mib, Link{Rate: 25e6}, 1, 32 << 10, "[131072 32768]"},
		{"payload.push=topk", mib, Link{Rate: 25e6}, 1, 512 << 10, "[]"}, // measured: bits must not depend on it
		{"payload.push=topk", mib, Link{Rate: 25e6, Given: true}, 16, 32 << 10, "[32768 32768]"},
		// a message a server, whatever shards says
		{"baseline=pslite baseline.keys=list shards.slice=even shards.parts=3", mib, Link{Rate: 25e6, Given: true}, 1, 512 << 10, "[]"},
		{"baseline=pslite", mib, Link{Rate: 25e6, Given: true}, 2, 838860, "[]"}, // a shard a tensor and server
	} {
		t.Run(fmt.Sprintf("%s %d %+v", c.set, c.bytes, c.link), func(t *testing.T) {
			set := strings.Fields(c.set)
			big := c.bytes / 4 / 5 * 4 // a layer with four fifths of the model, and one with the rest
			p, err := Plan(load(t, set...),
				[]workload.Param{{Name: "a.w", Shape: []int{big}}, {Name: "b.w", Layer: 1, Shape: []int{c.bytes/4 - big}}}, 2, c.link)
			if err != nil {
				t.Fatal(err)
			}
			var longest int64
			for _, q := range p.Pieces {
				longest = max(longest, q.Bytes())
			}
			if parts := int64(len(p.OfServer(0))); parts != c.parts || fmt.Sprint(p.Windows) != c.windows ||
				longest > c.piece || longest < c.piece*3/4 {
				t.Errorf("%d shards of server 0, pieces of %d bytes, windows %v", parts, longest, p.Windows)
			}
		})
	}
}

// Two measurements of a link that differ by a tenth make the same shards, almost everywhere: lengths are powers of two.
func TestShardsHardlyDependOnTheMeasurement(t *testing.T) {
	apart := 0
	for rate := 1e6; rate < 2e10; rate *= 1.01 {
		a, b := Link{Rate: rate}.partMin(), Link{Rate: 1.1 * rate}.partMin()
		if a < thinPiece || a&(a-1) != 0 || b < a {
			t.Fatalf("at %g bytes/s a shard has at least %d bytes, at a tenth more %d", rate, a, b)
		}
		if a != b {
			apart++
		}
	}
	if apart > 100 {
		t.Errorf("%d of 995 rates", apart)
	}
}

// With mixed placement a server that only serves owns twice as much as the others, and has twice the window.
func TestWindowsGoByWhatAServerOwns(t *testing.T) {
	c := load(t, "cluster={servers: 1, placement: mixed}")
	p, err := Plan(c, []workload.Param{{Name: "w", Shape: []int{4 << 20}}}, 4, Link{Rate: 25e6})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Windows); got != "[65536 32768 32768 32768]" {
		t.Errorf("windows %s", got)
	}
	if n := len(p.OfServer(0)); n != 32 {
		t.Errorf("%d shards", n)
	}
}

func TestTheLinkOfAConfiguration(t *testing.T) {
	for _, c := range []struct {
		link  string
		hosts []string
		want  Link
	}{
		{"", []string{"a", "b"}, Link{}},
		{"200Mbit", []string{"a", "a"}, Link{}},
		{"200Mbit", []string{"a", "b"}, Link{Rate: 25e6, Given: true}},
		{"200Mbit,b=80Mbit", []string{"a", "b", "b"}, Link{Rate: 10e6, Given: true}},
		{"200Mbit,b=8Gbit", []string{"a", "b"}, Link{Rate: 25e6, Given: true}},
	} {
		var set []string
		if c.link != "" {
			set = append(set, "cluster.link="+c.link)
		}
		if got, err := LinkOf(load(t, set...), c.hosts); err != nil || got != c.want {
			t.Errorf("%q on %v: %+v, %v", c.link, c.hosts, got, err)
		}
	}
	if _, err := LinkOf(load(t, "cluster.link=200Mbit,c=1Gbit"), []string{"a", "b"}); err == nil ||
		!strings.Contains(err.Error(), "cluster.link") {
		t.Errorf("a host that is not there: %v", err)
	}
}

// A piece is never cut across shards, and shards of all servers together are the arena, whatever the link.
func TestEveryLinkCoversTheArena(t *testing.T) {
	for _, rate := range []float64{0, 1, 1e6, 25e6, 2e8, 3e8, 1e9, 1e10, 1e12} {
		p, err := Plan(load(t), paramsOf(300_001), 3, Link{Rate: rate})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, s := range p.Shards {
			if s.Lo != at {
				t.Fatalf("rate %g: shard %s begins at %d, not %d", rate, s.Name, s.Lo, at)
			}
			at = s.Hi
		}
		if at != p.Arena || at*shard.ElemBytes != 300_001*shard.ElemBytes {
			t.Errorf("rate %g: shards end at %d of %d", rate, at, p.Arena)
		}
	}
}
