package shard

import "slices"

// ByNode makes one worker of all workers on a host, as cluster.hierarchy: node asks. The first of them leads, and is
// the only one that the servers know; the others are its members. hosts names the host of each rank. Source:
// straggler-and-contention 7.2, after MXNet's device aggregation [A] and the node-communicator recipe [T].
func (r Roles) ByNode(hosts []string) Roles {
	lead := map[string]int{} // the index of a host's leader
	grouped := Roles{Servers: r.Servers}
	for _, rank := range r.Workers {
		i, led := lead[hosts[rank]]
		if !led {
			i = len(grouped.Workers)
			lead[hosts[rank]] = i
			grouped.Workers = append(grouped.Workers, rank)
			grouped.Teams = append(grouped.Teams, nil)
		}
		grouped.Teams[i] = append(grouped.Teams[i], rank)
	}
	return grouped
}

// Team lists the ranks that compute for a worker, itself first; a worker without members is a team of one.
func (r Roles) Team(worker int) []int {
	if r.Teams == nil {
		return r.Workers[worker : worker+1]
	}
	return r.Teams[worker]
}

// Computing lists all ranks that compute gradients, workers and their members, ascending. Samples are dealt to them.
func (r Roles) Computing() []int {
	all := make([]int, 0, r.Computes())
	for w := range r.Workers {
		all = append(all, r.Team(w)...)
	}
	slices.Sort(all)
	return all
}

// Computes is the number of ranks that compute gradients.
func (r Roles) Computes() int {
	if r.Teams == nil {
		return len(r.Workers)
	}
	n := 0
	for _, team := range r.Teams {
		n += len(team)
	}
	return n
}

// Leader is the index of the worker that the rank computes for, or -1. It is the rank's own index where the rank leads.
func (r Roles) Leader(rank int) int {
	for w := range r.Workers {
		if slices.Contains(r.Team(w), rank) {
			return w
		}
	}
	return -1
}
