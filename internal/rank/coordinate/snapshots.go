package coordinate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/snapshot"
	"fluentps/internal/disk/checkpoint"
)

// snapshots drives the coordinator of checkpoints on rank 0: what happens becomes an event, and the effects of the event
// are carried out.
type snapshots struct {
	l          *Lead
	c          *snapshot.Coordinator
	queue      []snapshot.Event // the current event, and those that arrived since; its memory is reused
	busy       bool             // the current event is being handled
	continuing bool             // the nodes that are done have paused, and new ones are being made
	settled    bool             // no checkpoint is in progress, and none will be

	draft        *checkpoint.Draft
	manifest     *checkpoint.Manifest // of the checkpoint in progress; nil until the lead shard has reached its version
	pausedAt     time.Duration
	paused       time.Duration // how long training stood still for it
	writeTimeMax time.Duration // of the file that took longest
	bytes        int64         // of its files
}

// newSnapshots makes the driver for a run whose last checkpoint was at a time of training and a version.
func newSnapshots(l *Lead, at time.Duration, version int64) *snapshots {
	r, k := l.r, &l.station.Config.Checkpoint
	c := snapshot.Config{Every: k.Every, EveryUpdates: k.EveryUpdates, Files: l.evals.owners +
		len(r.station.Roles.Workers), Pauses: r.pauses(), Judges: l.judges(),
		Place: func(rank int32) string { return r.station.Net.Place(int(rank)) }}
	if q := r.Replicas; q != nil {
		c.Copies = q.Copies()
		for rank, node := range r.station.NodeOf {
			if rank == node {
				c.Hosts = append(c.Hosts, int32(rank))
			}
		}
	}
	return &snapshots{l: l, c: snapshot.New(c, at, version)}
}

// BeginSnapshots begins to coordinate checkpoints, on rank 0 of a run that makes some.
func (r *Run) BeginSnapshots() {
	if r.Lead == nil || !r.station.Config.Checkpoint.Periodic() || r.Folder == nil || r.Reduce != nil {
		return
	}
	at, version := time.Duration(0), int64(0)
	if r.From != nil {
		at, version = r.From.State.Trained, r.From.State.Version
	}
	r.Lead.checkpoints.snapshots = newSnapshots(r.Lead, at, version)
}

// step gives the coordinator an event and obeys its effects. Events that arise meanwhile follow.
func (s *snapshots) step(e snapshot.Event) {
	if s == nil {
		return
	}
	if s.queue = append(s.queue, e); s.busy {
		return
	}
	s.busy = true
	for next := 0; next < len(s.queue); next++ {
		effects := s.c.Step(s.queue[next])
		for i := range effects {
			s.obey(&effects[i])
		}
	}
	s.queue, s.busy = s.queue[:0], false
}

// tick looks whether a checkpoint is due.
func (s *snapshots) tick() {
	if s == nil {
		return
	}
	if r := s.l.r; s.l.end.reason == "" && r.TrainEnd == 0 {
		s.step(snapshot.Event{Kind: snapshot.Tick, At: r.station.Now(), Version: s.l.counts.version, Spent: r.stopping()})
	}
}

func (s *snapshots) obey(e *snapshot.Effect) {
	l, r := s.l, s.l.r
	switch e.Kind {
	case snapshot.Begin:
		s.begin()
	case snapshot.Name:
		r.Server.Step(core.Input{Kind: core.SaveSoon})
	case snapshot.Pause:
		s.pausedAt = r.station.Now()
		r.Server.Step(core.Input{Kind: core.PauseNow})
	case snapshot.GoOn:
		s.continuing = true
	case snapshot.End:
	case snapshot.Finish:
		s.finish(e.Files)
	case snapshot.Abandon:
		s.abandon(e.Problem)
	case snapshot.Made:
		l.checkpoints.newest = e.Folder
		if e.Problem != "" {
			r.station.Log.Warn("checkpoint " + e.Folder + " was written, but earlier ones were not removed: " + e.Problem)
		}
		r.station.Log.Info("checkpoint", "folder", e.Folder, "iteration", s.manifest.Iteration, "paused_s",
			s.paused.Seconds(), "bytes", s.bytes, "written_s", s.writeTimeMax.Seconds())
	case snapshot.Lost:
		r.noCheckpoint(e.Problem + l.newestText())
	case snapshot.Judge:
		l.evals.online.judgeNext(e.Folder)
	case snapshot.Tell:
		s.tellHost(e)
	case snapshot.Settled:
		s.settled = true
	default:
		panic(fmt.Sprintf("coordinate: snapshot effect %v", e))
	}
}

// inBackground does something in the run folder on a goroutine, and then gives the coordinator the event.
func (s *snapshots) inBackground(do func() snapshot.Event) {
	r := s.l.r
	go func() {
		defer r.station.Guard()
		e := do()
		r.station.Transport.Post(func() { s.step(e) })
	}()
}

func (s *snapshots) begin() {
	s.manifest, s.paused, s.writeTimeMax, s.bytes = nil, 0, 0, 0
	folder, start := s.l.r.Folder.Folder, s.l.r.Token
	s.inBackground(func() snapshot.Event {
		draft, err := checkpoint.Begin(folder, start)
		if err != nil {
			return snapshot.Event{Kind: snapshot.Begun, Problem: problemOf(err)}
		}
		s.draft = draft // not read before the Begun event
		return snapshot.Event{Kind: snapshot.Begun, Number: draft.Number()}
	})
}

// Kept is called when the lead shard was kept at the version to be saved.
func (l *Lead) Kept(clock int64) {
	l.checkpoints.snapshots.named(slices.Repeat([]int64{clock}, len(l.station.Roles.Workers)))
}

// named is called when the lead shard has reached the version to be saved, with each worker's next iteration. The manifest
// is made here, because it describes the run at this version.
func (s *snapshots) named(starts []int64) {
	e := snapshot.Event{Kind: snapshot.Named}
	m := s.l.r.manifest()
	m.Starts = starts
	var err error
	if m.State, err = json.Marshal(s.l.save()); err != nil {
		e.Problem = fmt.Sprintf("rank 0: %v", err)
	}
	s.manifest = m
	s.step(e)
}

// fileSaved notes a file that was written.
func (s *snapshots) fileSaved(f wire.FileSaved) {
	if f.Place == wire.InFolder {
		s.writeTimeMax, s.bytes = max(s.writeTimeMax, f.Took), s.bytes+f.Bytes
	}
	s.step(snapshot.Event{Kind: snapshot.Saved, File: f})
}

func (s *snapshots) finish(files []wire.FileSaved) {
	r := s.l.r
	m, draft, keep := *s.manifest, s.draft, r.station.Config.Checkpoint.Keep
	r.list(&m, entriesOf(files))
	s.inBackground(func() snapshot.Event {
		if err := r.Lock.Check(); err != nil { // another run owns the folder now
			r.station.Transport.Post(func() { r.station.Net.Fail(err) })
			return snapshot.Event{Kind: snapshot.Finished, Problem: problemOf(err)}
		}
		dir, err := r.finishDraft(draft, &m, keep)
		return snapshot.Event{Kind: snapshot.Finished, Folder: dir, Problem: problemOf(err)}
	})
}

func (s *snapshots) abandon(why string) {
	draft := s.draft
	s.inBackground(func() snapshot.Event {
		if err := draft.Abandon(); err != nil { // the next checkpoint removes the rest when it begins
			why = "an unfinished checkpoint could not be removed: " + problemOf(err)
		}
		return snapshot.Event{Kind: snapshot.Finished, Problem: why}
	})
}

// tellHost sends a host the manifest of a replica, or the message that there is none.
func (s *snapshots) tellHost(e *snapshot.Effect) {
	m := *s.manifest
	m.Number = e.Number
	s.l.r.list(&m, entriesOf(e.Files))
	var text []byte
	if e.Problem == "" {
		var err error
		if text, err = m.Text(); err != nil {
			s.l.station.Net.Fail(err)
			return
		}
	}
	s.l.r.Replicas.SendManifest(int(e.Host), e.Version, text)
}

func entriesOf(files []wire.FileSaved) (list []checkpoint.Entry) {
	for i := range files {
		list = append(list, entryOf(&files[i]))
	}
	return list
}

// problemOf is the text of an error for a warning that names its subject already; "" if err is nil.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "checkpoint: "), "checkpoints: ")
}

// stopped tells the coordinator that training is to end. cut: the run was stopped early. diverged: the parameters are
// useless, for that reason.
func (s *snapshots) stopped(cut bool, diverged string) {
	s.step(snapshot.Event{Kind: snapshot.Stop, Cut: cut, Problem: diverged})
}

// pausing says that all workers were asked to stop for a pause.
func (s *snapshots) pausing() bool { return s != nil && (s.c.Pausing() || s.continuing) }

// nodesDone is called when all nodes are done. It returns true if that was a pause.
func (s *snapshots) nodesDone(spent bool) bool {
	s.continuing = false
	s.step(snapshot.Event{Kind: snapshot.NodesDone, Spent: spent})
	return s.continuing
}
