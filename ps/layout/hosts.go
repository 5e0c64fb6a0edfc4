package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// HostMemory is the most that the ranks of one host take together, in bytes: what a batch system must give them there.
type HostMemory struct {
	Host       string
	Ranks      int
	Servers    int64 // versions, staged pushes, sums and optimizers
	Workers    int64 // parameters, gradients, records, and the layers on a batch
	Evaluation int64
	Control    int64 // control messages
	Snapshots  int64
	Replicas   int64
	Data       int64 // the set, once for each rank: every process reads it
	Programs   int64 // what is no buffer of ours
}

// Total is the sum; one that does not fit is negative.
func (m HostMemory) Total() (total int64) {
	for _, part := range m.parts() {
		if total += part; total < 0 {
			return total
		}
	}
	return total
}

func (m HostMemory) parts() []int64 {
	return []int64{m.Servers, m.Workers, m.Evaluation, m.Snapshots, m.Replicas, m.Control, m.Data, m.Programs}
}

// What a process takes beside buffers and data.
const (
	// programBytes is for the program, Go's runtime and its garbage, MPI, the library of products, and slabs of buffers that are
	// not full. Measured of a rank with a tiny model: 33 to 38 MiB under Open MPI with OpenBLAS. A fabric's library registers more.
	programBytes = 128 << 20
	// gpuBytes is an allowance for the host's side of a CUDA context and cuBLAS; it was not measured.
	gpuBytes = 1 << 30
	// rowBytes is for the numbers of a rank's rows and their order in an epoch.
	rowBytes = 8
)

// Hosts is the memory of each host, in the order in which their first ranks come.
func Hosts(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string, set *workload.Set) ([]HostMemory, error) {
	computes := len(roles.Computing())
	scratch := ScratchOf(c, set.Samples(), computes)
	each, err := memoryOfRanks(NewRoutes(c, p, roles, nil, Thresholds{}), scratch)
	if err != nil {
		return nil, err
	}
	snapshots, err := roomFor(c, p, roles, each)
	if err != nil {
		return nil, err
	}
	rows := set.Train.Rows()
	snapshots = min(snapshots, snapshotsOf(c, c.Length(FactsOf(p, roles, rows)), rows))
	replicas := replicaBytes(c, p, roles, hosts)
	held, read := set.Bytes(), set.ReadBytes()
	var all []HostMemory
	index := map[string]int{}
	for rank, m := range each {
		at, seen := index[hosts[rank]]
		if !seen {
			at = len(all)
			index[hosts[rank]] = at
			all = append(all, HostMemory{Host: hosts[rank], Replicas: replicas[hosts[rank]]})
		}
		h := &all[at]
		h.Ranks++
		h.Servers += m.Server
		h.Workers += m.Worker + m.Records + m.Layers
		h.Evaluation += m.Evaluation
		h.Control += m.Control
		h.Snapshots += snapshots * keptOf(c, p, roles, rank)
		h.Data += held
		h.Programs += programBytes + read + behindBytes(roles, rank)
		if roles.Leader(rank) >= 0 {
			h.Data += rowBytes * int64(rows)
			if c.Device.Kind == "cuda" {
				h.Programs += gpuBytes
			}
		}
	}
	return all, nil
}

// behindBytes is the most that waits for a rank inside MPI: control messages of those who talk to it.
func behindBytes(roles shard.Roles, rank int) int64 {
	return int64(fillBytes(roles, rank)) * comm.BacklogMax
}

// planHosts prints the memory of each host, and what it is for. Hosts that are alike stand in one line.
func planHosts(b *strings.Builder, all []HostMemory, set *workload.Set) {
	const shown = 8
	fmt.Fprintf(b, "\nMemory per host, at most, with the data set and the programs\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  host\ttogether\tservers\tworkers\tevaluation\tsnapshots\treplicas\tmessages\tdata set\tprograms")
	var order []HostMemory
	like := map[HostMemory]int{}
	for _, h := range all {
		key := h
		key.Host = ""
		if like[key]++; like[key] == 1 {
			order = append(order, h)
		}
	}
	for i, h := range order {
		if i == shown {
			fmt.Fprintf(t, "  ... and %d other kinds of hosts\n", len(order)-shown)
			break
		}
		key, name := h, h.Host
		key.Host = ""
		if n := like[key]; n > 1 {
			name = fmt.Sprintf("%s and %d more", h.Host, n-1)
		}
		fmt.Fprintf(t, "  %s\t%s", name, metrics.Size(h.Total()))
		for _, part := range h.parts() {
			fmt.Fprintf(t, "\t%s", metrics.Size(part))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a strings.Builder never fails
	most := slices.MaxFunc(all, func(a, b HostMemory) int { return cmp.Compare(a.Total(), b.Total()) })
	fmt.Fprintf(b, "  most: %s on %s; data set: %s for each rank (with run --local once), and the numbers of its rows; programs: Go, MPI and other libraries, and reading the data\n",
		metrics.Size(most.Total()), most.Host, metrics.Size(set.Bytes()))
}
