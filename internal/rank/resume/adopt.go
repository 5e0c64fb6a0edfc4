package resume

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"fluentps/internal/comm/shm"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/replica"
)

// Resuming from the replicas of a checkpoint (internal/rank/replica). All replicas are of one start, whose name is in the run folder.
// Replicas that another start of the run left are older than the checkpoints of the run folder, or belong to a discarded course of the
// run.

// hostReplica is one version of a start on a host.
type hostReplica struct {
	Start string
	checkpoint.Replica
}

// move is the transfer of a file from one host to another. From and To are the first ranks of the two hosts.
type move struct {
	Name     string
	Bytes    int64
	From, To int
}

// adoption is the decision of rank 0. The manifest is nil if the run does not resume from replicas.
type adoption struct {
	Start    string
	Version  int64
	Manifest *checkpoint.Manifest
	Moves    []move
}

// adopt reads the newest checkpoint of the run from the memory of the hosts, if the hosts have all its files and the run folder has no
// newer checkpoint. Hosts first send the files to the hosts that need them. adopt returns nil if there is nothing to resume from.
func (r *Search) adopt() (*Origin, error) {
	if r.station.Config.Checkpoint.Replica == 0 || r.Dir == "" {
		return nil, nil
	}
	memory := cmp.Or(r.o.Memory, layout.MemoryRoot)
	var starts []string
	if r.station.Me == 0 {
		starts = replica.Starts(r.Dir)
		r.Earlier = slices.Clone(starts)
	}
	if err := link.Spread(r.station.Net, &starts); err != nil || len(starts) == 0 {
		return nil, err
	}
	var mine []hostReplica
	if replica.FirstOfHost(r.station) {
		for _, start := range starts {
			for _, v := range checkpoint.ListReplicas(memory, start) {
				mine = append(mine, hostReplica{start, v})
			}
		}
	}
	all, err := link.Gather(r.station.Net, mine)
	if err != nil {
		return nil, err
	}
	var a adoption
	if r.station.Me == 0 {
		a = r.choose(starts, all)
	}
	if err := link.Spread(r.station.Net, &a); err != nil || a.Manifest == nil {
		return nil, err
	}
	if err := r.fits(a.Manifest); err != nil {
		return nil, err
	}
	dir := checkpoint.ReplicaVersion(checkpoint.ReplicaDir(memory, a.Start), a.Version)
	for _, m := range a.Moves {
		if err := r.move(memory, &a, m); err != nil {
			return nil, err
		}
	}
	if err := r.station.Transport.Barrier(); err != nil { // all ranks of a host read the files that its first rank received
		return nil, err
	}
	own, blocked := checkpoint.OpenReplicas(memory, a.Start) // on every host, because another user may have made the folder meanwhile
	from, problem, err := r.readFiles(dir, a.Manifest, blocked)
	if own != nil {
		_ = own.Close()
	}
	if err != nil {
		return nil, err
	}
	if problem != "" {
		if r.station.Me == 0 {
			r.station.Log.Warn("resume: the replicas in memory cannot be used: " + problem)
		}
		return nil, nil
	}
	r.Adopted = a.Start
	return from, r.finish(from, nil)
}

// choose returns the newest version whose files all exist on some host.
func (r *Search) choose(starts []string, all [][]hostReplica) adoption {
	if _, _, one := OneCheckpoint(r.o.Resume); one { // the user asked for this checkpoint and no other
		return adoption{}
	}
	for _, start := range starts {
		var versions []int64
		for _, of := range all {
			for _, h := range of {
				if h.Start == start && h.Manifest != nil {
					versions = append(versions, h.Version)
				}
			}
		}
		slices.Sort(versions)
		for _, v := range slices.Backward(slices.Compact(versions)) {
			if a, complete := r.planMoves(start, v, all); complete {
				if r.newerInFolder(a.Manifest) {
					return adoption{}
				}
				return a
			}
		}
	}
	return adoption{}
}

// newerInFolder reports whether the run folder has a newer checkpoint than m. Two checkpoints may have the same number: if the job dies
// before a checkpoint is in the folder, the next start uses its number again.
func (r *Search) newerInFolder(m *checkpoint.Manifest) bool {
	if len(r.Candidates) == 0 {
		return false
	}
	newest := filepath.Base(r.Candidates[0])
	if own := fmt.Sprintf("%012d", m.Number); newest != own {
		return newest > own
	}
	there, err := checkpoint.Open(r.Candidates[0])
	return err == nil && there.Samples > m.Samples
}

// planMoves finds the files of a version, and plans the moves: each host needs the files that its ranks read. complete is false if a file
// exists on no host.
func (r *Search) planMoves(start string, version int64, all [][]hostReplica) (a adoption, complete bool) {
	a = adoption{Start: start, Version: version}
	has := map[int]map[string]int64{} // bytes by name, by the first rank of a host
	for rank, of := range all {
		for _, h := range of {
			if h.Start == start && h.Version == version {
				has[rank] = h.Files
				a.Manifest = cmp.Or(a.Manifest, h.Manifest)
			}
		}
	}
	from := map[string]int{}
	for _, e := range a.Manifest.Files {
		i := slices.IndexFunc(r.station.NodeOf, func(node int) bool { n, there := has[node][e.Name]; return there && n == e.Bytes })
		if i < 0 {
			return a, false
		}
		from[e.Name] = r.station.NodeOf[i]
	}
	for rank, node := range r.station.NodeOf {
		if has[node] == nil {
			has[node] = map[string]int64{}
		}
		for _, e := range a.Manifest.Files {
			if n, there := has[node][e.Name]; there && n == e.Bytes || !r.reads(rank, a.Manifest, e.Name) {
				continue
			}
			a.Moves = append(a.Moves, move{Name: e.Name, Bytes: e.Bytes, From: from[e.Name], To: node})
			has[node][e.Name] = e.Bytes
		}
	}
	return a, true
}

// reads reports whether a rank reads a file of a checkpoint: its own file, or any file if the number of servers or workers has changed.
func (r *Search) reads(rank int, m *checkpoint.Manifest, name string) bool {
	server, worker := r.station.Roles.Server(rank), r.station.Roles.Worker(rank)
	if m.Servers != len(r.station.Roles.Servers) || m.Workers != len(r.station.Roles.Workers) {
		return server >= 0 || worker >= 0
	}
	return server >= 0 && name == checkpoint.ServerFile(server) || worker >= 0 && name == checkpoint.WorkerFile(worker)
}

// move sends or receives a file, if this rank is one end of the move. It only logs an error of the file: the checksum will find it.
func (r *Search) move(memory string, a *adoption, m move) error {
	if r.station.Me != m.From && r.station.Me != m.To {
		return nil
	}
	f, failed := openMoved(memory, a, filepath.Base(m.Name), r.station.Me == m.To)
	if failed == nil && r.station.Me == m.To {
		failed = shm.Reserve(f, m.Bytes, replica.SpareMemory(r.station))
	}
	for at := int64(0); at < m.Bytes; at += moveMax {
		b := make([]byte, min(moveMax, m.Bytes-at))
		if r.station.Me == m.From {
			if failed == nil {
				_, failed = f.ReadAt(b, at)
			}
			if err := r.station.Net.SendBlob(m.To, b); err != nil {
				return err
			}
			continue
		}
		b, err := r.station.Net.RecvBlob(m.From)
		if err != nil {
			return err
		}
		if failed == nil {
			_, failed = f.WriteAt(b, at)
		}
	}
	if f != nil {
		failed = errors.Join(failed, f.Close())
	}
	if failed != nil {
		r.station.Log.Warn("resume: replica of " + m.Name + ": " + failed.Error())
	}
	return nil
}

// openMoved opens a file of a replica for reading. With create, it makes the file.
func openMoved(memory string, a *adoption, name string, create bool) (*os.File, error) {
	if !create {
		in, err := checkpoint.OpenReplicas(memory, a.Start)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return in.Open(filepath.Join(strconv.FormatInt(a.Version, 10), name))
	}
	in, err := checkpoint.TakeReplicas(memory, a.Start)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return checkpoint.MakeReplica(in, a.Version, name)
}

// moveMax is the size of the messages that carry a file, in bytes.
const moveMax = 4 << 20
