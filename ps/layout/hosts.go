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

// HostMemory is the most memory that the ranks of one host take together, in bytes: what a batch system must grant there.
type HostMemory struct {
	Host       string
	Ranks      int
	Servers    int64 // versions, staged pushes, sums and optimizers
	Workers    int64 // parameters, gradients, records, and the layers' values of a batch
	Evaluation int64
	Control    int64 // control messages
	Snapshots  int64
	Replicas   int64
	Data       int64 // the data set, once per rank: every process reads it
	Programs   int64 // programs, libraries and all other memory that is no buffer of ours
}

// Total is the sum; negative if it overflows.
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

// The memory of a process beside buffers and data.
const (
	// programBytes is for the program, Go's runtime and its garbage, MPI, the library of matrix products, and slabs of
	// buffers that are not full. A rank with a tiny model was measured to take 33 to 38 MiB under Open MPI with OpenBLAS.
	// The library of a fabric registers more.
	programBytes = 128 << 20
	// gpuBytes is an allowance for the host's side of a CUDA context and cuBLAS; it was not measured.
	gpuBytes = 1 << 30
	// rowBytes is for the index of one of a rank's rows, and its place in the order of an epoch.
	rowBytes = 8
)

// Hosts returns the memory of each host, in the order of the hosts' first ranks.
func Hosts(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string, set *workload.Set) ([]HostMemory, error) {
	computes := roles.Computes()
	scratch := ScratchOf(c, set.Samples(), computes)
	ranks, err := memoryOfRanks(NewRoutes(c, p, roles, nil, Thresholds{}), scratch)
	if err != nil {
		return nil, err
	}
	snapshots, err := snapshotsThatFit(c, p, roles, ranks)
	if err != nil {
		return nil, err
	}
	rows := set.Train.Rows()
	snapshots = min(snapshots, snapshotsOf(c, c.Length(FactsOf(p, roles, rows)), rows))
	replicas := replicaBytes(c, p, roles, hosts)
	dataBytes, readBytes := set.Bytes(), set.ReadBytes()
	var all []HostMemory
	index := map[string]int{}
	for rank, m := range ranks {
		i, known := index[hosts[rank]]
		if !known {
			i = len(all)
			index[hosts[rank]] = i
			all = append(all, HostMemory{Host: hosts[rank], Replicas: replicas[hosts[rank]]})
		}
		h := &all[i]
		h.Ranks++
		h.Servers += m.Server
		h.Workers += m.Worker + m.Records + m.Layers
		h.Evaluation += m.Evaluation
		h.Control += m.Control
		h.Snapshots += snapshots * snapshotBytes(c, p, roles, rank)
		h.Data += dataBytes
		h.Programs += programBytes + readBytes + mpiQueueBytes(roles, rank)
		if roles.Leader(rank) >= 0 {
			h.Data += rowBytes * int64(rows)
			if c.Device.Kind == "cuda" {
				h.Programs += gpuBytes
			}
		}
	}
	return all, nil
}

// mpiQueueBytes is the most that waits for a rank inside MPI: control messages of the ranks that send to it.
func mpiQueueBytes(roles shard.Roles, rank int) int64 {
	return int64(fillBytes(roles, rank)) * comm.BacklogMax
}

// planHosts prints the memory of each host by purpose. Hosts that are alike share a line.
func planHosts(b *strings.Builder, all []HostMemory, set *workload.Set) {
	const shown = 8
	fmt.Fprintf(b, "\nMemory per host, at most, with the data set and the programs\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  host\ttogether\tservers\tworkers\tevaluation\tsnapshots\treplicas\tmessages\tdata set\tprograms")
	var order []HostMemory
	count := map[HostMemory]int{}
	for _, h := range all {
		key := h
		key.Host = ""
		if count[key]++; count[key] == 1 {
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
		if n := count[key]; n > 1 {
			name = fmt.Sprintf("%s and %d more", h.Host, n-1)
		}
		fmt.Fprintf(t, "  %s\t%s", name, metrics.Size(h.Total()))
		for _, part := range h.parts() {
			fmt.Fprintf(t, "\t%s", metrics.Size(part))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a strings.Builder never fails
	fullest := slices.MaxFunc(all, func(a, b HostMemory) int { return cmp.Compare(a.Total(), b.Total()) })
	fmt.Fprintf(b, "  most: %s on %s; data set: %s for each rank (with run --local once), and the numbers of its rows; programs: Go, MPI and other libraries, and reading the data\n",
		metrics.Size(fullest.Total()), fullest.Host, metrics.Size(set.Bytes()))
}
