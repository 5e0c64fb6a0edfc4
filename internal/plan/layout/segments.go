package layout

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
)

// segmentAlign keeps memory that different ranks write out of one cache line.
const segmentAlign = 64

func aligned(n int) int { return (n + segmentAlign - 1) / segmentAlign * segmentAlign }

// Segments are the places in the window that the ranks of a host share: a server's segment holds the versions of its
// shards, a worker's its gradient arena. A rank that is both has the arena behind the versions.
type Segments struct {
	routes      *Routes
	versionsAt  []int // by shard: start of its versions, in bytes
	versionsEnd []int // by server: end of all its versions, in bytes
}

// Segments computes the places.
func (t *Routes) Segments() *Segments {
	g := &Segments{routes: t, versionsAt: make([]int, len(t.plan.Shards)), versionsEnd: make([]int, t.plan.Servers)}
	for i := range t.plan.Shards {
		if sh := &t.plan.Shards[i]; t.shared[i] {
			g.versionsAt[i] = g.versionsEnd[sh.Server]
			g.versionsEnd[sh.Server] += Versions(t.cfg, len(t.roles.Workers)) * aligned(int(sh.Bytes()))
		}
	}
	return g
}

// Bytes is the size of a rank's segment: its versions if a worker is on its host, and its gradients if a server of shared
// shards is. onHost says which ranks are on the same host.
func (g *Segments) Bytes(rank int, onHost func(rank int) bool) (bytes int) {
	roles := &g.routes.roles
	if m := roles.Server(rank); m >= 0 && slices.ContainsFunc(roles.Workers, onHost) {
		bytes = g.versionsEnd[m]
	}
	if roles.Worker(rank) < 0 {
		return bytes
	}
	for m, server := range roles.Servers {
		if g.versionsEnd[m] > 0 && onHost(server) {
			return bytes + g.routes.plan.Arena*shard.ElemBytes
		}
	}
	return bytes
}

// Version is the place of a shard's buffer in its server's segment, in bytes.
func (g *Segments) Version(sh *shard.Shard, buf int32) (off, n int) {
	n = int(sh.Bytes())
	return g.versionsAt[sh.ID] + int(buf)*aligned(n), n
}

// Gradients is the place of the gradient arena in the segment of a worker's rank, in bytes.
func (g *Segments) Gradients(rank int) (off, n int) {
	if m := g.routes.roles.Server(rank); m >= 0 {
		off = g.versionsEnd[m] // a rank is on its own host
	}
	return off, g.routes.plan.Arena * shard.ElemBytes
}

// planShared prints which ranks share memory, and how much.
func planShared(b *strings.Builder, t *Routes, hosts []string) {
	if !slices.Contains(t.shared, true) {
		return
	}
	segments := t.Segments()
	var order []string
	bytes, ranks := map[string]int{}, map[string][]string{}
	for rank, host := range hosts {
		n := segments.Bytes(rank, func(other int) bool { return hosts[other] == host })
		if n == 0 {
			continue
		}
		if ranks[host] == nil {
			order = append(order, host)
		}
		bytes[host] += n
		ranks[host] = append(ranks[host], t.roles.Name(rank))
	}
	if order == nil {
		return
	}
	fmt.Fprintf(b, "\nShared memory, if there is enough: %d of %s, those of at least %s; for these, servers and "+
		"workers of one host send only headers\n",
		countTrue(t.shared), metrics.Count(len(t.shared), "shard"), metrics.Size(SharedMin))
	for _, host := range order {
		fmt.Fprintf(b, "  %s  %s of /dev/shm: %s\n", host, metrics.Size(int64(bytes[host])), strings.Join(ranks[host], ", "))
	}
}
