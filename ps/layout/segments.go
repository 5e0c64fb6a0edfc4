package layout

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// segmentAlign keeps what different ranks write out of one cache line.
const segmentAlign = 64

func aligned(n int) int { return (n + segmentAlign - 1) / segmentAlign * segmentAlign }

// Segments are the places in the window that the ranks of a host share: a server's segment has the versions of its shards, a
// worker's its gradient arena, and that of a rank that is both the arena behind the versions.
type Segments struct {
	t   *Routes
	at  []int // by shard: where its versions begin, in bytes
	end []int // by server: where all of them end
}

// Segments lays them out.
func (t *Routes) Segments() *Segments {
	g := &Segments{t: t, at: make([]int, len(t.plan.Shards)), end: make([]int, t.plan.Servers)}
	for i := range t.plan.Shards {
		if sh := &t.plan.Shards[i]; t.shared[i] {
			g.at[i] = g.end[sh.Server]
			g.end[sh.Server] += Versions(t.cfg, len(t.roles.Workers)) * aligned(int(sh.Bytes()))
		}
	}
	return g
}

// Bytes is what a rank puts into the window, given who is on its host: its versions where a worker is, and its gradients
// where a server of such shards is.
func (g *Segments) Bytes(rank int, here func(rank int) bool) (bytes int) {
	roles := &g.t.roles
	if m := roles.Server(rank); m >= 0 && slices.ContainsFunc(roles.Workers, here) {
		bytes = g.end[m]
	}
	if roles.Worker(rank) < 0 {
		return bytes
	}
	for m, server := range roles.Servers {
		if g.end[m] > 0 && here(server) {
			return bytes + g.t.plan.Arena*shard.ElemBytes
		}
	}
	return bytes
}

// Version is where a buffer of a shard lies in its server's segment, in bytes.
func (g *Segments) Version(sh *shard.Shard, buf int32) (off, n int) {
	n = int(sh.Bytes())
	return g.at[sh.ID] + int(buf)*aligned(n), n
}

// Gradients is where the arena of a rank's worker lies in its segment, in bytes.
func (g *Segments) Gradients(rank int) (off, n int) {
	if m := g.t.roles.Server(rank); m >= 0 {
		off = g.end[m] // a rank is on its own host
	}
	return off, g.t.plan.Arena * shard.ElemBytes
}

// planShared says which ranks share memory, and how much.
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
	fmt.Fprintf(b, "\nShared memory, where it is enough: %d of %s, those of at least %s; of what is above, servers and workers of one host then only send the headers\n",
		trues(t.shared), metrics.Count(len(t.shared), "shard"), metrics.Size(SharedMin))
	for _, host := range order {
		fmt.Fprintf(b, "  %s  %s of /dev/shm: %s\n", host, metrics.Size(int64(bytes[host])), strings.Join(ranks[host], ", "))
	}
}
