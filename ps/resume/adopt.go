package resume

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"fluentps/comm/shm"
	"fluentps/ps/checkpoint"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/replica"
)

// Going on from the replicas of a checkpoint (ps/replica). They are those of one start, whose name stands in the run folder:
// what another start of the run left on other hosts is older than what the run folder has, or of another course of it.

// hostReplica is what a host has of a start.
type hostReplica struct {
	Start string
	checkpoint.Replica
}

// move is a file that one host has and another needs, by the first ranks of the two.
type move struct {
	Name     string
	Bytes    int64
	From, To int
}

// adoption is what rank 0 decides: the manifest is nil where there is nothing to adopt.
type adoption struct {
	Start    string
	Version  int64
	Manifest *checkpoint.Manifest
	Moves    []move
}

// adopt reads the newest checkpoint of the run from the memory of the hosts, if they have all of it, and the run folder has
// none that is newer. Files come to the hosts that need them from those that have them.
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
	if err := r.station.Transport.Barrier(); err != nil { // the ranks of a host read what its first one got
		return nil, err
	}
	own, bar := checkpoint.OpenReplicas(memory, a.Start) // on every host: another user may have made the folder there meanwhile
	from, problem, err := r.readFiles(dir, a.Manifest, bar)
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
	return from, r.goOn(from, nil)
}

// choose takes the newest version of which all files are on some host.
func (r *Search) choose(starts []string, all [][]hostReplica) adoption {
	if _, _, one := OneCheckpoint(r.o.Resume); one { // and no other
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
			if a, whole := r.gatherUp(start, v, all); whole {
				if r.newerInFolder(a.Manifest) {
					return adoption{}
				}
				return a
			}
		}
	}
	return adoption{}
}

// newerInFolder says whether the run folder has a checkpoint after that one. Two have the same number where the job died
// before the first of them was in the folder, too: the next start gives the number again.
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

// gatherUp says where the files of a version are, and which of them are to move: each host needs those that its ranks read.
func (r *Search) gatherUp(start string, version int64, all [][]hostReplica) (a adoption, whole bool) {
	a = adoption{Start: start, Version: version}
	has := map[int]map[string]int64{} // by first rank of a host
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

// reads says whether a rank reads a file of a checkpoint: its own, or, where there were other servers or workers, any.
func (r *Search) reads(rank int, m *checkpoint.Manifest, name string) bool {
	server, worker := r.station.Roles.Server(rank), r.station.Roles.Worker(rank)
	if m.Servers != len(r.station.Roles.Servers) || m.Workers != len(r.station.Roles.Workers) {
		return server >= 0 || worker >= 0
	}
	return server >= 0 && name == checkpoint.ServerFile(server) || worker >= 0 && name == checkpoint.WorkerFile(worker)
}

// move takes part in the way of a file from one host to another. What is wrong with it then its checksum tells.
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

// openMoved opens a file of a replica, or makes it anew.
func openMoved(memory string, a *adoption, name string, anew bool) (*os.File, error) {
	if !anew {
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

// moveMax is how much of a file is on its way at once.
const moveMax = 4 << 20
