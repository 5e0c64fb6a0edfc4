package runtime

import (
	"path/filepath"

	"fluentps/ps/checkpoint"
	"fluentps/ps/lock"
)

// lockFolder keeps other runs out of the run folder. Rank 0 waits where another may be in it. What that one has written
// meanwhile counts, unless one checkpoint was asked for.
func (r *rank) lockFolder() error {
	me := lock.Owner{Host: r.o.Host, Job: r.o.Job, Restarts: r.o.Restarts, Since: r.o.Start}
	var err error
	r.lock, err = lock.Take(r.folder.Folder, me, func(text string) { r.log.Warn(text) }, func(err error) {
		r.t.Post(func() { r.net.Fail(err) })
	})
	if _, _, one := OneCheckpoint(r.o.Resume); err != nil || r.o.Resume == "" || one {
		return err
	}
	r.candidates, err = checkpoint.List(filepath.Join(r.dir, checkpoint.Folder))
	return err
}
