package runtime

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
)

// ResumeAuto is the Options.Resume that goes on where there is something to go on from, and else begins.
const ResumeAuto = "auto"

// origin is the checkpoint that a run goes on from, as this rank read it.
type origin struct {
	dir      string
	manifest *checkpoint.Manifest
	state    leadState
	starts   []int64 // by worker: the iteration that it computes next
	// unrecorded is how many iterations before it have no times in iterations.csv; rank 0 knows it when that file is written.
	unrecorded int64

	server        serverState // where the rank serves
	serverVectors [][]float32
	worker        workerState // where it works
	workerVectors [][]float32
}

// takeFolder makes the run folder on rank 0, or finds the one of the run that goes on.
func (r *rank) takeFolder() (*metrics.RunFolder, error) {
	switch dir := r.o.Resume; dir {
	case "":
		return metrics.CreateRunFolder(*r.o.Folder)
	case ResumeAuto:
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
		r.candidates = dirs
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
func (r *rank) takeOne(root, name string) (*metrics.RunFolder, error) {
	if name == checkpoint.BestName {
		switch b, err := checkpoint.ReadBest(root); {
		case err != nil:
			return nil, err
		case b == nil:
			return nil, fmt.Errorf("--resume: %s has no best checkpoint: checkpoint.best was none, or none was looked at yet; name the run folder, %s, whose newest is taken", root, filepath.Dir(root))
		default:
			name = b.Checkpoint
		}
	}
	dirs, err := checkpoint.List(root)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, name)
	if !slices.Contains(dirs, dir) {
		if len(dirs) == 0 {
			return nil, fmt.Errorf("--resume: there is no checkpoint %s, nor another in %s", dir, root)
		}
		return nil, fmt.Errorf("--resume: there is no checkpoint %s; the newest of %d in %s is %s", dir, len(dirs), root, filepath.Base(dirs[0]))
	}
	r.candidates = []string{dir}
	return metrics.OpenRunFolder(filepath.Dir(root))
}

// findFolder takes up --out, or the newest run of that name that has a checkpoint. A run in --out that was killed before
// its first checkpoint begins again.
func (r *rank) findFolder() (*metrics.RunFolder, error) {
	folders := []string{r.o.Folder.Out}
	if r.o.Folder.Out == "" {
		var others int
		if folders, others = metrics.RunFolders(*r.o.Folder); others > 0 {
			r.log.Warn(metrics.OthersText(*r.o.Folder, others))
		}
	}
	for _, dir := range folders {
		found, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			r.candidates = found
			return metrics.OpenRunFolder(dir)
		}
	}
	if out := r.o.Folder.Out; out != "" && metrics.IsRunFolder(out) {
		r.again = true
		return metrics.OpenRunFolder(out)
	}
	return metrics.CreateRunFolder(*r.o.Folder)
}

// restore reads the newest checkpoint that is whole, on all ranks. One that is damaged is named, and the one before it
// taken.
func (r *rank) restore() error {
	if adopted, err := r.adopt(); err != nil || adopted {
		return err
	}
	var bad []string
	for {
		var try struct {
			Dir      string
			Manifest *checkpoint.Manifest
			Problem  string
			None     bool
		}
		if r.me == 0 {
			try.None = len(r.candidates) == 0
			if !try.None {
				try.Dir, r.candidates = r.candidates[0], r.candidates[1:]
				var err error
				if try.Manifest, err = checkpoint.Open(try.Dir); err != nil {
					try.Problem = err.Error()
				}
			}
		}
		if err := link.Spread(r.net, &try); err != nil {
			return err
		}
		switch {
		case try.None && len(bad) == 0: // nothing to go on from
			r.warnOfBeginnings()
			return nil
		case try.None:
			if root, _, one := OneCheckpoint(r.o.Resume); one {
				return usage("--resume: the checkpoint is not whole; name another, or %s, whose newest that is whole is taken\n%s", filepath.Dir(root), strings.Join(bad, "\n"))
			}
			return usage("--resume: no checkpoint is whole; to begin again, leave --resume out, and name another folder with --out\n%s", strings.Join(bad, "\n"))
		}
		if try.Problem == "" {
			if err := r.fits(try.Manifest); err != nil {
				return err
			}
			var err error
			if try.Problem, err = r.readFiles(try.Dir, try.Manifest, nil); err != nil {
				return err
			}
		}
		if try.Problem == "" {
			return r.goOn(bad)
		}
		bad = append(bad, try.Problem)
	}
}

// warnOfBeginnings tells whoever asked to go on, and leaves nothing to go on from, that each job begins anew.
func (r *rank) warnOfBeginnings() {
	const text = "resume: this run leaves no checkpoints, so that auto begins it again each time"
	switch {
	case r.me != 0:
	case r.cfg.Checkpoint.Keep == 0:
		r.log.Warn(text + "; set checkpoint.keep: 1 or more")
	case r.cfg.Baseline == configs.BaselineAllreduce:
		r.log.Warn(text + "; baseline allreduce has no servers that could write them")
	}
}

// goOn is told that all ranks have read the checkpoint r.from.
func (r *rank) goOn(bad []string) error {
	if r.me == 0 {
		for _, text := range bad {
			r.log.Warn("resume: " + text)
		}
		if len(bad) > 0 {
			r.log.Warn("resume: going on from the one before", "checkpoint", r.from.dir)
		}
	}
	r.before = r.from.state.Trained
	return r.alignClocks(r.from)
}

// alignClocks settles which iteration each worker computes next. Where a shard closes iterations without waiting for all, its
// workers take up where it is, and so they do at all shards.
func (r *rank) alignClocks(q *origin) error {
	var furthest int64
	if r.roles.Server(r.me) >= 0 {
		for _, sh := range q.server.Shards {
			phases, err := r.cfg.PhasesOf(r.plan.Shards[sh.ID].Rule, len(r.computes), r.set.Train.Rows())
			if err == nil && core.Behind(phases) {
				furthest = max(furthest, sh.Node.Closed, slices.Max(q.starts))
			}
		}
	}
	all, err := link.Gather(r.net, furthest)
	if err != nil {
		return err
	}
	if r.me == 0 {
		furthest = slices.Max(all)
	}
	if err := link.Spread(r.net, &furthest); err != nil {
		return err
	}
	for w, c := range q.starts {
		q.starts[w] = max(c, furthest)
	}
	return nil
}

// start is where nodes go on; nil: they begin.
func (q *origin) start() *build.Start {
	if q == nil {
		return nil
	}
	s := &build.Start{Clocks: q.starts, Shards: map[int32]core.Saved{}}
	for _, sh := range q.server.Shards {
		s.Shards[sh.ID] = sh.Node
	}
	return s
}

// resumeSides puts the sides of this rank where the checkpoint was made.
func (r *rank) resumeSides() error {
	if r.lead != nil {
		r.lead.resume(r.from)
	}
	if r.server != nil {
		r.server.resume(r.from)
	}
	if r.worker != nil && r.worker.node != nil {
		return r.worker.resume(r.from)
	}
	return nil
}

// resume puts a server where the checkpoint was made: the parameters of its stores, the optimizers, and the node.
func (s *serverSide) resume(q *origin) {
	saved := map[int32]core.Saved{}
	vectors := q.serverVectors
	for _, of := range q.server.Shards {
		st := s.stores[of.ID]
		state, _ := st.math.State()
		copy(st.bufs[0].F32(), vectors[0])
		for i, v := range state {
			copy(v, vectors[1+i])
		}
		st.math.Resume(of.Steps)
		vectors = vectors[1+len(state):]
		saved[of.ID] = of.Node
	}
	s.node.Resume(q.starts, saved)
	q.serverVectors = nil
}

// resume puts back what a worker keeps beside the parameters.
func (w *workerSide) resume(q *origin) error {
	vectors := q.workerVectors
	q.workerVectors = nil
	var into [][]float32
	if w.enc.residual != nil && q.worker.Residual {
		into = append(into, w.enc.residual.F32())
	}
	if w.local != nil {
		state, _ := w.local.State()
		into = append(into, state...)
		w.local.Resume(q.worker.Steps)
	}
	if len(into) != len(vectors) {
		return fmt.Errorf("checkpoint %s: worker %d kept %d vectors, and needs %d now; go on with the payload and push of then", q.dir, w.me, len(vectors), len(into))
	}
	for i, v := range vectors {
		if len(v) != len(into[i]) {
			return fmt.Errorf("checkpoint %s: worker %d kept a vector of %d elements, and it has %d now", q.dir, w.me, len(v), len(into[i]))
		}
		copy(into[i], v)
	}
	return nil
}

// resume takes up what rank 0 counted.
func (l *lead) resume(q *origin) {
	s := &q.state
	l.accepted, l.samples, l.version, l.leadMax = s.Accepted, q.manifest.Samples, s.Version, s.LeadMax
	rows := l.epoch.Rows
	l.epoch = s.Loss
	l.epoch.Rows = rows
	l.evals, l.target = s.Evals, s.Target
	if l.newest = q.dir; l.r.adopted != "" { // that is gone with the next one
		l.newest = ""
		if dirs := l.r.candidates; len(dirs) > 0 {
			l.newest = dirs[0]
		}
	}
	l.window.from = s.Trained
	l.before = l.samples
}

// openSinks opens the metrics files: new ones, or those of the run that goes on.
func (r *rank) openSinks() (metrics.Sink, error) {
	switch {
	case r.from != nil:
		return r.folder.ResumeSinks(r.cfg.Metrics.Sinks, r.from.state.Sinks, len(r.cfg.Sync))
	case r.again:
		return r.folder.ResumeSinks(r.cfg.Metrics.Sinks, nil, len(r.cfg.Sync))
	}
	return r.folder.OpenSinks(r.cfg.Metrics.Sinks, len(r.cfg.Sync))
}

// keptIterations are the rows of iterations.csv before the checkpoint. It says how many iterations before it have none.
func (r *rank) keptIterations() (rows []byte, err error) {
	if r.from == nil || r.dir == "" {
		return nil, nil
	}
	starts := r.from.manifest.Starts
	if m := r.from.manifest; m.Computing == len(r.computes) && m.Computing > m.Workers { // as many on each host
		starts = make([]int64, len(r.computes))
		for i, rank := range r.computes {
			starts[i] = r.from.starts[r.roles.Leader(rank)]
		}
	}
	rows, r.from.unrecorded, err = r.folder.KeptIterations(starts)
	if n := r.from.unrecorded; n > 0 {
		r.log.Warn(fmt.Sprintf("iterations.csv lacks the times of %d iterations before iteration %d, over all workers: a part of a run that is killed leaves none, and a long one only its first", n, r.from.manifest.Iteration))
	}
	return rows, err
}

// text says where the run goes on.
func (q *origin) text() string {
	return fmt.Sprintf("Resumed: %s, of %s and %s, iteration %d, %d samples, %s of training\n", q.dir, metrics.Count(q.manifest.Servers, "server"), metrics.Count(q.manifest.Workers, "worker"), q.manifest.Iteration, q.manifest.Samples, q.state.Trained.Round(time.Millisecond))
}
