// Package resume finds the checkpoint that a run resumes from, in a run folder or as replicas in the memory of hosts. It compares the
// checkpoint with its limits and with this run, and reads the part that this rank needs.
package resume

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Auto is the Options.Resume that resumes if there is a checkpoint, and starts a new run otherwise.
const Auto = "auto"

// Search is the search of a rank for the checkpoint that its run resumes from.
type Search struct {
	station    *station.Station
	o          Options
	Dir        string   // the run folder; "" if the run has none
	Candidates []string // rank 0 only: folders of checkpoints that were not tried yet, the newest first
	Earlier    []string // rank 0 only: starts of this run that may have left replicas
	Adopted    string   // the start whose replicas the run resumes from; "" for none
	Again      bool     // rank 0 only: the folder belongs to a run that left no checkpoint, and that starts again
}

// New makes the search of a rank.
func New(st *station.Station, o Options) *Search { return &Search{station: st, o: o} }

// Options are the user's options for resuming.
type Options struct {
	Resume       string   // a run folder, one checkpoint of a run, Auto, or "" for a new run
	AllowChanged []string // keys of the configuration that may differ from the checkpoint
	Memory       string   // the memory file system of this host; "": /dev/shm
	Folder       *metrics.FolderSpec
}

// Origin is the checkpoint that a run resumes from, as this rank read it.
type Origin struct {
	Dir      string
	Manifest *checkpoint.Manifest
	State    LeadState
	Starts   []int64 // by worker: its next iteration
	// Unrecorded is how many iterations before the checkpoint have no times in iterations.csv. Only rank 0 sets it, when it writes that file.
	Unrecorded int64

	Server        serve.State // if the rank serves
	ServerVectors [][]float32
	Worker        train.State // if the rank works
	WorkerVectors [][]float32
}

// TakeFolder makes the run folder on rank 0, or finds the folder of the run that resumes.
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

// OneCheckpoint reports whether --resume names one checkpoint of a run. If not, it names a run, and stands for its newest checkpoint.
func OneCheckpoint(resume string) (root, name string, one bool) {
	root, name = filepath.Split(filepath.Clean(resume))
	root = filepath.Clean(root)
	return root, name, filepath.Base(root) == checkpoint.Folder
}

// takeOne selects one checkpoint of a run, by the name of its folder or as the best.
func (r *Search) takeOne(root, name string) (*metrics.RunFolder, error) {
	dir, err := checkpoint.Find(root, name)
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	r.Candidates = []string{dir}
	return metrics.OpenRunFolder(filepath.Dir(root))
}

// findFolder selects --out, or the newest run of that name with a checkpoint. A run in --out that was killed before its first checkpoint
// starts again in the same folder.
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

// Restore reads the newest complete checkpoint, on all ranks. If a checkpoint is damaged, Restore logs that and tries the one before it.
// It returns nil if the run does not resume, and an error if no checkpoint is complete.
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
		case try.None && len(bad) == 0: // the run has no checkpoint
			r.warnNoCheckpoints()
			return nil, nil
		case try.None:
			if root, _, one := OneCheckpoint(r.o.Resume); one {
				return nil, station.Usage("--resume: the checkpoint is not complete; name another, or %s for its newest "+
					"complete checkpoint\n%s", filepath.Dir(root), strings.Join(bad, "\n"))
			}
			return nil, station.Usage("--resume: no checkpoint is complete; to start again, leave --resume out, and name "+
				"another folder with --out\n%s", strings.Join(bad, "\n"))
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
			return from, r.finish(from, bad)
		}
		bad = append(bad, try.Problem)
	}
}

// warnNoCheckpoints warns a user of --resume auto whose configuration writes no checkpoints.
func (r *Search) warnNoCheckpoints() {
	const text = "resume: this run leaves no checkpoints, so auto starts it again each time"
	switch {
	case r.station.Me != 0:
	case r.station.Config.Checkpoint.Keep == 0:
		r.station.Log.Warn(text + "; set checkpoint.keep: 1 or more")
	case r.station.Config.Baseline == configs.BaselineAllreduce:
		r.station.Log.Warn(text + "; baseline allreduce has no servers to write them")
	}
}

// finish completes the restore after all ranks have read the checkpoint: it logs the damaged ones and aligns the clocks.
func (r *Search) finish(from *Origin, bad []string) error {
	if r.station.Me == 0 {
		for _, text := range bad {
			r.station.Log.Warn("resume: " + text)
		}
		if len(bad) > 0 {
			r.station.Log.Warn("resume: going on from the one before", "checkpoint", from.Dir)
		}
		if r.station.Config.Data.Deal.Sampler == dataset.SamplerScript {
			r.station.Log.Warn("resume: data.sampler is script: a checkpoint does not hold where the program is in its samples, so the " +
				"parameters may differ from those of a run that was not interrupted")
		}
		if workload.IsExternal(r.station.Config.Model.Name) && layout.Teams(r.station.Config) {
			r.station.Log.Warn("resume: cluster.hierarchy is node: a checkpoint holds the state of each worker's own program, not of the programs " +
				"that compute for it, so these draw other random numbers than in a run that was not interrupted")
		}
		if init, now := configs.Values(r.station.Config)["model.init"]; now && init != from.Manifest.Config["model.init"] {
			r.station.Log.Warn("resume: model.init has no effect: the parameters are those of the checkpoint; to start with "+
				"the file, leave --resume out", "checkpoint", from.Dir)
		}
	}
	r.station.Before = from.State.Trained
	return r.AlignClocks(from)
}

// AlignClocks sets the next iteration of each worker. If the scheme of a shard closes iterations without waiting for all workers, the
// workers start at that shard's iteration, at all shards.
func (r *Search) AlignClocks(q *Origin) error {
	var furthest int64
	if r.station.Roles.Server(r.station.Me) >= 0 {
		for _, sh := range q.Server.Shards {
			phases, err := r.station.Config.PhasesOf(r.station.Plan.Shards[sh.ID].Rule, r.station.Roles.Computes(), r.station.Set.Train.Rows())
			if err == nil && inturn.Behind(phases) {
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

// Start returns the state with which nodes start; nil for a new run.
func (q *Origin) Start() *build.Start {
	if q == nil {
		return nil
	}
	s := &build.Start{Clocks: q.Starts, Shards: map[int32]servernode.Saved{}}
	for _, sh := range q.Server.Shards {
		s.Shards[sh.ID] = sh.Node
	}
	return s
}

// Text returns the line about the checkpoint that the run prints.
func (q *Origin) Text() string {
	return fmt.Sprintf("Resumed: %s, of %s and %s, iteration %d, %d samples, %s of training\n", q.Dir,
		metrics.Count(q.Manifest.Servers, "server"), metrics.Count(q.Manifest.Workers, "worker"), q.Manifest.Iteration,
		q.Manifest.Samples, q.State.Trained.Round(time.Millisecond))
}
