package coordinate

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"fluentps/configs"
	"fluentps/ps/checkpoint"
	"fluentps/ps/link"
	"fluentps/ps/resume"
)

// What a checkpoint holds, and the one that is written when training is over: nothing is on its way then, every push was
// folded or dropped, so that it is a cut under every scheme. ps/resume reads it.

// written is what a rank tells of its files.
type written struct {
	Files   []checkpoint.Entry
	Worker  int // -1: the rank is none
	Next    int64
	Problem string
}

// writeFiles writes this rank's files into the folder of the checkpoint that is being written.
func (r *Run) writeFiles() written {
	all := written{Worker: r.station.Roles.Worker(r.station.Me)}
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
		state, vectors := r.Worker.Save()
		all.Next = state.Next
		put(checkpoint.WorkerFile(all.Worker), state, vectors)
	}
	return all
}

// skipFinalSave says that the run leaves no checkpoint at its end: it keeps none, nobody wants to wait for one, what it has is worth
// nothing, or it is that of the checkpoint that it went on from.
func (l *Lead) skipFinalSave() bool {
	r := l.r
	return r.Folder == nil || r.station.Config.Checkpoint.Keep == 0 || r.Reduce != nil || l.end.diverged || r.Hurried.Load() || r.From != nil && l.counts.version == r.From.State.Version && r.Search.Adopted == ""
}

// saveLast writes the checkpoint of the end of training, all ranks together. unwritten is rank 0's, and no reason for the
// others to end.
func (r *Run) saveLast() (unwritten, err error) {
	if err := r.settle(); err != nil {
		return nil, err
	}
	var draft *checkpoint.Draft
	begun := false
	if r.station.Me == 0 && !r.Lead.skipFinalSave() {
		if draft, unwritten = checkpoint.Begin(r.Folder.Folder); draft != nil {
			begun = true
		}
	}
	if err := link.Spread(r.station.Net, &begun); err != nil || !begun {
		return unwritten, err
	}
	all, err := link.Gather(r.station.Net, r.writeFiles())
	if err != nil || r.station.Me != 0 {
		return nil, err
	}
	if err := r.Lock.Check(); err != nil {
		return nil, err // what is in the folder is another run's
	}
	problems := make([]string, len(all))
	m := r.manifest()
	for i, w := range all {
		problems[i] = w.Problem
		m.Files = append(m.Files, w.Files...)
		if w.Worker >= 0 {
			m.Starts[w.Worker] = w.Next
		}
	}
	if text := r.station.Net.Verdict(problems); text != "" {
		return errors.Join(errors.New(text), draft.Abandon()), nil
	}
	if m.State, unwritten = json.Marshal(r.Lead.save()); unwritten != nil {
		return errors.Join(unwritten, draft.Abandon()), nil
	}
	if r.Lead.kept.saved, unwritten = draft.Finish(m); unwritten != nil {
		return unwritten, nil
	}
	r.Lead.kept.newest, r.Lead.kept.manifest = r.Lead.kept.saved, m
	return checkpoint.Prune(r.Folder.Folder, r.station.Config.Checkpoint.Keep), nil
}

// manifest is that of a checkpoint of this run as it is now, without files.
func (r *Run) manifest() *checkpoint.Manifest {
	return &checkpoint.Manifest{Written: time.Now().UTC(), Build: r.o.Build, Iteration: r.Lead.iteration(), Samples: r.Lead.counts.samples,
		Servers: len(r.station.Roles.Servers), Workers: len(r.station.Roles.Workers), Computing: len(r.station.Computes), Starts: make([]int64, len(r.station.Roles.Workers)),
		Data: r.station.Set.SHA256(), KernelSets: r.kernelHistory(), Digest: configs.Hash(r.station.Config), Config: configs.Values(r.station.Config)}
}

func (l *Lead) save() resume.LeadState {
	r := l.r
	end := r.TrainEnd
	if end == 0 {
		end = r.station.Transport.Now()
	}
	return resume.LeadState{Arena: resume.ArenaOf(r.station.Plan), Accepted: l.counts.accepted, Version: l.counts.version, LeadMax: l.counts.leadMax, Trained: end - r.station.Began + r.station.Before,
		Loss: l.counts.epoch, Evals: l.looks.evals, Target: l.looks.target, Sinks: r.sinkSizes()}
}

// amend notes in the checkpoint of the end what was seen after it was written: evaluations, and the ends of the metrics.
func (l *Lead) amend() error {
	if l.kept.saved == "" {
		return nil
	}
	var err error
	if l.kept.manifest.State, err = json.Marshal(l.save()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return l.r.amend(l.kept.saved, l.kept.manifest)
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
	return r.Folder.SinkSizes(r.station.Config.Metrics.Sinks)
}
