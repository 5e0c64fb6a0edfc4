package runtime

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"fluentps/comm/shm"
	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
	"fluentps/ps/layout"
	"fluentps/ps/link"
)

// Replicas of a checkpoint while training goes on (checkpoint.replica: 1). Who writes a file into the run folder writes it
// into the memory of its host, too, and sends it to a rank of the next host, which writes it there: so all files outlive any
// one host, and, on one host, all processes. When rank 0 has heard of all of them it sends the manifest to every host;
// there the version before goes. replicated.go reads them.

// replicas are those of one start, as one rank sees them.
type replicas struct {
	r       *rank
	dir     string
	at      *durable.Folder       // the same, open
	own     *checkpoint.Replicas  // of the first rank of a host
	before  string                // the start that the run went on from; it goes with the first version that is complete
	spare   int64                 // bytes that stay free in the host's memory file system
	next    int                   // rank that keeps what this one writes; -1: there is one host
	written [wire.FileKinds]int64 // by kind: files so far; a file's number is its version
	out     map[int]*outgoing     // by rank
	in      []*incoming
	posted  int // receives
	closing bool
}

// firstOfHost says whether this rank acts for its host.
func (r *rank) firstOfHost() bool { return r.nodeOf[r.me] == r.me }

// spareMemory is what replicas leave free on this host, for what MPI maps there.
func (r *rank) spareMemory() int64 {
	ranks := 0
	for _, node := range r.nodeOf {
		if node == r.nodeOf[r.me] {
			ranks++
		}
	}
	return int64(ranks) * shm.Spare
}

// openReplicas begins those of this start. Where a host has no place for them, the run goes on without.
func (r *rank) openReplicas() error {
	c := &r.cfg.Checkpoint
	if c.Replica == 0 || !c.Periodic() || r.dir == "" {
		return nil
	}
	var said struct {
		Start, Before string
		Over          []string // starts of which nothing is needed any more
	}
	if r.me == 0 {
		said.Start, said.Before = newStart(), r.adopted
		said.Over = slices.DeleteFunc(r.earlier, func(start string) bool { return start == r.adopted })
	}
	if err := link.Spread(r.net, &said); err != nil {
		return err
	}
	memory := cmp.Or(r.o.Memory, layout.MemoryRoot)
	q := &replicas{r: r, dir: checkpoint.ReplicaDir(memory, said.Start), before: said.Before, spare: r.spareMemory(), next: -1, out: map[int]*outgoing{}}
	r.replicas = q
	problem := ""
	if r.firstOfHost() {
		if err := q.hold(memory, said.Start, said.Over); err != nil {
			problem = err.Error()
		}
	}
	all, err := link.Gather(r.net, problem)
	if err != nil {
		return err
	}
	if r.me == 0 {
		if err := r.noteStart(said.Start, said.Before); err != nil {
			all[0] = err.Error()
		}
		problem = r.net.Verdict(all)
	}
	if err := link.Spread(r.net, &problem); err != nil {
		return err
	}
	if problem != "" {
		if r.me == 0 {
			r.log.Warn("no replicas of checkpoints: " + problem)
		}
		r.replicas, q.before = nil, "" // what was before may be needed once more
		return q.release(true)
	}
	return q.open(memory, said.Start)
}

// hold makes this host ready for a start.
func (q *replicas) hold(memory, start string, over []string) error {
	err := checkpoint.SweepReplicas(memory, q.before, time.Now())
	for _, old := range over {
		err = errors.Join(err, checkpoint.RemoveReplicas(memory, old))
	}
	if err == nil {
		q.own, err = checkpoint.HoldReplicas(memory, start)
	}
	return err
}

// open posts the receives from all who may send here.
func (q *replicas) open(memory, start string) error {
	r := q.r
	var err error
	if q.at, err = checkpoint.OpenReplicas(memory, start); err != nil {
		return err
	}
	next := layout.Neighbors(r.nodeOf)
	q.next = next[r.me]
	for from, to := range next {
		if to != r.me && (from != 0 || !r.firstOfHost() || r.me == 0) {
			continue
		}
		b, err := r.t.Alloc(layout.ParcelHead + layout.ParcelMax)
		if err != nil {
			return err
		}
		in := &incoming{q: q, from: from, b: b}
		q.in = append(q.in, in)
		in.post()
	}
	return nil
}

// take counts a file that is to be written; 0: there are no replicas.
func (q *replicas) take(kind wire.FileKind) int64 {
	if q == nil {
		return 0
	}
	q.r.saving.open++
	q.written[kind]++
	return q.written[kind]
}

// write writes a file into this host's memory; not on the goroutine that drives.
func (q *replicas) write(version int64, f wire.FileSaved, state any, vectors [][]float32) {
	if q == nil {
		return
	}
	of := checkpoint.MakeReplicaVersion(q.at, version)
	e, err := checkpoint.WriteReplica(of, fileName(f.Kind, f.Index), q.spare, state, vectors...)
	err = errors.Join(err, of.Close())
	q.r.t.Post(func() {
		f.Version, f.Place, f.Bytes, f.CRC32C = version, wire.InMemory, e.Bytes, e.CRC32C
		q.wrote(of.Path(fileName(f.Kind, f.Index)), f, err)
	})
}

// wrote tells rank 0 of a file in memory, and sends it to the next host.
func (q *replicas) wrote(path string, saved wire.FileSaved, err error) {
	r := q.r
	r.saving.open--
	var f *os.File
	if err == nil && q.next >= 0 {
		f, err = durable.Open(path)
	}
	if saved.Failed = err != nil; err != nil {
		r.noReplica(err)
	}
	r.saving.told++
	r.tellSaved(&saved)
	if f != nil {
		r.saving.told++ // by the rank that gets it
		q.to(q.next).put(parcel{version: saved.Version, kind: saved.Kind, index: saved.Index, length: saved.Bytes, f: f})
	}
}

func (r *rank) noReplica(err error) {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) { // the words around it are of checkpoints on disk
		text = path.Error()
	}
	if errors.Is(err, syscall.ENOSPC) {
		text += "; the memory of host " + r.o.Host + " has no room; plan says how much is needed, and checkpoint.replica: 0 does without"
	}
	r.log.Warn("no replica of this checkpoint: " + text)
}

// got is told that a file is there, or is not, and tells rank 0.
func (q *replicas) got(p *parcel, err error) {
	f := wire.FileSaved{Rank: int32(q.r.me), Kind: p.kind, Index: p.index, Place: wire.InNeighbor, Version: p.version}
	if p.kind == wire.ManifestFile {
		f.Place = wire.OnHost
		if err == nil {
			err = q.settled(p)
		}
	}
	if f.Failed = err != nil; err != nil {
		q.r.noReplica(err)
	}
	q.r.tellSaved(&f)
}

// settled ends a version on this host: it is complete, and those before it go, or it goes.
func (q *replicas) settled(p *parcel) error {
	if p.length == 0 {
		return q.own.Drop(p.version)
	}
	return errors.Join(q.own.Keep(p.version), q.forgetBefore())
}

// release is for the end: nothing is on its way any more.
func (q *replicas) release(remove bool) error {
	if q.at != nil && remove { // else somebody may still be writing
		_ = q.at.Close()
	}
	if q.own == nil {
		return nil
	}
	own := q.own
	q.own = nil
	var err error
	if remove {
		err = q.forgetBefore()
	}
	return errors.Join(err, own.Release(remove))
}

// forgetBefore removes what the start before left on this host.
func (q *replicas) forgetBefore() error {
	before := q.before
	if q.before = ""; before == "" {
		return nil
	}
	return checkpoint.RemoveReplicas(filepath.Dir(q.dir), before)
}

// closeReplicas takes the receives back, and with remove the files.
func (r *rank) closeReplicas(remove bool) error {
	q := r.replicas
	if q == nil {
		return nil
	}
	q.closing = true
	for _, in := range q.in {
		r.t.Cancel(in.op)
	}
	if err := r.net.Drive(func() bool { return q.posted == 0 }); err != nil {
		return err
	}
	for _, in := range q.in {
		in.b.Free()
	}
	if r.me == 0 && remove {
		if err := r.folder.Remove(startsFile); err != nil {
			return err
		}
	}
	return q.release(remove)
}

// tell sends a host the manifest of a version that is complete, or, where it is empty, word that the version is given up.
func (q *replicas) tell(host int, version int64, manifest []byte) {
	end := parcel{version: version, kind: wire.ManifestFile, text: manifest, length: int64(len(manifest))}
	if host != q.r.me {
		q.to(host).put(end)
		return
	}
	var err error
	if end.length > 0 {
		err = checkpoint.WriteReplicaManifest(q.at, end.version, end.text)
	}
	q.got(&end, err)
}
