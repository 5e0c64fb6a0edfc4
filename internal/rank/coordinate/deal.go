package coordinate

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/policy/work"
)

// Rank 0 deals the batches of a run in which they change (internal/policy/work): internal/rank/train reports what the ranks measured,
// and waits for the next ones.

// deals is rank 0's part.
type deals struct {
	coordinator *work.Coordinator // nil: batches never change
	replay      work.Record       // nil: the reports count
	pauses      int32             // after which training went on
	strayed     bool              // the run is no longer that of the replay, and the warning was given
	failing     bool              // the last write to the record failed
	rows        []byte            // scratch
}

// MakeDealer makes the coordinator of batches, in a run whose batches change, and its record. replay may be nil.
func (l *Lead) MakeDealer(replay work.Record) (err error) {
	r := l.r
	var from *work.Saved
	start := int64(0)
	if r.From != nil {
		from, start = r.From.State.Work, slices.Max(r.From.Starts)
	}
	d := &l.deals
	d.replay = replay
	if d.coordinator, err = l.station.Config.NewDealer(l.station.Roles.Computes(), l.station.Set.Train.Rows(), from,
		start); err != nil || d.coordinator == nil {
		return err
	}
	d.coordinator.Replay = replay
	if r.Folder == nil {
		return nil
	}
	kept := work.RecordHeader()
	if r.From != nil {
		text, err := r.Folder.ReadFile(work.RecordName, work.RecordBytesMax)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w; make it readable, or remove it, which loses the times of the earlier plans", work.RecordName, err)
		}
		if from.Continues(l.station.Config.Work, l.station.Config.WorkEnv(l.station.Roles.Computes(), l.station.Set.Train.Rows())) {
			kept = work.RecordBefore(text, d.coordinator.Current().Until)
		} else if err == nil { // of other workers, or of another policy
			if err := r.Folder.Move(work.RecordName, fmt.Sprintf("work-before-%d.csv", start)); err != nil {
				return err
			}
		}
	}
	return r.Folder.Write(work.RecordName, kept)
}

// measured handles the report of a rank that computes.
func (l *Lead) measured(from int, m *wire.Record) {
	h, roles, d := &m.Header, l.station.Roles, &l.deals
	ranks, c := roles.Computing(), d.coordinator
	e := work.Event{Worker: int(h.Worker), Until: h.Iter,
		Measured: work.Measured{Iterations: h.Clock, Samples: h.Samples, Took: time.Duration(h.Blocked), Median: time.Duration(h.Version)}}
	ok := e.Worker >= 0 && e.Worker < len(ranks) && roles.Workers[roles.Leader(ranks[e.Worker])] == from
	if h.Flags&wire.Over != 0 {
		if !l.station.Accepts(from, m, ok) || h.Epoch != d.pauses || !l.r.stopping() { // the worker stops for a pause
			return
		}
		e.Kind = work.Ending
	} else if !l.station.Accepts(from, m, ok && e.Until == c.Current().Until && c.Waits(e.Worker) && h.Clock >= 0 &&
		h.Samples >= 0 && h.Blocked >= 0 && h.Version >= 0) {
		return
	}
	switch c.Step(e) {
	case work.NoMore:
		for _, rank := range roles.Workers {
			l.station.Net.Send(rank, &wire.Header{Kind: wire.Dealt, Flags: wire.Stop})
		}
	case work.Dealt:
		l.dealt()
	}
}

// dealt tells all ranks that compute of the next assignment, and records the one that has ended.
func (l *Lead) dealt() {
	d := &l.deals
	next := d.coordinator.Current()
	ended, measured := d.coordinator.Ended()
	l.station.Log.Info("batches", "from", ended.Until, "until", next.Until, "batches", fmt.Sprint(next.Batches))
	l.compareReplay(&ended)
	for _, rank := range l.station.Roles.Computing() {
		l.station.Net.Begin()
		for w, b := range next.Batches {
			h := wire.Header{Kind: wire.Dealt, Worker: int32(w), Part: int32(b), Iter: next.From, Clock: next.Until, Version: next.Number}
			if next.Epoch {
				h.Flags = wire.Over
			}
			l.station.Net.Send(rank, &h)
		}
		l.station.Net.End()
	}
	if l.r.Folder != nil {
		d.rows = work.AppendRecord(d.rows[:0], &ended, measured)
		l.noteFailure(&d.failing, l.appendRecord(d.rows))
	}
}

// compareReplay warns, once, of a plan that the record lacks, or that had other batches there.
func (l *Lead) compareReplay(ended *work.Assignment) {
	d := &l.deals
	if d.replay == nil || d.strayed {
		return
	}
	path := l.station.Config.Work.Replay
	was, ok := d.replay[ended.Until]
	if d.strayed = !ok || !slices.Equal(was.Batches, ended.Batches); !d.strayed {
		return
	}
	if !ok {
		l.station.Log.Warn(fmt.Sprintf("work.replay: %s has no plan that ends with iteration %d; from there on batches "+
			"follow what is measured", path, ended.Until))
		return
	}
	l.station.Log.Warn(fmt.Sprintf("work.replay: in the plan that ends with iteration %d the batches are %v, and %v "+
		"in %s, so this run is another one; take the batch size and the keys of work and data of that run", ended.Until,
		ended.Batches, was.Batches, path))
}

func (l *Lead) appendRecord(rows []byte) error {
	f, err := l.r.Folder.Append(work.RecordName)
	if err != nil {
		return err
	}
	_, err = f.Write(rows)
	return errors.Join(err, f.Close())
}
