package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

// HostMemory is the most memory that the ranks of one host take together, in bytes: what a batch system must grant there.
type HostMemory struct {
	Host       string
	Ranks      int
	Servers    int64 // versions, staged pushes, sums and optimizers
	Workers    int64 // parameters, gradients, records, timelines, and the layers' values of a batch
	Evaluation int64
	Control    int64 // control messages
	Snapshots  int64
	Files      int64 // of checkpoints in writing, and replicas
	Rows       int64 // row numbers
	Data       int64 // the data set, once per rank: every process reads it
	Setup      int64 // by how much reading and dealing the data take more than all of training
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
	return []int64{m.Servers, m.Workers, m.Evaluation, m.Snapshots, m.Files, m.Control, m.Rows, m.Data, m.Setup, m.Programs}
}

// The memory of a process beside buffers and data.
const (
	// GarbageBytesMax is how far the heap of Go may grow beyond what is in use before the collector runs.
	GarbageBytesMax = 16 << 20
	// ProgramBytes is for the program, Go's runtime, MPI, the library of matrix products, slabs of buffers that are not full, and
	// garbage. A rank with a tiny model was measured to take at most 49 MiB beside what MPI shares between processes, under Open MPI with
	// OpenBLAS and oneDNN, 20 to 25 MiB of them libraries that the ranks of a host share; and 37 MiB with run --local 4 (23 MiB in a binary
	// without MPI and BLAS). GarbageBytesMax is the margin on 48 MiB. The library of a fabric registers more.
	ProgramBytes = 48<<20 + GarbageBytesMax
	// rankBytes is what each further rank adds to a process that runs several: stacks, tables, slabs. 1.1 MiB was measured.
	rankBytes = 2 << 20
	// gpuBytes is an allowance for the host's side of a CUDA context and cuBLAS; it was not measured.
	gpuBytes = 1 << 30
	// fileBytesMax is for the chunks of a file of a checkpoint in writing, if the file has at least longFileMin bytes.
	fileBytesMax = 8<<20 + 64<<10
	longFileMin  = 16 << 20
)

// Hosts returns the memory of each host, in the order of the hosts' first ranks.
func (l *Ledger) Hosts() (all []HostMemory) {
	index := map[string]int{}
	for rank, m := range l.Ranks {
		i, known := index[l.hosts[rank]]
		if !known {
			i = len(all)
			index[l.hosts[rank]] = i
			all = append(all, HostMemory{Host: l.hosts[rank]})
		}
		all[i].Ranks++
		all[i].add(m)
	}
	return all
}

// add adds the memory of a rank.
func (h *HostMemory) add(m Memory) {
	h.Servers += m.Server
	h.Workers += m.Worker + m.Records + m.Layers + m.Timeline
	h.Evaluation += m.Evaluation
	h.Control += m.Control + m.Queues
	h.Snapshots += m.Snapshots
	h.Files += m.Files
	h.Rows += m.Rows
	h.Data += m.Data
	h.Programs += m.Program + m.Device
	h.Setup += m.Total() - sum(m.Program, m.Data, m.lasting(), m.training())
}

// Process is the memory of one process that runs all ranks: run --local. They have one copy of the data, and deal their rows one after
// another.
func (l *Ledger) Process() int64 {
	lasting, training, dealing := int64(0), int64(0), int64(0)
	for _, m := range l.Ranks {
		lasting, training, dealing = sum(lasting, m.lasting()-m.Untouched), sum(training, m.training()), max(dealing, m.Dealing)
	}
	first := l.Ranks[0]
	return sum(first.Program, int64(len(l.Ranks)-1)*rankBytes, first.Data, greatest(first.Reading, sum(lasting, greatest(dealing, training))))
}

// mpiQueueBytes is the most that waits for a rank inside MPI: control messages of the ranks that send to it.
func mpiQueueBytes(roles shard.Roles, rank int) int64 {
	return int64(fillBytes(roles, rank)) * comm.BacklogMax
}

// fileBytes is the memory for files of checkpoints, by rank: chunks in writing, and with replicas its own files and those of the ranks
// that send theirs to it, each the complete version and the next one, and parcels.
func fileBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string) []int64 {
	all := make([]int64, len(hosts))
	if c.Checkpoint.Keep > 0 || c.Checkpoint.Periodic() {
		for rank := range all {
			if savedBytes(c, p, roles, rank) >= longFileMin {
				all[rank] += 2 * fileBytesMax // a server's and a worker's
			}
		}
	}
	if c.Checkpoint.Replica == 0 {
		return all
	}
	for rank, to := range Neighbors(nodesOf(hosts)) {
		n := 2 * savedBytes(c, p, roles, rank)
		all[rank] += n + 2*(ParcelHead+ParcelMax)
		if to >= 0 {
			all[to] += n + ParcelHead + ParcelMax
			all[0] += ParcelHead + ParcelMax // it may send its manifest to every host
		}
	}
	return all
}

// planHosts prints the memory of each host by purpose. Hosts that are alike share a line.
func planHosts(b *strings.Builder, l *Ledger, set *dataset.Set) {
	const shown = 8
	all := l.Hosts()
	fmt.Fprintf(b, "\nMemory per host, at most\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  host\ttogether\tservers\tworkers\tevaluation\tsnapshots\tfiles\tmessages\trows\tdata set\tset-up\tprograms")
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
	fmt.Fprintf(b, "  most: %s on %s; one process of run --local %d: %s\n", metrics.Size(fullest.Total()), fullest.Host,
		len(l.Ranks), metrics.Size(l.Process()))
	b.WriteString(metrics.Wrap(fmt.Sprintf("  rows: their numbers; data set: %s for each rank, with run --local once; "+
		"set-up: more than training takes, while data are read and dealt; programs: Go, MPI and other libraries",
		metrics.Size(set.Bytes())), metrics.TextWidth, 2) + "\n")
}
