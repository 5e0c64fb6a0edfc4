package runtime

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"fluentps/internal/core/digest"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/lock"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/status"
)

// openFolder has rank 0 draw the token of this start if it has none, and make the run folder, and opens the log of every rank in it.
func (r *rank) openFolder() error {
	var problem error
	if r.station.Me == 0 {
		r.run.Token = cmp.Or(r.o.Lead.Token, lock.NewSeries())
	}
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
	}
	result := struct{ Dir, Token, Problem string }{Dir: r.run.Dir(), Token: r.run.Token}
	if problem != nil {
		result.Problem = problem.Error()
	}
	if err := link.Spread(r.station.Net, &result); err != nil {
		return err
	}
	if result.Problem != "" {
		return station.Usage("%s", result.Problem)
	}
	r.run.Search.Dir, r.run.Token = result.Dir, result.Token
	role := r.station.Roles.Name(r.station.Me)
	spec := metrics.LogSpec{Rank: r.station.Me, Role: role, Tag: role, Host: r.o.Host, Level: r.o.LogLevel, Stderr: r.o.Warn}
	if result.Dir != "" {
		if r.run.Folder == nil {
			r.run.Folder = metrics.At(result.Dir)
		}
		r.followLock()
		file, err := r.run.Folder.OpenLog(r.station.Me)
		if err != nil { // a host that does not share the file system trains without a log
			r.station.Log.Warn("no log file on this rank", "error", err)
		} else {
			r.file, spec.File = file, file
		}
	}
	r.station.Log = metrics.NewLogger(spec)
	r.nameRanks()
	r.station.Log.Info("start", "token", r.run.Token, "pid", r.o.PID, "servers", len(r.station.Roles.Servers), "workers",
		len(r.station.Roles.Workers), "shards", len(r.station.Plan.Shards))
	return nil
}

// lostEndMax is how long a rank that has lost the run folder may take to end in order.
const lostEndMax = 10 * time.Second

// followLock has each change of the run folder ask whether the folder still belongs to this start: its launcher may have been
// killed, and the run started again. Rank 0 has the lock, and the others look whose it is.
func (r *rank) followLock() {
	f := r.run.Folder
	r.run.Follower = lock.Follow(f.Folder, r.run.Token, status.Every(len(r.station.Hosts)), r.lostFolder)
	may := r.run.Follower.Check
	if own := r.run.Lock; own != nil {
		may = func() error {
			err := own.Check()
			if err != nil {
				r.lostFolder(err)
			}
			return err
		}
	}
	f.Folder = f.Guarded(may)
}

// lostFolder ends this rank, from any goroutine. The other ranks of its start may be dead, so it waits for nobody for long.
func (r *rank) lostFolder(err error) {
	timer := time.AfterFunc(lostEndMax, func() { r.station.Transport.Abort(CodeFailed) })
	if !r.lost.CompareAndSwap(nil, timer) {
		timer.Stop()
		return
	}
	r.station.Transport.Post(func() { r.station.Net.Fail(err) })
}

// beginFolder writes what is known before training, and opens the files of every rank. A run that is refused has changed nothing
// of the earlier run that it was to resume.
func (r *rank) beginFolder() error {
	var err error
	if r.station.Me == 0 && r.run.Folder != nil {
		err = r.run.WriteStart(r.run.Folder) // also when resuming: the checkpoints hold the earlier values
	}
	if err := r.station.Net.Agree(err, CodeUsage); err != nil {
		return err
	}
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
	me := lock.Owner{Host: r.o.Host, Job: r.o.Lead.Job, Restarts: r.o.Lead.Restarts, Since: r.o.Lead.Start, Start: r.run.Token}
	var err error
	r.run.Lock, err = lock.Take(r.run.Folder.Folder, me, func(text string) { r.station.Log.Warn(text) }, r.lostFolder)
	if _, _, one := resume.OneCheckpoint(r.o.Resume); err != nil || r.o.Resume == "" || one {
		return err
	}
	r.run.Search.Candidates, err = checkpoint.List(filepath.Join(r.run.Dir(), checkpoint.Folder))
	return err
}
