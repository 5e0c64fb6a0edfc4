package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
)

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
			ts := stationtest.Transports("aaa")
			ts[c.sender] = &changing{Transport: ts[c.sender], tag: c.tag, at: c.at}
			_, errs := sidestest.Try(t, load(t, set...), len(ts), sidestest.Options{Transports: ts})
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
