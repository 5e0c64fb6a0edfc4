package coordinate

import (
	"errors"
	"path/filepath"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
	"fluentps/ps/link"
	"fluentps/ps/replica"
	"fluentps/ps/snapshot"
)

// Checkpoints while training goes on, where each version is a cut (ps/core/resume.go says how it is named ahead), or else
// in a pause (pause.go). Who has a part of it keeps that (keep.go of ps/serve and ps/train), and a goroutine of its own writes it to disk; then rank 0
// hears of the file. When it has heard of all, it writes the manifest. One is made at a time.

// entryOf is the manifest's row of a file.
func entryOf(f *wire.FileSaved) checkpoint.Entry {
	return checkpoint.Entry{Name: replica.FileName(f.Kind, f.Index), Bytes: f.Bytes, CRC32C: f.CRC32C}
}

// WriteBeside writes a file while training goes on, calls written when the vectors are free again, and tells rank 0.
func (r *Run) WriteBeside(f wire.FileSaved, state any, vectors [][]float32, written func()) {
	r.station.Saving.Open++
	f.Rank = int32(r.station.Me)
	version := r.Replicas.Take(f.Kind)
	go func() {
		defer r.station.Guard()
		r.Replicas.Write(version, f, state, vectors)
		from := time.Now()
		in := r.draft()
		e, err := checkpoint.WriteFile(in, replica.FileName(f.Kind, f.Index), state, vectors...)
		err = errors.Join(err, in.Close())
		f.Took, f.Bytes, f.CRC32C, f.Failed = time.Since(from), e.Bytes, e.CRC32C, err != nil
		r.station.Transport.Post(func() {
			r.station.Saving.Open--
			written()
			if err != nil {
				r.noCheckpoint(problemOf(err))
			}
			r.station.Saving.Told++
			r.station.TellSaved(&f)
		})
	}()
}

// draft is the folder of the checkpoint that is being written.
func (r *Run) draft() *durable.Folder {
	return r.Folder.In(filepath.Join(checkpoint.Folder, checkpoint.DraftName))
}

// noCheckpoint says why one is not there that was due. The run goes on.
func (r *Run) noCheckpoint(why string) {
	r.station.Log.Warn("no checkpoint: " + why)
}

// finishBeside gives a checkpoint its name; those that are not kept any more go.
func (r *Run) finishBeside(d *checkpoint.Draft, m *checkpoint.Manifest, keep int) (dir string, err error) {
	if dir, err = d.Finish(m); err != nil {
		return "", err
	}
	return dir, checkpoint.Prune(r.Folder.Folder, keep)
}

// settle waits, when training is over, until nobody writes any more. A checkpoint whose version the run did not come to
// is given up.
func (r *Run) settle() error {
	if !r.station.Config.Checkpoint.Periodic() || r.Folder == nil {
		return nil
	}
	if err := r.station.Net.Drive(func() bool { return r.station.Saving.Open == 0 }); err != nil {
		return err
	}
	told, err := link.Gather(r.station.Net, r.station.Saving.Told)
	if err != nil || r.station.Me != 0 {
		return err
	}
	var all int64
	for _, n := range told {
		all += n
	}
	c := r.Lead.kept.snapshots
	if c == nil {
		return nil
	}
	c.step(snapshot.Event{Kind: snapshot.Over, Told: all})
	return r.station.Net.Drive(func() bool { return c.settled && r.station.Saving.Open == 0 })
}
