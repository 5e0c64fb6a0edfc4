package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"fluentps/configs"
	"fluentps/ps/checkpoint"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
)

// What a checkpoint holds, and the one that is written when training is over: nothing is on its way then, every push was
// folded or dropped, so that it is a cut under every scheme. resume.go reads it.

// serverState is what the file of a server holds beside its vectors: of each shard the parameters, then the vectors of the
// optimizer.
type serverState struct {
	Shards []shardState `json:"shards"`
}

type shardState struct {
	ID    int32  `json:"id"`
	Name  string `json:"name"`
	Lo    int    `json:"lo"` // its place in the arena
	Hi    int    `json:"hi"`
	Steps int64  `json:"steps"` // commits of its optimizer
	// Vectors is how many there are of it: the parameters, and those of the optimizer.
	Vectors int        `json:"vectors"`
	Node    core.Saved `json:"node"`
}

// workerState is what the file of a worker holds beside its vectors: the residual of its pushes, if it has one, then the
// vectors of its own optimizer. Its samples are a function of the iteration.
type workerState struct {
	Next     int64 `json:"next"`
	Residual bool  `json:"residual"`
	Steps    int64 `json:"steps"` // of its own optimizer
}

// leadState is what rank 0 counts.
type leadState struct {
	Arena    string            `json:"arena"` // which parameter lies where in it
	Accepted int64             `json:"accepted"`
	Version  int64             `json:"version"`
	LeadMax  int64             `json:"lead_max"`
	Trained  time.Duration     `json:"trained_ns"` // since the run began, over all its parts
	Loss     metrics.EpochLoss `json:"loss"`
	Evals    []metrics.Evaluation
	Target   *float64         `json:"target_reached_s"`
	Sinks    map[string]int64 `json:"sinks"` // bytes of the metrics files
	// Standstills is how many runs in a row went on from this checkpoint and came no further.
	Standstills int `json:"standstills,omitempty"`
}

// save gives what is saved of a server: vectors in the order of the state, which stay its own.
func (s *serverSide) save() (state serverState, vectors [][]float32) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		of, steps := st.math.State()
		state.Shards = append(state.Shards, s.stateOf(st, steps))
		vectors = append(append(vectors, st.bufs[s.node.Shard(id).Cur].F32()), of...)
	}
	return state, vectors
}

func (s *serverSide) stateOf(st *store, steps int64) shardState {
	return shardState{ID: st.sh.ID, Name: st.sh.Name, Lo: st.sh.Lo, Hi: st.sh.Hi, Steps: steps, Vectors: layout.Vectors(s.r.cfg, st.sh), Node: s.node.Saved(st.sh.ID)}
}

func (w *workerSide) save() (state workerState, vectors [][]float32) {
	state.Next = w.node.Next()
	if w.enc.residual != nil {
		state.Residual = true
		vectors = append(vectors, w.enc.residual.F32())
	}
	if w.local != nil {
		of, steps := w.local.State()
		state.Steps, vectors = steps, append(vectors, of...)
	}
	return state, vectors
}

// written is what a rank tells of its files.
type written struct {
	Files   []checkpoint.Entry
	Worker  int // -1: the rank is none
	Next    int64
	Problem string
}

// writeFiles writes this rank's files into the folder of the checkpoint that is being written.
func (r *rank) writeFiles() written {
	all := written{Worker: r.roles.Worker(r.me)}
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
	if r.server != nil && len(r.server.node.Shards()) > 0 {
		state, vectors := r.server.save()
		put(checkpoint.ServerFile(r.roles.Server(r.me)), state, vectors)
	}
	if all.Worker >= 0 && all.Problem == "" {
		state, vectors := r.worker.save()
		all.Next = state.Next
		put(checkpoint.WorkerFile(all.Worker), state, vectors)
	}
	return all
}

// savesNot says that the run leaves no checkpoint at its end: it keeps none, nobody wants to wait for one, what it has is worth nothing, or it is that of
// the checkpoint that it went on from.
func (l *lead) savesNot() bool {
	r := l.r
	return r.dir == "" || r.cfg.Checkpoint.Keep == 0 || r.reduce != nil || l.diverged || r.hurried.Load() || r.from != nil && l.version == r.from.state.Version && r.adopted == ""
}

// saveLast writes the checkpoint of the end of training, all ranks together. unwritten is rank 0's, and no reason for the
// others to end.
func (r *rank) saveLast() (unwritten, err error) {
	if err := r.settle(); err != nil {
		return nil, err
	}
	var draft *checkpoint.Draft
	begun := false
	if r.me == 0 && !r.lead.savesNot() {
		if draft, unwritten = checkpoint.Begin(r.folder.Folder); draft != nil {
			begun = true
		}
	}
	if err := link.Spread(r.net, &begun); err != nil || !begun {
		return unwritten, err
	}
	all, err := link.Gather(r.net, r.writeFiles())
	if err != nil || r.me != 0 {
		return nil, err
	}
	if err := r.lock.Check(); err != nil {
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
	if text := r.net.Verdict(problems); text != "" {
		return errors.Join(errors.New(text), draft.Abandon()), nil
	}
	if m.State, unwritten = json.Marshal(r.lead.save()); unwritten != nil {
		return errors.Join(unwritten, draft.Abandon()), nil
	}
	if r.lead.saved, unwritten = draft.Finish(m); unwritten != nil {
		return unwritten, nil
	}
	r.lead.newest, r.lead.manifest = r.lead.saved, m
	return checkpoint.Prune(r.folder.Folder, r.cfg.Checkpoint.Keep), nil
}

// manifest is that of a checkpoint of this run as it is now, without files.
func (r *rank) manifest() *checkpoint.Manifest {
	return &checkpoint.Manifest{Written: time.Now().UTC(), Build: r.o.Build, Iteration: r.lead.iteration(), Samples: r.lead.samples,
		Servers: len(r.roles.Servers), Workers: len(r.roles.Workers), Computing: len(r.computes), Starts: make([]int64, len(r.roles.Workers)),
		Data: r.set.SHA256(), KernelSets: r.kernelHistory(), Digest: configs.Hash(r.cfg), Config: configs.Values(r.cfg)}
}

func (l *lead) save() leadState {
	r := l.r
	end := r.trainEnd
	if end == 0 {
		end = r.t.Now()
	}
	return leadState{Arena: arenaOf(r.plan), Accepted: l.accepted, Version: l.version, LeadMax: l.leadMax, Trained: end - r.trainStart + r.before,
		Loss: l.epoch, Evals: l.evals, Target: l.target, Sinks: r.sinkSizes()}
}

// amend notes in the checkpoint of the end what was seen after it was written: evaluations, and the ends of the metrics.
func (l *lead) amend() error {
	if l.saved == "" {
		return nil
	}
	var err error
	if l.manifest.State, err = json.Marshal(l.save()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return l.r.amend(l.saved, l.manifest)
}

// amend replaces the manifest of a checkpoint of this run.
func (r *rank) amend(dir string, m *checkpoint.Manifest) error {
	in := r.folder.In(filepath.Join(checkpoint.Folder, filepath.Base(dir)))
	return errors.Join(checkpoint.Amend(in, m), in.Close())
}

func (r *rank) sinkSizes() map[string]int64 {
	if r.folder == nil {
		return nil
	}
	return r.folder.SinkSizes(r.cfg.Metrics.Sinks)
}
