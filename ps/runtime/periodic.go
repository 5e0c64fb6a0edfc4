package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/core"
	"fluentps/ps/durable"
)

// Checkpoints while training goes on, where each version is a cut (ps/core/resume.go says how it is named ahead), or else
// in a pause (pause.go). Who has a part of it keeps that (keep.go), and a goroutine of its own writes it to disk; then rank 0
// hears of the file. When it has heard of all, it writes the manifest. One is made at a time.

// saving is what every rank knows of it.
type saving struct {
	open int   // files that are being written
	told int64 // files that rank 0 was told of
}

// periodic is rank 0's part.
type periodic struct {
	busy     bool // one is being made
	draft    *checkpoint.Draft
	disk     bool          // rank 0 is at its folder
	at       time.Duration // when the last one was begun, and the lead shard's version then
	version  int64
	manifest *checkpoint.Manifest // nil until the lead shard has come to the version
	missing  int                  // files
	files    []checkpoint.Entry
	failed   string        // why it is worth nothing; "": it is not
	heard    int64         // of all files so far
	took     time.Duration // to write the file that took longest
	paused   time.Duration // how long training stood still for it
}

func savedName(h *wire.Header) string {
	if h.Part == 1 {
		return checkpoint.WorkerFile(int(h.Shard))
	}
	return checkpoint.ServerFile(int(h.Shard))
}

// writeBeside writes a file while training goes on, calls written when the vectors are free again, and tells rank 0.
func (r *rank) writeBeside(h wire.Header, state any, vectors [][]float32, written func()) {
	r.saving.open++
	h.Kind, h.Worker = wire.Saved, int32(r.me)
	replica := r.replicas.take(h.Part)
	go func() {
		defer r.guard(nil, nil)
		r.replicas.write(replica, h, state, vectors)
		from := time.Now()
		in := r.draft()
		e, err := checkpoint.WriteFile(in, savedName(&h), state, vectors...)
		err = errors.Join(err, in.Close())
		h.Blocked = int64(time.Since(from))
		r.t.Post(func() {
			r.saving.open--
			written()
			h.Samples, h.Version = e.Bytes, int64(e.CRC32C)
			if err != nil {
				h.Flags = wire.Failed
				r.noCheckpoint(err)
			}
			r.saving.told++
			r.send(0, &h)
		})
	}()
}

// draft is the folder of the checkpoint that is being written.
func (r *rank) draft() *durable.Folder {
	return r.folder.In(filepath.Join(checkpoint.Folder, checkpoint.DraftName))
}

// noCheckpoint says why one is not there that was due. The run goes on.
func (r *rank) noCheckpoint(err error) {
	r.log.Warn("no checkpoint: " + strings.TrimPrefix(err.Error(), "checkpoint: "))
}

// saveDue begins a checkpoint when it is time to.
func (l *lead) saveDue() {
	r, p, c := l.r, &l.periodic, &l.r.cfg.Checkpoint
	if !c.Periodic() || r.dir == "" || p.busy || l.replication.busy || l.reason != "" || r.trainEnd > 0 || r.stopping() {
		return
	}
	now := r.now()
	if (c.Every == 0 || now-p.at < c.Every) && (c.EveryUpdates == 0 || l.version-p.version < c.EveryUpdates) {
		return
	}
	workers := len(r.roles.Workers)
	*p = periodic{busy: true, disk: true, at: now, version: l.version, missing: l.owners + workers, heard: p.heard}
	go func() {
		defer r.guard(nil, nil)
		draft, err := checkpoint.Begin(r.folder.Folder)
		r.t.Post(func() {
			p.disk, p.draft = false, draft
			if err != nil {
				p.busy = false
				r.noCheckpoint(fmt.Errorf("%w%s", err, l.newestText()))
				return
			}
			l.beginReplicas(p.missing)
			if r.pauses() {
				l.pause()
			} else {
				r.server.step(core.Input{Kind: core.SaveSoon})
			}
		})
	}()
}

// leadSaved is told when the lead shard has come to the version that is saved, and each worker's next iteration: this is
// where the run is.
func (l *lead) leadSaved(starts []int64) {
	p, m := &l.periodic, l.r.manifest()
	m.Starts = starts
	var err error
	if m.State, err = json.Marshal(l.save()); err != nil {
		p.failed = fmt.Sprintf("rank 0: %v", err)
	}
	p.manifest = m
	l.replication.manifest = *m
}

// fileSaved is told of a file, and ends the checkpoint with the last one.
func (l *lead) fileSaved(h *wire.Header) {
	r, p := l.r, &l.periodic
	if h.Parts != inFolder {
		l.replicaSaved(h)
		return
	}
	p.heard++
	if h.Flags&wire.Failed != 0 {
		p.failed = r.place(int(h.Worker)) + " could not write its file"
	}
	p.took = max(p.took, time.Duration(h.Blocked))
	p.files = append(p.files, checkpoint.Entry{Name: savedName(h), Bytes: h.Samples, CRC32C: uint32(h.Version)})
	if p.missing--; p.missing > 0 {
		return
	}
	if p.disk = true; l.diverged {
		p.failed = l.reason // what was saved may be worth nothing
	}
	keep, failed := r.cfg.Checkpoint.Keep, p.failed
	slices.SortFunc(p.files, func(a, b checkpoint.Entry) int { return strings.Compare(a.Name, b.Name) })
	p.manifest.Files = p.files
	go func() {
		defer r.guard(nil, nil)
		if err := r.lock.Check(); err != nil { // what is in the folder is another run's
			r.t.Post(func() { r.fail(err) })
			return
		}
		dir, err := r.finishBeside(p.draft, p.manifest, failed, keep)
		r.t.Post(func() {
			p.disk, p.draft = false, nil
			if dir != "" {
				l.newest = dir
			}
			switch {
			case err != nil && dir == "":
				p.busy = false
				r.noCheckpoint(fmt.Errorf("%w%s", err, l.newestText()))
				return
			case err != nil:
				r.log.Warn("checkpoint " + dir + " is there, but earlier ones stay: " + strings.TrimPrefix(err.Error(), "checkpoints: "))
			}
			p.busy = l.judges(dir)
			r.log.Info("checkpoint", "folder", dir, "iteration", p.manifest.Iteration, "paused_s", p.paused.Seconds(), "bytes", bytesIn(p.files), "written_s", p.took.Seconds())
		})
	}()
}

func bytesIn(files []checkpoint.Entry) (n int64) {
	for _, e := range files {
		n += e.Bytes
	}
	return n
}

func (r *rank) finishBeside(d *checkpoint.Draft, m *checkpoint.Manifest, failed string, keep int) (dir string, err error) {
	if failed != "" {
		if err := d.Abandon(); err != nil {
			return "", err
		}
		return "", errors.New(failed)
	}
	if dir, err = d.Finish(m); err != nil {
		return "", err
	}
	return dir, checkpoint.Prune(r.folder.Folder, keep)
}

// settle waits, when training is over, until nobody writes any more. A checkpoint whose version the run did not come to
// is given up.
func (r *rank) settle() error {
	if !r.cfg.Checkpoint.Periodic() || r.dir == "" {
		return nil
	}
	if err := r.drive(func() bool { return r.saving.open == 0 }); err != nil {
		return err
	}
	told, err := gather(r, r.saving.told)
	if err != nil || r.me != 0 {
		return err
	}
	var all int64
	for _, n := range told {
		all += n
	}
	p := &r.lead.periodic
	if err := r.drive(func() bool { return p.heard == all && !p.disk && r.lead.judged() }); err != nil {
		return err
	}
	if err := r.drive(r.lead.replicasSettled); err != nil {
		return err
	}
	if p.busy && p.draft != nil {
		if err := p.draft.Abandon(); err != nil { // the next one is begun by removing what is left
			r.log.Warn("what was written of a checkpoint could not be removed: " + err.Error())
		}
	}
	return nil
}
