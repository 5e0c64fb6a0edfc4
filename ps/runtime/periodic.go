package runtime

import (
	"errors"
	"path/filepath"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
	"fluentps/ps/link"
	"fluentps/ps/snapshot"
)

// Checkpoints while training goes on, where each version is a cut (ps/core/resume.go says how it is named ahead), or else
// in a pause (pause.go). Who has a part of it keeps that (keep.go), and a goroutine of its own writes it to disk; then rank 0
// hears of the file. When it has heard of all, it writes the manifest. One is made at a time.

// saving is what every rank knows of it.
type saving struct {
	open int   // files that are being written
	told int64 // files that rank 0 was told of
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
	f.Rank = int32(r.me)
	replica := r.replicas.take(f.Kind)
	go func() {
		defer r.guarded()
		r.replicas.write(replica, f, state, vectors)
		from := time.Now()
		in := r.draft()
		e, err := checkpoint.WriteFile(in, fileName(f.Kind, f.Index), state, vectors...)
		err = errors.Join(err, in.Close())
		f.Took, f.Bytes, f.CRC32C, f.Failed = time.Since(from), e.Bytes, e.CRC32C, err != nil
		r.t.Post(func() {
			r.saving.open--
			written()
			if err != nil {
				r.noCheckpoint(problemOf(err))
			}
			r.saving.told++
			r.tellSaved(&f)
		})
	}()
}

// draft is the folder of the checkpoint that is being written.
func (r *rank) draft() *durable.Folder {
	return r.folder.In(filepath.Join(checkpoint.Folder, checkpoint.DraftName))
}

// noCheckpoint says why one is not there that was due. The run goes on.
func (r *rank) noCheckpoint(why string) {
	r.log.Warn("no checkpoint: " + why)
}

// finishBeside gives a checkpoint its name; those that are not kept any more go.
func (r *rank) finishBeside(d *checkpoint.Draft, m *checkpoint.Manifest, keep int) (dir string, err error) {
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
	c := r.lead.snapshots
	if c == nil {
		return nil
	}
	c.step(snapshot.Event{Kind: snapshot.Over, Told: all})
	return r.net.Drive(func() bool { return c.settled && r.saving.open == 0 })
}
