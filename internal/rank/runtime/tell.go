package runtime

import (
	"sync"
	"time"

	"fluentps/internal/show/status"
)

// tellCloseMax is how long a rank waits at its end for its state to be written.
const tellCloseMax = time.Second

// teller writes what this rank does to the run folder, for `fluentps status`.
type teller struct {
	every time.Duration
	due   time.Time // of the next file; it belongs to the goroutine that watches

	mu       sync.Mutex     // guards what follows; whoever holds the lock of the nodes may take it
	writer   *status.Writer // nil: there is no run folder, or the file cannot be made, or it is closed
	last     status.Rank    // as written last
	count    int64          // of iterations begun and versions made, as of last
	progress time.Time      // when count changed
}

// openTeller starts the file of this rank.
func (r *rank) openTeller() {
	if r.run.Folder == nil {
		return
	}
	w, err := status.Open(r.run.Folder.Folder, r.station.Me)
	if err != nil {
		r.station.Log.Info("fluentps status cannot show this rank", "error", err)
		return
	}
	r.tell.writer, r.tell.every = w, status.Every(len(r.station.Hosts))
	r.tellPhase(status.Setup)
}

// tellPhase tells of a phase in which nothing is known of the nodes.
func (r *rank) tellPhase(phase status.Phase) {
	r.tell.mu.Lock()
	defer r.tell.mu.Unlock()
	r.tell.last.Worker, r.tell.last.Server = nil, nil
	r.send(phase)
}

// send has the state written. The caller holds r.tell.mu.
func (r *rank) send(phase status.Phase) {
	t := &r.tell
	if t.writer == nil {
		return
	}
	s := &t.last
	s.Start = r.run.Token
	s.Rank, s.Role, s.Host, s.PID = r.station.Me, r.station.Roles.Name(r.station.Me), r.o.Host, r.o.PID
	s.At, s.Progress, s.EveryS, s.Phase = time.Now(), t.progress, t.every.Seconds(), phase
	t.writer.Tell(*s)
}

// state is what this rank does in training. The caller drives the nodes, or holds the lock.
func (r *rank) state() (s status.Rank) {
	s.Phase, s.TrainedS = status.Training, r.station.Now().Seconds()
	switch {
	case r.run.Reduce != nil:
		s.Worker = r.run.Reduce.Status()
	case r.run.Worker != nil:
		s.Worker = r.run.Worker.Status()
	}
	if r.run.Server != nil {
		s.Server = r.run.Server.Status()
	}
	if r.run.Lead != nil {
		s.Lead = r.run.Lead.Status()
	}
	return s
}

// tellTraining tells what the nodes do.
func (r *rank) tellTraining() {
	t := &r.tell
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = r.state()
	count := int64(0)
	if s := t.last.Server; s != nil {
		count += s.Versions
	}
	if w := t.last.Worker; w != nil {
		count += w.Iteration + 1
	}
	if count != t.count {
		t.count, t.progress = count, time.Now()
	}
	r.send(status.Training)
}

// tellIfDue tells of this rank if it is time to. The goroutine that watches calls it. While the rank computes, nobody
// holds the lock; while it drives its nodes, the driving goroutine tells.
func (r *rank) tellIfDue(now time.Time) {
	t := &r.tell
	if r.run.Folder == nil || now.Before(t.due) {
		return
	}
	t.due = now.Add(t.every)
	if !r.station.Mu.TryLock() {
		r.station.Transport.Post(func() {
			if r.run.TrainEnd == 0 {
				r.tellTraining()
			}
		})
		return
	}
	defer r.station.Mu.Unlock()
	select {
	case <-r.station.Ended: // the nodes belong to others now
		r.tellPhase(status.Ending)
	default:
		r.tellTraining()
	}
}

// closeTeller writes the last word.
func (r *rank) closeTeller() {
	r.tellPhase(status.Ended)
	r.tell.mu.Lock()
	defer r.tell.mu.Unlock()
	if r.tell.writer != nil {
		r.tell.writer.Close(tellCloseMax)
		r.tell.writer = nil
	}
}

// words says in one line what this rank does.
func (r *rank) words() string {
	s := r.state()
	return s.Words()
}
