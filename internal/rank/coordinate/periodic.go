package coordinate

import (
	"errors"
	"path/filepath"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/snapshot"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/replica"
)

// Checkpoints during training: under schemes whose versions are cuts (internal/core/servernode/resume.go says how a version is
// named ahead), or else in a pause (pause.go). Each rank keeps its part (internal/rank/serve/keep.go,
// internal/rank/train/state.go), and a goroutine
// writes it to disk; then rank 0 hears of the file. When rank 0 has heard of all files, it writes the manifest. One checkpoint is made
// at a time.

// entryOf is a file's row of the manifest.
func entryOf(f *wire.FileSaved) checkpoint.Entry {
	return checkpoint.Entry{Name: replica.FileName(f.Kind, f.Index), Bytes: f.Bytes, CRC32C: f.CRC32C}
}

// WriteInBackground writes a file during training, calls written when the vectors may change again, and reports the file to
// rank 0.
func (r *Run) WriteInBackground(f wire.FileSaved, state any, vectors [][]float32, written func()) {
	r.station.Saving.Open++
	f.Rank = int32(r.station.Me)
	version := r.Replicas.NextVersion(f.Kind)
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
	return r.Folder.In(filepath.Join(checkpoint.Folder, checkpoint.DraftName(r.Token)))
}

// noCheckpoint warns that a due checkpoint was not made. The run continues.
func (r *Run) noCheckpoint(why string) {
	r.station.Log.Warn("no checkpoint: " + why)
}

// finishDraft gives a checkpoint its name, and removes older ones beyond keep.
func (r *Run) finishDraft(d *checkpoint.Draft, m *checkpoint.Manifest, keep int) (dir string, err error) {
	if dir, err = d.Finish(m); err != nil {
		return "", err
	}
	return dir, checkpoint.Prune(r.Folder.Folder, keep)
}

// settle waits, at the end of training, until all files are written. It abandons a checkpoint of a version that the run did
// not reach.
func (r *Run) settle() error {
	if !r.station.Config.Checkpoint.Periodic() || r.Folder == nil {
		return nil
	}
	if err := r.station.Net.Drive(func() bool { return r.station.Saving.Open == 0 }); err != nil {
		return err
	}
	sent, err := link.Gather(r.station.Net, r.station.Saving.Told)
	if err != nil || r.station.Me != 0 {
		return err
	}
	var all int64
	for _, n := range sent {
		all += n
	}
	c := r.Lead.checkpoints.snapshots
	if c == nil {
		return nil
	}
	c.step(snapshot.Event{Kind: snapshot.Over, Told: all})
	return r.station.Net.Drive(func() bool { return c.settled && r.station.Saving.Open == 0 })
}
