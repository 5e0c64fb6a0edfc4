// Package replica keeps checkpoints in the memory of hosts: who writes a file writes it there, too, and sends it to a rank of the next
// host. So all files outlive any one host.
package replica

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/station"
)

// Replicas of a checkpoint while training goes on (checkpoint.replica: 1). Who writes a file into the run folder writes it
// into the memory of its host, too, and sends it to a rank of the next host, which writes it there: so all files outlive any
// one host, and, on one host, all processes. When rank 0 has heard of all of them it sends the manifest to every host;
// there the version before goes. ps/resume reads them.

// Replicas are those of one start, as one rank sees them.
type Replicas struct {
	r       *station.Station
	o       Options
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

// Options are what replicas are begun with.
type Options struct {
	Memory  string             // the memory file system of this host; "": /dev/shm
	Host    string             // its name
	Folder  *metrics.RunFolder // of the run
	Adopted string             // the start whose replicas the run goes on from; "": none
	Earlier []string           // rank 0 only: starts of this run that may have left replicas
}

// Open begins those of this start; nil: the configuration wants none. Where a host has no place for them, the run goes on without.
func Open(r *station.Station, o Options) (*Replicas, error) {
	c := &r.Config.Checkpoint
	if c.Replica == 0 || !c.Periodic() || o.Folder == nil {
		return nil, nil
	}
	var said struct {
		Start, Before string
		Over          []string // starts of which nothing is needed any more
	}
	if r.Me == 0 {
		said.Start, said.Before = newStart(), o.Adopted
		said.Over = slices.DeleteFunc(o.Earlier, func(start string) bool { return start == o.Adopted })
	}
	if err := link.Spread(r.Net, &said); err != nil {
		return nil, err
	}
	memory := cmp.Or(o.Memory, layout.MemoryRoot)
	q := &Replicas{r: r, o: o, dir: checkpoint.ReplicaDir(memory, said.Start), before: said.Before, spare: SpareMemory(r), next: -1, out: map[int]*outgoing{}}
	problem := ""
	if FirstOfHost(r) {
		if err := q.hold(memory, said.Start, said.Over); err != nil {
			problem = err.Error()
		}
	}
	all, err := link.Gather(r.Net, problem)
	if err != nil {
		return q, err
	}
	if r.Me == 0 {
		if err := noteStart(o.Folder, said.Start, said.Before); err != nil {
			all[0] = err.Error()
		}
		problem = r.Net.Verdict(all)
	}
	if err := link.Spread(r.Net, &problem); err != nil {
		return q, err
	}
	if problem != "" {
		if r.Me == 0 {
			r.Log.Warn("no replicas of checkpoints: " + problem)
		}
		q.before = "" // what was before may be needed once more
		return nil, q.Release(true)
	}
	return q, q.open(memory, said.Start)
}

// hold makes this host ready for a start.
func (q *Replicas) hold(memory, start string, over []string) error {
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
func (q *Replicas) open(memory, start string) error {
	r := q.r
	var err error
	if q.at, err = checkpoint.OpenReplicas(memory, start); err != nil {
		return err
	}
	next := layout.Neighbors(r.NodeOf)
	q.next = next[r.Me]
	for from, to := range next {
		if to != r.Me && (from != 0 || !FirstOfHost(r) || r.Me == 0) {
			continue
		}
		b, err := r.Transport.Alloc(layout.ParcelHead + layout.ParcelMax)
		if err != nil {
			return err
		}
		in := &incoming{q: q, from: from, b: b}
		q.in = append(q.in, in)
		in.post()
	}
	return nil
}

// Copies says whether files have a second place, on another host.
func (q *Replicas) Copies() bool { return q.next >= 0 }

// Take counts a file that is to be written; 0: there are no replicas.
func (q *Replicas) Take(kind wire.FileKind) int64 {
	if q == nil {
		return 0
	}
	q.r.Saving.Open++
	q.written[kind]++
	return q.written[kind]
}

// Write writes a file into this host's memory; not on the goroutine that drives.
func (q *Replicas) Write(version int64, f wire.FileSaved, state any, vectors [][]float32) {
	if q == nil {
		return
	}
	of := checkpoint.MakeReplicaVersion(q.at, version)
	e, err := checkpoint.WriteReplica(of, FileName(f.Kind, f.Index), q.spare, state, vectors...)
	err = errors.Join(err, of.Close())
	q.r.Transport.Post(func() {
		f.Version, f.Place, f.Bytes, f.CRC32C = version, wire.InMemory, e.Bytes, e.CRC32C
		q.wrote(of.Path(FileName(f.Kind, f.Index)), f, err)
	})
}

// wrote tells rank 0 of a file in memory, and sends it to the next host.
func (q *Replicas) wrote(path string, saved wire.FileSaved, err error) {
	r := q.r
	r.Saving.Open--
	var f *os.File
	if err == nil && q.next >= 0 {
		f, err = durable.Open(path)
	}
	if saved.Failed = err != nil; err != nil {
		q.noReplica(err)
	}
	r.Saving.Told++
	r.TellSaved(&saved)
	if f != nil {
		r.Saving.Told++ // by the rank that gets it
		q.to(q.next).put(parcel{version: saved.Version, kind: saved.Kind, index: saved.Index, length: saved.Bytes, f: f})
	}
}

func (q *Replicas) noReplica(err error) {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) { // the words around it are of checkpoints on disk
		text = path.Error()
	}
	if errors.Is(err, syscall.ENOSPC) {
		text += "; the memory of host " + q.o.Host + " has no room; plan says how much is needed, and checkpoint.replica: 0 does without"
	}
	q.r.Log.Warn("no replica of this checkpoint: " + text)
}

// got is told that a file is there, or is not, and tells rank 0.
func (q *Replicas) got(p *parcel, err error) {
	f := wire.FileSaved{Rank: int32(q.r.Me), Kind: p.kind, Index: p.index, Place: wire.InNeighbor, Version: p.version}
	if p.kind == wire.ManifestFile {
		f.Place = wire.OnHost
		if err == nil {
			err = q.settled(p)
		}
	}
	if f.Failed = err != nil; err != nil {
		q.noReplica(err)
	}
	q.r.TellSaved(&f)
}

// settled ends a version on this host: it is complete, and those before it go, or it goes.
func (q *Replicas) settled(p *parcel) error {
	if p.length == 0 {
		return q.own.Drop(p.version)
	}
	return errors.Join(q.own.Keep(p.version), q.forgetBefore())
}

// Release is for the end: nothing is on its way any more.
func (q *Replicas) Release(remove bool) error {
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
func (q *Replicas) forgetBefore() error {
	before := q.before
	if q.before = ""; before == "" {
		return nil
	}
	return checkpoint.RemoveReplicas(filepath.Dir(q.dir), before)
}

// Close takes the receives back, and with remove the files.
func (q *Replicas) Close(remove bool) error {
	if q == nil {
		return nil
	}
	r := q.r
	q.closing = true
	for _, in := range q.in {
		r.Transport.Cancel(in.op)
	}
	if err := r.Net.Drive(func() bool { return q.posted == 0 }); err != nil {
		return err
	}
	for _, in := range q.in {
		in.b.Free()
	}
	if r.Me == 0 && remove {
		if err := q.o.Folder.Remove(StartsFile); err != nil {
			return err
		}
	}
	return q.Release(remove)
}

// Tell sends a host the manifest of a version that is complete, or, where it is empty, word that the version is given up.
func (q *Replicas) Tell(host int, version int64, manifest []byte) {
	end := parcel{version: version, kind: wire.ManifestFile, text: manifest, length: int64(len(manifest))}
	if host != q.r.Me {
		q.to(host).put(end)
		return
	}
	var err error
	if end.length > 0 {
		err = checkpoint.WriteReplicaManifest(q.at, end.version, end.text)
	}
	q.got(&end, err)
}
