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
	"fluentps/ps/link"
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

func fileName(kind wire.FileKind, index int32) string {
	if kind == wire.WorkerFile {
		return checkpoint.WorkerFile(int(index))
	}
	return checkpoint.ServerFile(int(index))
}

// entryOf is the manifest's row of a file.
func entryOf(f *wire.FileSaved) checkpoint.Entry {
	return checkpoint.Entry{Name: fileName(f.Kind, f.Index), Bytes: f.Bytes, CRC32C: f.CRC32C}
}

// tellSaved tells rank 0 of a file.
func (r *rank) tellSaved(f *wire.FileSaved) {
	h := f.Header()
	r.net.Send(0, &h)
}

// writeBeside writes a file while training goes on, calls written when the vectors are free again, and tells rank 0.
func (r *rank) writeBeside(f wire.FileSaved, state any, vectors [][]float32, written func()) {
	r.saving.open++
	dir := checkpoint.DraftDir(filepath.Join(r.dir, checkpoint.Folder))
	f.Rank = int32(r.me)
	replica := r.replicas.take(f.Kind)
	go func() {
		defer r.guarded()
		r.replicas.write(replica, f, state, vectors)
		from := time.Now()
		e, err := checkpoint.WriteFile(dir, fileName(f.Kind, f.Index), state, vectors...)
		f.Took, f.Bytes, f.CRC32C, f.Failed = time.Since(from), e.Bytes, e.CRC32C, err != nil
		r.t.Post(func() {
			r.saving.open--
			written()
			if err != nil {
				r.noCheckpoint(err)
			}
			r.saving.told++
			r.tellSaved(&f)
		})
	}()
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
		defer r.guarded()
		draft, err := checkpoint.Begin(filepath.Join(r.dir, checkpoint.Folder))
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
func (l *lead) fileSaved(f wire.FileSaved) {
	r, p := l.r, &l.periodic
	if f.Place != wire.InFolder {
		l.replicaSaved(&f)
		return
	}
	p.heard++
	if f.Failed {
		p.failed = r.net.Place(int(f.Rank)) + " could not write its file"
	}
	p.took = max(p.took, f.Took)
	p.files = append(p.files, entryOf(&f))
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
		defer r.guarded()
		if err := r.lock.Check(); err != nil { // what is in the folder is another run's
			r.t.Post(func() { r.net.Fail(err) })
			return
		}
		dir, err := finishBeside(p.draft, p.manifest, failed, keep)
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

func finishBeside(d *checkpoint.Draft, m *checkpoint.Manifest, failed string, keep int) (dir string, err error) {
	if failed != "" {
		if err := d.Abandon(); err != nil {
			return "", err
		}
		return "", errors.New(failed)
	}
	if dir, err = d.Finish(m); err != nil {
		return "", err
	}
	return dir, checkpoint.Prune(filepath.Dir(dir), keep)
}

// settle waits, when training is over, until nobody writes any more. A checkpoint whose version the run did not come to
// is given up.
func (r *rank) settle() error {
	if !r.cfg.Checkpoint.Periodic() || r.dir == "" {
		return nil
	}
	if err := r.net.Drive(func() bool { return r.saving.open == 0 }); err != nil {
		return err
	}
	told, err := link.Gather(r.net, r.saving.told)
	if err != nil || r.me != 0 {
		return err
	}
	var all int64
	for _, n := range told {
		all += n
	}
	p := &r.lead.periodic
	if err := r.net.Drive(func() bool { return p.heard == all && !p.disk && r.lead.judged() }); err != nil {
		return err
	}
	if err := r.net.Drive(r.lead.replicasSettled); err != nil {
		return err
	}
	if p.busy && p.draft != nil {
		if err := p.draft.Abandon(); err != nil { // the next one is begun by removing what is left
			r.log.Warn("what was written of a checkpoint could not be removed: " + err.Error())
		}
	}
	return nil
}
