package runtime

import (
	"path/filepath"
	"slices"

	"fluentps/ps/checkpoint"
	"fluentps/ps/digest"
	"fluentps/ps/link"
	"fluentps/ps/lock"
	"fluentps/ps/metrics"
	"fluentps/ps/resume"
	"fluentps/ps/station"
)

// openFolder has rank 0 make the run folder, and opens the log of every rank in it.
func (r *rank) openFolder() error {
	var problem error
	if r.station.Me == 0 && r.o.Lead.Folder != nil {
		f, err := r.run.Search.TakeFolder()
		if err != nil {
			problem = err
		} else {
			r.run.Folder = f
			for _, w := range f.Warnings {
				r.station.Log.Warn(w)
			}
			problem = r.lockFolder()
		}
		if problem == nil {
			problem = r.run.WriteStart(f) // also when resuming: the checkpoints hold the earlier values
		}
	}
	result := struct{ Dir, Problem string }{Dir: r.run.Dir()}
	if problem != nil {
		result.Problem = problem.Error()
	}
	if err := link.Spread(r.station.Net, &result); err != nil {
		return err
	}
	if result.Problem != "" {
		return station.Usage("%s", result.Problem)
	}
	r.run.Search.Dir = result.Dir
	role := r.station.Roles.Name(r.station.Me)
	spec := metrics.LogSpec{Rank: r.station.Me, Role: role, Tag: role, Host: r.o.Host, Level: r.o.LogLevel, Stderr: r.o.Warn}
	if result.Dir != "" {
		if r.run.Folder == nil {
			r.run.Folder = metrics.At(result.Dir)
		}
		file, err := r.run.Folder.OpenLog(r.station.Me)
		if err != nil { // a host that does not share the file system trains without a log
			r.station.Log.Warn("no log file on this rank", "error", err)
		} else {
			r.file, spec.File = file, file
		}
	}
	r.station.Log = metrics.NewLogger(spec)
	r.nameRanks()
	r.station.Log.Info("start", "pid", r.o.PID, "servers", len(r.station.Roles.Servers), "workers", len(r.station.Roles.Workers), "shards", len(r.station.Plan.Shards))
	r.openTeller()
	r.openDigests()
	return nil
}

// openDigests opens the file for checksums of a rank that keeps parameters, if the configuration asks for them.
func (r *rank) openDigests() {
	every := r.station.Config.Metrics.Digests
	if every == 0 || r.run.Folder == nil || !slices.Contains(r.station.Keepers(), r.station.Me) {
		return
	}
	file, err := r.run.Folder.AppendLines(digest.FileName(r.station.Me))
	if err != nil {
		r.station.Log.Warn("no checksums of this rank's shards, and training goes on", "error", err)
		return
	}
	r.digests = digest.New(file, every, r.station.Guard)
}

// closeDigests writes the rest of them.
func (r *rank) closeDigests() {
	if err := r.digests.Close(); err != nil {
		r.station.Log.Warn("the checksums of this rank's shards are not complete", "error", err)
	}
	r.digests = nil
}

// lockFolder keeps other runs out of the run folder. Rank 0 waits while another run may be in it. Checkpoints that the
// other run has written meanwhile count, unless the user asked for one checkpoint.
func (r *rank) lockFolder() error {
	me := lock.Owner{Host: r.o.Host, Job: r.o.Lead.Job, Restarts: r.o.Lead.Restarts, Since: r.o.Lead.Start}
	var err error
	r.run.Lock, err = lock.Take(r.run.Folder.Folder, me, func(text string) { r.station.Log.Warn(text) }, func(err error) {
		r.station.Transport.Post(func() { r.station.Net.Fail(err) })
	})
	if _, _, one := resume.OneCheckpoint(r.o.Resume); err != nil || r.o.Resume == "" || one {
		return err
	}
	r.run.Search.Candidates, err = checkpoint.List(filepath.Join(r.run.Dir(), checkpoint.Folder))
	return err
}
