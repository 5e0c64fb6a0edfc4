package coordinate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/core"
	"fluentps/ps/snapshot"
)

// snapshots drives the coordinator of checkpoints on rank 0: what has happened becomes an event, and what it answers is done.
type snapshots struct {
	l       *Lead
	c       *snapshot.Coordinator
	queue   []snapshot.Event // this one, and those that came while it was obeyed; its memory is used again
	busy    bool             // one is
	goOn    bool             // nodes that are done have paused, and new ones are made
	settled bool

	draft    *checkpoint.Draft
	manifest *checkpoint.Manifest // of the checkpoint that is made; nil until the lead shard has come to its version
	pausedAt time.Duration
	paused   time.Duration // how long training stood still for it
	took     time.Duration // to write the file that took longest
	bytes    int64         // of its files
}

// newSnapshots makes one for a run whose last checkpoint was at a time of training and a version.
func newSnapshots(l *Lead, at time.Duration, version int64) *snapshots {
	r, k := l.r, &l.station.Config.Checkpoint
	c := snapshot.Config{Every: k.Every, EveryUpdates: k.EveryUpdates, Files: l.looks.owners + len(r.station.Roles.Workers), Pauses: r.pauses(), Judges: l.judges(),
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

// BeginSnapshots begins to coordinate them, on rank 0 of a run that makes some.
func (r *Run) BeginSnapshots() {
	if r.Lead == nil || !r.station.Config.Checkpoint.Periodic() || r.Folder == nil || r.Reduce != nil {
		return
	}
	at, version := time.Duration(0), int64(0)
	if r.From != nil {
		at, version = r.From.State.Trained, r.From.State.Version
	}
	r.Lead.kept.snapshots = newSnapshots(r.Lead, at, version)
}

// step tells the coordinator and obeys. What happens meanwhile is told behind it.
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
		s.goOn = true
	case snapshot.End:
	case snapshot.Finish:
		s.finish(e.Files)
	case snapshot.Abandon:
		s.abandon(e.Problem)
	case snapshot.Made:
		l.kept.newest = e.Folder
		if e.Problem != "" {
			r.station.Log.Warn("checkpoint " + e.Folder + " is there, but earlier ones stay: " + e.Problem)
		}
		r.station.Log.Info("checkpoint", "folder", e.Folder, "iteration", s.manifest.Iteration, "paused_s", s.paused.Seconds(), "bytes", s.bytes, "written_s", s.took.Seconds())
	case snapshot.Lost:
		r.noCheckpoint(e.Problem + l.newestText())
	case snapshot.Judge:
		l.looks.online.judgeNext(e.Folder)
	case snapshot.Tell:
		s.tellHost(e)
	case snapshot.Settled:
		s.settled = true
	default:
		panic(fmt.Sprintf("coordinate: snapshot effect %v", e))
	}
}

// beside does something at the run folder on a goroutine, and then tells the coordinator.
func (s *snapshots) beside(do func() snapshot.Event) {
	r := s.l.r
	go func() {
		defer r.station.Guard()
		e := do()
		r.station.Transport.Post(func() { s.step(e) })
	}()
}

func (s *snapshots) begin() {
	s.manifest, s.paused, s.took, s.bytes = nil, 0, 0, 0
	folder := s.l.r.Folder.Folder
	s.beside(func() snapshot.Event {
		draft, err := checkpoint.Begin(folder)
		if err != nil {
			return snapshot.Event{Kind: snapshot.Begun, Problem: problemOf(err)}
		}
		s.draft = draft // nobody reads it before Begun is told
		return snapshot.Event{Kind: snapshot.Begun, Number: draft.Number()}
	})
}

// Kept is told that the version which is saved was kept of the lead shard.
func (l *Lead) Kept(clock int64) {
	l.kept.snapshots.named(slices.Repeat([]int64{clock}, len(l.station.Roles.Workers)))
}

// named is told when the lead shard has come to the version that is saved, and each worker's next iteration: this is where the
// run is.
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

// fileSaved is told of a file.
func (s *snapshots) fileSaved(f wire.FileSaved) {
	if f.Place == wire.InFolder {
		s.took, s.bytes = max(s.took, f.Took), s.bytes+f.Bytes
	}
	s.step(snapshot.Event{Kind: snapshot.Saved, File: f})
}

func (s *snapshots) finish(files []wire.FileSaved) {
	r := s.l.r
	m, draft, keep := *s.manifest, s.draft, r.station.Config.Checkpoint.Keep
	m.Files = entriesOf(files)
	s.beside(func() snapshot.Event {
		if err := r.Lock.Check(); err != nil { // what is in the folder is another run's
			r.station.Transport.Post(func() { r.station.Net.Fail(err) })
			return snapshot.Event{Kind: snapshot.Finished, Problem: problemOf(err)}
		}
		dir, err := r.finishBeside(draft, &m, keep)
		return snapshot.Event{Kind: snapshot.Finished, Folder: dir, Problem: problemOf(err)}
	})
}

func (s *snapshots) abandon(why string) {
	draft := s.draft
	s.beside(func() snapshot.Event {
		if err := draft.Abandon(); err != nil { // the next one is begun by removing what is left
			why = "what was written of a checkpoint could not be removed: " + problemOf(err)
		}
		return snapshot.Event{Kind: snapshot.Finished, Problem: why}
	})
}

// tellHost sends a host the manifest of a replica, or word that there is none.
func (s *snapshots) tellHost(e *snapshot.Effect) {
	m := *s.manifest
	m.Number, m.Files = e.Number, entriesOf(e.Files)
	var text []byte
	if e.Problem == "" {
		var err error
		if text, err = m.Text(); err != nil {
			s.l.station.Net.Fail(err)
			return
		}
	}
	s.l.r.Replicas.Tell(int(e.Host), e.Version, text)
}

func entriesOf(files []wire.FileSaved) (list []checkpoint.Entry) {
	for i := range files {
		list = append(list, entryOf(&files[i]))
	}
	return list
}

// problemOf is an error in the words of a warning that begins with what it is about; "" if there is none.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "checkpoint: "), "checkpoints: ")
}

// stopped is told that training is to end; cut: short, at somebody's wish or because it diverged, so that what it has is worth
// nothing.
func (s *snapshots) stopped(cut bool, diverged string) {
	s.step(snapshot.Event{Kind: snapshot.Stop, Cut: cut, Problem: diverged})
}

// pausing says that all workers have been asked to stop, and will go on.
func (s *snapshots) pausing() bool { return s != nil && (s.c.Pausing() || s.goOn) }

// goesOn decides what it means that all nodes are done.
func (s *snapshots) goesOn(spent bool) bool {
	s.goOn = false
	s.step(snapshot.Event{Kind: snapshot.NodesDone, Spent: spent})
	return s.goOn
}
