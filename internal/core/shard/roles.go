package shard

import (
	"fmt"
	"sort"
)

// Roles says which rank serves and which works. Rank 0 is always server 0: it owns the lead shard, counts the budget
// and writes the run folder.
type Roles struct {
	Servers []int   // rank of each server
	Workers []int   // rank of each worker, ascending
	Teams   [][]int // per worker: the ranks that compute for it, itself first, ascending; nil: no worker has members
}

// Placements lists the values of cluster.placement.
func Placements() []string { return []string{"spread", "pack", "colocate", "mixed"} }

// Assign gives each rank its roles. hosts names the host of each rank. With spread the servers lie on as many hosts as
// there are. With pack they lie on the first ranks. With colocate every rank works, and the servers, spread over the
// hosts, serve too. With mixed the servers serve alone, and all other ranks work and serve too (MixedShares). It fails
// where there are too few ranks, and on an unknown placement.
func Assign(hosts []string, servers int, placement string) (Roles, error) {
	world := len(hosts)
	var r Roles
	switch placement {
	case "mixed":
		return assignMixed(hosts, servers)
	case "spread", "colocate":
		r.Servers = spread(hosts, min(servers, world))
	case "pack":
		for rank := range min(servers, world) {
			r.Servers = append(r.Servers, rank)
		}
	default:
		return r, fmt.Errorf("cluster.placement is %q; it is one of %v", placement, Placements())
	}
	if placement == "colocate" {
		if world < servers {
			return r, fmt.Errorf("%s, but cluster.servers is %d and every server needs a rank of its own: start at least %d "+
				"ranks or lower cluster.servers", ranks(world), servers, servers)
		}
		for rank := range world {
			r.Workers = append(r.Workers, rank)
		}
		return r, nil
	}
	if world < servers+1 {
		return r, fmt.Errorf("%s, but cluster.servers is %d and at least 1 worker is needed: %d + 1 = %d ranks; start "+
			"more ranks (mpirun -n %d), lower cluster.servers, or use cluster.placement: colocate",
			ranks(world), servers, servers, servers+1, servers+1)
	}
	serves := make([]bool, world)
	for _, rank := range r.Servers {
		serves[rank] = true
	}
	for rank := range world {
		if !serves[rank] {
			r.Workers = append(r.Workers, rank)
		}
	}
	return r, nil
}

// AllWork makes every rank a worker, and no rank a server.
func AllWork(world int) Roles {
	var r Roles
	for rank := range world {
		r.Workers = append(r.Workers, rank)
	}
	return r
}

func ranks(n int) string {
	if n == 1 {
		return "the world has 1 rank"
	}
	return fmt.Sprintf("the world has %d ranks", n)
}

// spread takes the first rank of each host, then the second of each, until it has n. Hosts are in the order of their
// first ranks, so rank 0 is always the first.
func spread(hosts []string, n int) []int {
	turn := make([]int, len(hosts)) // per rank: the number of ranks of the same host before it
	seen := map[string]int{}
	for rank, host := range hosts {
		turn[rank] = seen[host]
		seen[host]++
	}
	order := make([]int, len(hosts))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return turn[order[a]] < turn[order[b]] })
	return order[:n]
}

// Server is the rank's index among the servers, or -1.
func (r Roles) Server(rank int) int { return indexOf(r.Servers, rank) }

// Worker is the rank's index among the workers, or -1.
func (r Roles) Worker(rank int) int { return indexOf(r.Workers, rank) }

func indexOf(list []int, x int) int {
	for i, y := range list {
		if y == x {
			return i
		}
	}
	return -1
}

// Name is the rank's role for people: s0, w3, or s0+w0 where a rank is both; w3.1 is the first member of w3.
func (r Roles) Name(rank int) string {
	s, w := r.Server(rank), r.Worker(rank)
	if lead := r.Leader(rank); w < 0 && lead >= 0 {
		name := fmt.Sprintf("w%d.%d", lead, indexOf(r.Team(lead), rank))
		if s >= 0 {
			name = fmt.Sprintf("s%d+%s", s, name)
		}
		return name
	}
	switch {
	case s >= 0 && w >= 0:
		return fmt.Sprintf("s%d+w%d", s, w)
	case s >= 0:
		return fmt.Sprintf("s%d", s)
	default:
		return fmt.Sprintf("w%d", w)
	}
}

// Share deals total samples to n workers as evenly as possible: the first total mod n workers get one more.
func Share(total, n int) []int {
	share := make([]int, n)
	for i := range share {
		share[i] = total / n
		if i < total%n {
			share[i]++
		}
	}
	return share
}
