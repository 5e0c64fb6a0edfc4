package coordinate

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/work"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics/records"
	"fluentps/ps/workload/dataset/csv"
)

// The final checkpoint: when training is over, nothing is in flight and every push was folded or dropped, so it is a cut
// under every scheme. internal/rank/resume reads it.

// savedFiles is what a rank reports of its files.
type savedFiles struct {
	Files   []checkpoint.Entry
	Worker  int // -1: the rank is no worker
	Next    int64
	Problem string
}

// writeFiles writes this rank's files into the folder of the checkpoint that is being written.
func (r *Run) writeFiles() savedFiles {
	all := savedFiles{Worker: r.station.Roles.Worker(r.station.Me)}
	in := r.draft()
	defer in.Close()
	put := func(name string, state any, vectors [][]float32) {
		e, err := checkpoint.WriteFile(in, name, state, vectors...)
		if err != nil {
			all.Problem = err.Error()
			return
		}
		all.Files = append(all.Files, e)
	}
	if r.Server != nil && r.Server.Shards() > 0 {
		state, vectors := r.Server.Save()
		put(checkpoint.ServerFile(r.station.Roles.Server(r.station.Me)), state, vectors)
	}
	if all.Worker >= 0 && all.Problem == "" {
		state, vectors, err := r.Worker.Save()
		if all.Next = state.Next; err != nil {
			all.Problem = err.Error()
			return all
		}
		put(checkpoint.WorkerFile(all.Worker), state, vectors)
	}
	return all
}

// skipFinalSave says that the run writes no final checkpoint: it keeps none, the user did not want to wait for one, the
// parameters are useless, or they are those of the checkpoint that the run resumed from.
func (l *Lead) skipFinalSave() bool {
	r := l.r
	return r.Folder == nil || r.station.Config.Checkpoint.Keep == 0 || r.Reduce != nil || l.end.diverged ||
		r.SkipCheckpoint.Load() || r.From != nil && l.counts.version == r.From.State.Version && r.Search.Adopted == ""
}

// saveLast writes the final checkpoint, all ranks together. writeErr is set on rank 0 only, and does not end the other
// ranks.
func (r *Run) saveLast() (writeErr, err error) {
	if err := r.settle(); err != nil {
		return nil, err
	}
	var draft *checkpoint.Draft
	begun := false
	if r.station.Me == 0 && !r.Lead.skipFinalSave() {
		if draft, writeErr = checkpoint.Begin(r.Folder.Folder, r.Token); draft != nil {
			begun = true
		}
	}
	if err := link.Spread(r.station.Net, &begun); err != nil || !begun {
		return writeErr, err
	}
	all, err := link.Gather(r.station.Net, r.writeFiles())
	if err != nil || r.station.Me != 0 {
		return nil, err
	}
	if err := r.Lock.Check(); err != nil {
		return nil, err // another run owns the folder now
	}
	problems := make([]string, len(all))
	m := r.manifest()
	var files []checkpoint.Entry
	for i, w := range all {
		problems[i] = w.Problem
		files = append(files, w.Files...)
		if w.Worker >= 0 {
			m.Starts[w.Worker] = w.Next
		}
	}
	if text := r.station.Net.Verdict(problems); text != "" {
		return errors.Join(errors.New(text), draft.Abandon()), nil
	}
	r.list(m, files)
	if m.State, writeErr = json.Marshal(r.Lead.save()); writeErr != nil {
		return errors.Join(writeErr, draft.Abandon()), nil
	}
	if r.Lead.checkpoints.final, writeErr = draft.Finish(m); writeErr != nil {
		return writeErr, nil
	}
	r.Lead.checkpoints.newest, r.Lead.checkpoints.manifest = r.Lead.checkpoints.final, m
	return checkpoint.Prune(r.Folder.Folder, r.station.Config.Checkpoint.Keep), nil
}

// manifest is the manifest of a checkpoint of this run at this moment, without files.
func (r *Run) manifest() *checkpoint.Manifest {
	return &checkpoint.Manifest{Written: time.Now().UTC(), Start: r.Token, Build: r.o.Build,
		Iteration: r.Lead.iteration(), Samples: r.Lead.counts.samples,
		Servers: len(r.station.Roles.Servers), Workers: len(r.station.Roles.Workers), Computing: r.station.Roles.Computes(),
		Starts: make([]int64, len(r.station.Roles.Workers)),
		Data:   r.station.Set.SHA256(), Classes: r.station.Set.ClassNames, Targets: r.targets(), Inputs: r.inputs(),
		KernelSets: r.kernelHistory(), Digest: configs.Hash(r.station.Config),
		Config: configs.Values(r.station.Config)}
}

// inputs say how rows follow from the columns of tables; nil: the data are none, or have very many.
func (r *Run) inputs() json.RawMessage {
	inputs := csv.Inputs(r.station.Set.Columns)
	if inputs == nil {
		return nil
	}
	text, err := json.Marshal(inputs)
	if err != nil {
		panic("coordinate: means and deviations are finite: " + err.Error())
	}
	return text
}

// list notes the files of a checkpoint in its manifest, and where in them each parameter lies, and what the optimizer keeps of it.
// What the file of a server holds, in which order, serve.State says; its vectors are the end of the file.
func (r *Run) list(m *checkpoint.Manifest, files []checkpoint.Entry) {
	m.Files = files
	kinds := append([]string{""}, optim.StateNames(r.station.Config.ServerRule())...)
	parts := make([][][]part, len(kinds)) // by vector of a shard and by parameter
	for k := range parts {
		parts[k] = make([][]part, len(r.station.Model.Architecture.Params()))
	}
	ranges := 0
	for server := range r.station.Roles.Servers {
		e, err := m.File(checkpoint.ServerFile(server))
		if err != nil {
			continue // it has no shards
		}
		ids, at := r.station.Plan.OfServer(int32(server)), e.Bytes
		for _, id := range ids {
			sh := &r.station.Plan.Shards[id]
			at -= sh.Bytes() * int64(layout.Vectors(r.station.Config, sh))
		}
		for _, id := range ids {
			sh := &r.station.Plan.Shards[id]
			for k := range layout.Vectors(r.station.Config, sh) {
				for _, g := range sh.Segs {
					in := checkpoint.Range{File: e.Name, Offset: at + int64(g.At-sh.Lo)*shard.ElemBytes, Bytes: int64(g.Hi-g.Lo) * shard.ElemBytes}
					parts[k][g.Param] = append(parts[k][g.Param], part{g.Lo, in})
				}
				ranges += len(sh.Segs)
				at += sh.Bytes()
			}
		}
	}
	if ranges > checkpoint.RangesMax {
		return
	}
	for k, kind := range kinds {
		for i, p := range r.station.Model.Architecture.Params() {
			t := checkpoint.Tensor{Name: p.Name, Shape: p.Shape, DType: checkpoint.DType, Ranges: joined(parts[k][i])}
			switch {
			case k == 0:
				m.Parameters = append(m.Parameters, t)
			case len(t.Ranges) > 0: // else no optimizer of a server takes it
				state := kind
				if r.station.Config.ServerRule() == "muon" && r.station.Config.TakesWhole(&r.station.Plan.Params[i]) {
					state = optim.MatrixState(k - 1)
				}
				if t.Name = "optimizer." + state + "." + p.Name; state != "" {
					m.Optimizer = append(m.Optimizer, t)
				}
			}
		}
	}
}

// part is a range of a parameter, from an element on.
type part struct {
	lo int
	at checkpoint.Range
}

// joined are the ranges of a parameter in the order of its elements; those that lie one behind the other are one.
func joined(parts []part) (all []checkpoint.Range) {
	slices.SortFunc(parts, func(a, b part) int { return a.lo - b.lo })
	for _, p := range parts {
		if n := len(all); n > 0 && all[n-1].File == p.at.File && all[n-1].Offset+all[n-1].Bytes == p.at.Offset {
			all[n-1].Bytes += p.at.Bytes
			continue
		}
		all = append(all, p.at)
	}
	return all
}

func (l *Lead) save() resume.LeadState {
	r := l.r
	end := r.TrainEnd
	if end == 0 {
		end = r.station.Transport.Now()
	}
	var dealt *work.Saved
	if c := l.deals.coordinator; c != nil {
		dealt = c.Save()
	}
	return resume.LeadState{Work: dealt, Arena: resume.ArenaOf(r.station.Plan), Accepted: l.counts.accepted,
		Version: l.counts.version, LeadMax: l.counts.leadMax, Trained: end - r.station.Began + r.station.Before,
		Loss: l.counts.epoch, Evals: l.evals.results, Target: l.evals.targetReachedS, Changes: l.changes, Sinks: r.sinkSizes()}
}

// amend adds to the final checkpoint what happened after it was written: evaluations, and the ends of the metrics files.
func (l *Lead) amend() error {
	if l.checkpoints.final == "" {
		return nil
	}
	var err error
	if l.checkpoints.manifest.State, err = json.Marshal(l.save()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return l.r.amend(l.checkpoints.final, l.checkpoints.manifest)
}

// amend replaces the manifest of a checkpoint of this run.
func (r *Run) amend(dir string, m *checkpoint.Manifest) error {
	in := r.Folder.In(filepath.Join(checkpoint.Folder, filepath.Base(dir)))
	return errors.Join(checkpoint.Amend(in, m), in.Close())
}

func (r *Run) sinkSizes() map[string]int64 {
	if r.Folder == nil {
		return nil
	}
	return records.Sizes(r.Folder.Folder, r.station.Config.Metrics.Sinks)
}
