// Package replica keeps checkpoints in the memory of hosts (checkpoint.replica: 1), so that all files survive the loss of
// any one host.
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

	"fluentps/internal/comm/wire"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// Replicas of a checkpoint during training: a rank that writes a file into the run folder also writes it into the memory of
// its host, and sends it to a rank of the next host, which writes it there. So all files survive the loss of any one host,
// and, on one host, of all processes. When rank 0 has heard of all files it sends the manifest to every host, which then
// removes the previous version. internal/rank/resume reads replicas.

// Replicas are the replicas of one start, as one rank sees them.
type Replicas struct {
	station        *station.Station
	o              Options
	dir            string
	folder         *durable.Folder       // dir, open
	hostReplicas   *checkpoint.Replicas  // on the first rank of a host, else nil
	previousStart  string                // the start that the run resumed from; its replicas go with the first complete version of this one
	spareBytes     int64                 // to be left free in the host's memory file system
	next           int                   // rank that keeps the files of this one; -1: there is only one host
	written        [wire.FileKinds]int64 // by kind: number of files so far; a file's number is its version
	out            map[int]*outgoing     // by rank
	in             []*incoming
	receivesPosted int // in flight
	closing        bool
}

// Options are the inputs of Open.
type Options struct {
	Memory  string             // the memory file system of this host; "": /dev/shm
	Host    string             // name of this host
	Folder  *metrics.RunFolder // of the run
	Adopted string             // the start whose replicas the run resumes from; "": none
	Earlier []string           // rank 0 only: earlier starts of this run that may have left replicas
}

// Open begins the replicas of this start. It returns nil if the configuration wants none, and, after a warning, if a host
// has no memory for them: the run continues without.
func Open(r *station.Station, o Options) (*Replicas, error) {
	c := &r.Config.Checkpoint
	if c.Replica == 0 || !c.Periodic() || o.Folder == nil {
		return nil, nil
	}
	var decision struct {
		Start, Before string
		Obsolete      []string // starts whose replicas are not needed any more
	}
	if r.Me == 0 {
		decision.Start, decision.Before = newStart(), o.Adopted
		decision.Obsolete = slices.DeleteFunc(o.Earlier, func(start string) bool { return start == o.Adopted })
	}
	if err := link.Spread(r.Net, &decision); err != nil {
		return nil, err
	}
	memory := cmp.Or(o.Memory, layout.MemoryRoot)
	q := &Replicas{station: r, o: o, dir: checkpoint.ReplicaDir(memory, decision.Start), previousStart: decision.Before,
		spareBytes: SpareMemory(r), next: -1, out: map[int]*outgoing{}}
	problem := ""
	if FirstOfHost(r) {
		if err := q.claimHost(memory, decision.Start, decision.Obsolete); err != nil {
			problem = err.Error()
		}
	}
	all, err := link.Gather(r.Net, problem)
	if err != nil {
		return q, err
	}
	if r.Me == 0 {
		if err := noteStart(o.Folder, decision.Start, decision.Before); err != nil {
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
		q.previousStart = "" // keep its replicas: another resume may need them
		return nil, q.Release(true)
	}
	return q, q.open(memory, decision.Start)
}

// claimHost prepares this host for a start, and removes the replicas of obsolete starts.
func (q *Replicas) claimHost(memory, start string, obsolete []string) error {
	err := checkpoint.SweepReplicas(memory, q.previousStart, time.Now())
	for _, old := range obsolete {
		err = errors.Join(err, checkpoint.RemoveReplicas(memory, old))
	}
	if err == nil {
		q.hostReplicas, err = checkpoint.HoldReplicas(memory, start)
	}
	return err
}

// open posts the receives from all ranks that may send to this one.
func (q *Replicas) open(memory, start string) error {
	r := q.station
	var err error
	if q.folder, err = checkpoint.OpenReplicas(memory, start); err != nil {
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
		in := &incoming{replicas: q, from: from, buf: b}
		q.in = append(q.in, in)
		in.post()
	}
	return nil
}

// Copies says whether files have a second copy, on another host.
func (q *Replicas) Copies() bool { return q.next >= 0 }

// NextVersion counts a file to be written and returns its version; 0: there are no replicas.
func (q *Replicas) NextVersion(kind wire.FileKind) int64 {
	if q == nil {
		return 0
	}
	q.station.Saving.Open++
	q.written[kind]++
	return q.written[kind]
}

// Write writes a file into this host's memory. It must not run on the goroutine that drives.
func (q *Replicas) Write(version int64, f wire.FileSaved, state any, vectors [][]float32) {
	if q == nil {
		return
	}
	folder := checkpoint.MakeReplicaVersion(q.folder, version)
	e, err := checkpoint.WriteReplica(folder, FileName(f.Kind, f.Index), q.spareBytes, state, vectors...)
	err = errors.Join(err, folder.Close())
	q.station.Transport.Post(func() {
		f.Version, f.Place, f.Bytes, f.CRC32C = version, wire.InMemory, e.Bytes, e.CRC32C
		q.reportWritten(folder.Path(FileName(f.Kind, f.Index)), f, err)
	})
}

// reportWritten reports a file in memory to rank 0, and sends it to the next host.
func (q *Replicas) reportWritten(path string, saved wire.FileSaved, err error) {
	r := q.station
	r.Saving.Open--
	var f *os.File
	if err == nil && q.next >= 0 {
		f, err = durable.Open(path)
	}
	if saved.Failed = err != nil; err != nil {
		q.warnNoReplica(err)
	}
	r.Saving.Told++
	r.TellSaved(&saved)
	if f != nil {
		r.Saving.Told++ // the rank that receives the file reports it
		q.outgoingTo(q.next).send(parcel{version: saved.Version, kind: saved.Kind, index: saved.Index, length: saved.Bytes, file: f})
	}
}

func (q *Replicas) warnNoReplica(err error) {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) { // the text around it is about checkpoints on disk
		text = path.Error()
	}
	if errors.Is(err, syscall.ENOSPC) {
		text += "; the memory of host " + q.o.Host + " has no room; plan says how much is needed, and checkpoint.replica: 0 makes no replicas"
	}
	q.station.Log.Warn("no replica of this checkpoint: " + text)
}

// received reports to rank 0 a file that has arrived, or could not be written.
func (q *Replicas) received(p *parcel, err error) {
	f := wire.FileSaved{Rank: int32(q.station.Me), Kind: p.kind, Index: p.index, Place: wire.InNeighbor, Version: p.version}
	if p.kind == wire.ManifestFile {
		f.Place = wire.OnHost
		if err == nil {
			err = q.finishVersion(p)
		}
	}
	if f.Failed = err != nil; err != nil {
		q.warnNoReplica(err)
	}
	q.station.TellSaved(&f)
}

// finishVersion ends a version on this host: a complete one replaces all before it, and one that was given up is removed.
func (q *Replicas) finishVersion(p *parcel) error {
	if p.length == 0 {
		return q.hostReplicas.Drop(p.version)
	}
	return errors.Join(q.hostReplicas.Keep(p.version), q.removePrevious())
}

// Release gives the host's memory up, at the end. Nothing may be in flight any more.
func (q *Replicas) Release(remove bool) error {
	if q.folder != nil && remove { // else a goroutine may still be writing
		_ = q.folder.Close()
	}
	if q.hostReplicas == nil {
		return nil
	}
	own := q.hostReplicas
	q.hostReplicas = nil
	var err error
	if remove {
		err = q.removePrevious()
	}
	return errors.Join(err, own.Release(remove))
}

// removePrevious removes the replicas of the previous start from this host.
func (q *Replicas) removePrevious() error {
	before := q.previousStart
	if q.previousStart = ""; before == "" {
		return nil
	}
	return checkpoint.RemoveReplicas(filepath.Dir(q.dir), before)
}

// Close cancels the receives, and with remove deletes the files.
func (q *Replicas) Close(remove bool) error {
	if q == nil {
		return nil
	}
	r := q.station
	q.closing = true
	for _, in := range q.in {
		r.Transport.Cancel(in.op)
	}
	if err := r.Net.Drive(func() bool { return q.receivesPosted == 0 }); err != nil {
		return err
	}
	for _, in := range q.in {
		in.buf.Free()
	}
	if r.Me == 0 && remove {
		if err := q.o.Folder.Remove(StartsFile); err != nil {
			return err
		}
	}
	return q.Release(remove)
}

// SendManifest sends a host the manifest of a complete version. An empty manifest says that the version is given up.
func (q *Replicas) SendManifest(host int, version int64, manifest []byte) {
	end := parcel{version: version, kind: wire.ManifestFile, text: manifest, length: int64(len(manifest))}
	if host != q.station.Me {
		q.outgoingTo(host).send(end)
		return
	}
	var err error
	if end.length > 0 {
		err = checkpoint.WriteReplicaManifest(q.folder, end.version, end.text)
	}
	q.received(&end, err)
}
