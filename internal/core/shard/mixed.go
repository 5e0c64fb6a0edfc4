package shard

import "fmt"

// Mixed placement is BytePS's (OSDI 2020): k ranks only serve, and each of the n workers serves too, a smaller part, so
// that all network cards carry the same load. Of a model of M bytes
//
//	a dedicated server holds   2(n-1) / (n^2 + kn - 2k) * M
//	a co-located one           (n-k)  / (n^2 + kn - 2k) * M
//
// as a summary of the paper has it [T]. The part of all dedicated servers together, 2k(n-1) / (n(n+k) - 2k), is that of
// the released code [A]. The parts x and y follow from kx + ny = M and from equal loads of the cards. A dedicated rank
// sends x to each of n workers. A worker sends the rest of its gradient, M - y, and its part of the parameters to n-1
// others. So nx = M - y + (n-1)y. Ranks stand for machines with one card each.

// MixedShares is the share of each server, dedicated servers first, as whole numbers relative to their sum.
func MixedShares(dedicated, workers int) []int {
	shares := make([]int, dedicated+workers)
	for m := range shares {
		if m < dedicated {
			shares[m] = 2 * (workers - 1)
		} else {
			shares[m] = workers - dedicated
		}
	}
	return shares
}

// Serving is the number of ranks that serve beside so many workers, where cluster.servers says servers.
func Serving(servers, workers int, placement string) int {
	if placement == "mixed" {
		return servers + workers
	}
	return servers
}

// assignMixed makes dedicated ranks of the world servers only, spread over the hosts, and gives all others both roles.
func assignMixed(hosts []string, dedicated int) (Roles, error) {
	workers := len(hosts) - dedicated
	if workers < 2 || dedicated > workers {
		return Roles{}, fmt.Errorf("%s, but with cluster.placement: mixed cluster.servers (%d) ranks serve alone and at "+
			"least as many others, and at least 2, work and serve too: start at least %d ranks or lower cluster.servers",
			ranks(len(hosts)), dedicated, dedicated+max(2, dedicated))
	}
	r := Roles{Servers: spread(hosts, dedicated)}
	for rank := range hosts {
		if indexOf(r.Servers[:dedicated], rank) < 0 {
			r.Workers = append(r.Workers, rank)
		}
	}
	r.Servers = append(r.Servers, r.Workers...)
	return r, nil
}

// cutShares gives every server its share of every group, in as many rounds as a server has parts of it. The first element always
// belongs to server 0, which leads.
func cutShares(p *Plan, groups []groupOf, o Options) {
	total := 0
	for _, s := range o.Shares {
		total += s
	}
	for i := range groups {
		g := &groups[i]
		parts := o.partsOf(g)
		whole := int64(total) * int64(parts)
		lo, sum := g.lo, int64(0)
		for k := range parts * len(o.Shares) {
			m := k % len(o.Shares)
			sum += int64(o.Shares[m])
			hi := g.lo + int((int64(g.hi-g.lo)*sum*2+whole)/(2*whole))
			hi = max(hi, g.lo+1)
			p.add(g, fmt.Sprint(k), m, lo, hi)
			lo = hi
		}
	}
}
