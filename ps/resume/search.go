// Package resume finds what a run goes on from, a checkpoint in a run folder or the replicas in the memory of hosts, holds it to its
// limits and to this run, and reads what this rank needs of it.
package resume

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fluentps/configs"
	"fluentps/ps/build"
	"fluentps/ps/checkpoint"
	"fluentps/ps/core"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/serve"
	"fluentps/ps/station"
	"fluentps/ps/train"
)

// Auto is the Options.Resume that goes on where there is something to go on from, and else begins.
const Auto = "auto"

// Search is what a rank knows of the place that its run goes on from.
type Search struct {
	station    *station.Station
	o          Options
	Dir        string   // of the run, "" without one
	Candidates []string // rank 0 only: folders of checkpoints that were not tried, the newest first
	Earlier    []string // rank 0 only: starts of this run that may have left replicas
	Adopted    string   // the start whose replicas the run goes on from
	Again      bool     // rank 0 only: the folder is that of a run which left no checkpoint
}

// New begins one.
func New(st *station.Station, o Options) *Search { return &Search{station: st, o: o} }

// Options are what is asked for.
type Options struct {
	Resume       string   // a run folder, one checkpoint of it, or Auto
	AllowChanged []string // keys of the configuration that may have other values than there
	Memory       string   // the memory file system of this host; "": /dev/shm
	Folder       *metrics.FolderSpec
}

// Origin is the checkpoint that a run goes on from, as this rank read it.
type Origin struct {
	Dir      string
	Manifest *checkpoint.Manifest
	State    LeadState
	Starts   []int64 // by worker: the iteration that it computes next
	// Unrecorded is how many iterations before it have no times in iterations.csv; rank 0 knows it when that file is written.
	Unrecorded int64

	Server        serve.State // where the rank serves
	ServerVectors [][]float32
	Worker        train.State // where it works
	WorkerVectors [][]float32
}

// TakeFolder makes the run folder on rank 0, or finds the one of the run that goes on.
func (r *Search) TakeFolder() (*metrics.RunFolder, error) {
	switch dir := r.o.Resume; dir {
	case "":
		return metrics.CreateRunFolder(*r.o.Folder)
	case Auto:
		return r.findFolder()
	default:
		if root, name, one := OneCheckpoint(dir); one {
			return r.takeOne(root, name)
		}
		dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
		if len(dirs) == 0 && (err == nil || errors.Is(err, syscall.ENOTDIR)) {
			err = noCheckpoint(dir)
		}
		if err != nil {
			return nil, err
		}
		r.Candidates = dirs
		return metrics.OpenRunFolder(dir)
	}
}

// OneCheckpoint says whether --resume names a checkpoint of a run, and not the run, whose newest is meant.
func OneCheckpoint(resume string) (root, name string, one bool) {
	root, name = filepath.Split(filepath.Clean(resume))
	root = filepath.Clean(root)
	return root, name, filepath.Base(root) == checkpoint.Folder
}

// takeOne takes up one checkpoint of a run, by the name of its folder or as the best.
func (r *Search) takeOne(root, name string) (*metrics.RunFolder, error) {
	dir, err := checkpoint.Find(root, name)
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	r.Candidates = []string{dir}
	return metrics.OpenRunFolder(filepath.Dir(root))
}

// findFolder takes up --out, or the newest run of that name that has a checkpoint. A run in --out that was killed before
// its first checkpoint begins again.
func (r *Search) findFolder() (*metrics.RunFolder, error) {
	folders := []string{r.o.Folder.Out}
	if r.o.Folder.Out == "" {
		var others int
		if folders, others = metrics.RunFolders(*r.o.Folder); others > 0 {
			r.station.Log.Warn(metrics.OthersText(*r.o.Folder, others))
		}
	}
	for _, dir := range folders {
		found, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			r.Candidates = found
			return metrics.OpenRunFolder(dir)
		}
	}
	if out := r.o.Folder.Out; out != "" && metrics.IsRunFolder(out) {
		r.Again = true
		return metrics.OpenRunFolder(out)
	}
	return metrics.CreateRunFolder(*r.o.Folder)
}

// Restore reads the newest checkpoint that is whole, on all ranks. One that is damaged is named, and the one before it
// taken.
func (r *Search) Restore() (*Origin, error) {
	if from, err := r.adopt(); err != nil || from != nil {
		return from, err
	}
	var bad []string
	for {
		var from *Origin
		var try struct {
			Dir      string
			Manifest *checkpoint.Manifest
			Problem  string
			None     bool
		}
		if r.station.Me == 0 {
			try.None = len(r.Candidates) == 0
			if !try.None {
				try.Dir, r.Candidates = r.Candidates[0], r.Candidates[1:]
				var err error
				if try.Manifest, err = checkpoint.Open(try.Dir); err != nil {
					try.Problem = err.Error()
				}
			}
		}
		if err := link.Spread(r.station.Net, &try); err != nil {
			return nil, err
		}
		switch {
		case try.None && len(bad) == 0: // nothing to go on from
			r.warnOfBeginnings()
			return nil, nil
		case try.None:
			if root, _, one := OneCheckpoint(r.o.Resume); one {
				return nil, station.Usage("--resume: the checkpoint is not whole; name another, or %s, whose newest that is whole is taken\n%s", filepath.Dir(root), strings.Join(bad, "\n"))
			}
			return nil, station.Usage("--resume: no checkpoint is whole; to begin again, leave --resume out, and name another folder with --out\n%s", strings.Join(bad, "\n"))
		}
		if try.Problem == "" {
			if err := r.fits(try.Manifest); err != nil {
				return nil, err
			}
			var err error
			if from, try.Problem, err = r.readFiles(try.Dir, try.Manifest, nil); err != nil {
				return nil, err
			}
		}
		if try.Problem == "" {
			return from, r.goOn(from, bad)
		}
		bad = append(bad, try.Problem)
	}
}

// warnOfBeginnings tells whoever asked to go on, and leaves nothing to go on from, that each job begins anew.
func (r *Search) warnOfBeginnings() {
	const text = "resume: this run leaves no checkpoints, so that auto begins it again each time"
	switch {
	case r.station.Me != 0:
	case r.station.Config.Checkpoint.Keep == 0:
		r.station.Log.Warn(text + "; set checkpoint.keep: 1 or more")
	case r.station.Config.Baseline == configs.BaselineAllreduce:
		r.station.Log.Warn(text + "; baseline allreduce has no servers that could write them")
	}
}

// goOn is told that all ranks have read this checkpoint.
func (r *Search) goOn(from *Origin, bad []string) error {
	if r.station.Me == 0 {
		for _, text := range bad {
			r.station.Log.Warn("resume: " + text)
		}
		if len(bad) > 0 {
			r.station.Log.Warn("resume: going on from the one before", "checkpoint", from.Dir)
		}
		if init, now := configs.Values(r.station.Config)["model.init"]; now && init != from.Manifest.Config["model.init"] {
			r.station.Log.Warn("resume: model.init has no effect: the parameters are those of the checkpoint; to begin with the file, leave --resume out", "checkpoint", from.Dir)
		}
	}
	r.station.Before = from.State.Trained
	return r.AlignClocks(from)
}

// AlignClocks settles which iteration each worker computes next. Where a shard closes iterations without waiting for all, its
// workers take up where it is, and so they do at all shards.
func (r *Search) AlignClocks(q *Origin) error {
	var furthest int64
	if r.station.Roles.Server(r.station.Me) >= 0 {
		for _, sh := range q.Server.Shards {
			phases, err := r.station.Config.PhasesOf(r.station.Plan.Shards[sh.ID].Rule, len(r.station.Computes), r.station.Set.Train.Rows())
			if err == nil && core.Behind(phases) {
				furthest = max(furthest, sh.Node.Closed, slices.Max(q.Starts))
			}
		}
	}
	all, err := link.Gather(r.station.Net, furthest)
	if err != nil {
		return err
	}
	if r.station.Me == 0 {
		furthest = slices.Max(all)
	}
	if err := link.Spread(r.station.Net, &furthest); err != nil {
		return err
	}
	for w, c := range q.Starts {
		q.Starts[w] = max(c, furthest)
	}
	return nil
}

// Start is where nodes go on; nil: they begin.
func (q *Origin) Start() *build.Start {
	if q == nil {
		return nil
	}
	s := &build.Start{Clocks: q.Starts, Shards: map[int32]core.Saved{}}
	for _, sh := range q.Server.Shards {
		s.Shards[sh.ID] = sh.Node
	}
	return s
}

// Text says where the run goes on.
func (q *Origin) Text() string {
	return fmt.Sprintf("Resumed: %s, of %s and %s, iteration %d, %d samples, %s of training\n", q.Dir, metrics.Count(q.Manifest.Servers, "server"), metrics.Count(q.Manifest.Workers, "worker"), q.Manifest.Iteration, q.Manifest.Samples, q.State.Trained.Round(time.Millisecond))
}
