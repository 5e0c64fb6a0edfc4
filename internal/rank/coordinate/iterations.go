package coordinate

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
)

// iterations brings the records of all workers to rank 0, which writes them to the run folder, worker by worker, and
// returns them if Options.Iterations. It holds one chunk of one worker at a time. writeErr is set on rank 0 only, and does
// not end the other ranks.
func (r *Run) iterations(reports []report) (all [][]timings.Iteration, writeErr, err error) {
	if r.Folder == nil && !r.o.Iterations {
		return nil, nil, nil
	}
	if r.station.Me != 0 {
		return nil, nil, r.sendRecords()
	}
	var f *timings.File
	if r.Folder != nil {
		f, writeErr = timings.Create(r.Folder.Folder)
	}
	text := bytes.NewBuffer(timings.Header())
	var leftOut int64
	computing := r.station.Roles.Computing()
	rowsMax := layout.RecordsMax(r.station.Config, len(computing))
	rowsLeft := map[int]int{} // by worker: rows that it may still have, over all parts of the run
	appendRows := func(worker int, rows []byte) {
		rows, n, left := timings.FirstRows(rows, rowsLeft[worker])
		rowsLeft[worker], leftOut = rowsLeft[worker]-n, leftOut+int64(left)
		if f != nil && writeErr == nil {
			writeErr = f.Append(rows)
		}
		if r.o.Iterations {
			text.Write(rows)
		}
	}
	keptRows, readErr := r.keptIterations()
	writeErr = errors.Join(writeErr, readErr) // a damaged file of an earlier part must not cost the final checkpoint
	if f != nil && writeErr == nil {
		writeErr = f.Append(keptRows)
	}
	before := timings.RowsOf(keptRows)
	for _, from := range computing {
		w := reports[from].Worker
		leftOut += w.LeftOut
		rowsLeft[w.Index] = max(0, rowsMax-before[w.Index])
		for k := range timings.ChunksOf(w.Records) {
			if from == 0 {
				appendRows(w.Index, r.Worker.Records().Chunk(w.Index, k))
				continue
			}
			rows, err := r.station.Net.RecvBlob(from)
			if err != nil {
				return nil, nil, err
			}
			appendRows(w.Index, rows)
		}
	}
	if f != nil {
		writeErr = errors.Join(writeErr, f.Close(writeErr == nil))
	}
	if leftOut > 0 {
		r.station.Log.Warn("iterations.csv holds the first iterations of each worker only; the limit is in plan.txt",
			"of_each", rowsMax, "left_out", leftOut)
	}
	if r.o.Iterations {
		all, err = timings.Parse(text)
		for len(all) < len(computing) { // the last workers may have no row
			all = append(all, nil)
		}
	}
	return all, writeErr, err
}

func (r *Run) sendRecords() error {
	if r.Worker == nil {
		return nil
	}
	own := r.Worker.Records()
	for k := range own.Chunks() {
		if err := r.station.Net.SendBlob(0, own.Chunk(r.Worker.Index(), k)); err != nil {
			return err
		}
	}
	return nil
}

// timelineReport is what rank 0 needs to know of a rank's timeline.
type timelineReport struct {
	Clock   timeline.Clock
	LeftOut int64 // spans without room
}

// endTimeline ends the part of this rank, and measures its clock for the last time, which has just gained drift on rank 0's.
func (r *Run) endTimeline(drift time.Duration) (*timelineReport, error) {
	t := r.Timeline
	if t == nil {
		return nil, nil
	}
	t.Clock = t.Clock.Measure(drift, clockError(r.station.Transport), r.station.Transport.Now())
	return &timelineReport{t.Clock, t.LeftOut()}, t.EndPart()
}

// timeline brings the timelines of all ranks to rank 0, which writes them as one file and removes the parts. It holds one chunk of one rank
// at a time. writeErr is set on rank 0 only.
func (r *Run) timeline(reports []report) (writeErr, err error) {
	if r.Timeline == nil {
		return nil, nil
	}
	var clocks []timeline.Clock
	if r.station.Me == 0 {
		clocks = r.alignClocks(reports)
	}
	if err := link.Spread(r.station.Net, &clocks); err != nil {
		return nil, err
	}
	about := timeline.About{Role: r.station.Roles.Name(r.station.Me), Host: r.station.Hosts[r.station.Me], Clock: clocks[r.station.Me]}
	for _, rank := range r.station.Roles.Workers {
		about.Apart = append(about.Apart, !clocks[rank].Aligned)
	}
	chunks := r.Timeline.Chunked(about)
	if r.station.Me != 0 {
		for range r.Timeline.Chunks() + 1 { // an empty one is the end
			if err := r.station.Net.SendBlob(0, chunks.Next()); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return r.joinTimelines(chunks)
}

// alignClocks decides which ranks' times can be compared, by the time of an iteration.
func (r *Run) alignClocks(reports []report) []timeline.Clock {
	var iteration time.Duration
	if n := r.Lead.iteration() - r.Timeline.Start; n > 0 {
		iteration = (r.TrainEnd - r.station.Began) / time.Duration(n)
	}
	clocks := make([]timeline.Clock, len(reports))
	var leftOut int64
	for rank, rep := range reports {
		clocks[rank] = rep.Timeline.Clock
		if clocks[rank].Align(iteration); !clocks[rank].Aligned {
			r.station.Log.Warn("timeline: the clock of " + r.station.Net.Place(rank) +
				" is not aligned with rank 0's, so no arrows lead to it: " + clocks[rank].Why)
		}
		leftOut += rep.Timeline.LeftOut
	}
	if leftOut > 0 {
		r.station.Log.Warn(fmt.Sprintf("timeline: %d spans found no room; the limits are in plan.txt", leftOut))
	}
	return clocks
}

// joinTimelines writes the chunks of all ranks to one file.
func (r *Run) joinTimelines(own *timeline.Chunked) (writeErr, err error) {
	draft, writeErr := r.Folder.Draft(timeline.FreeName(r.Folder.Folder, r.Timeline.Start))
	write := func(b []byte) {
		if writeErr == nil {
			_, writeErr = draft.Write(b)
		}
	}
	l := r.Timeline.Limits
	write(timeline.Head(r.station.Config.Name, fmt.Sprintf(`"spans_of_a_rank_max":%d,"all_of_first_iterations":%d`, l.Events, l.First)))
	for from := range r.station.Hosts {
		for {
			chunk := own.Next()
			if from != 0 {
				if chunk, err = r.station.Net.RecvBlob(from); err != nil {
					return nil, err
				}
			}
			if len(chunk) == 0 {
				break
			}
			write(chunk)
		}
	}
	write(timeline.Tail())
	if draft != nil {
		writeErr = draft.End(writeErr)
	}
	if writeErr != nil {
		return fmt.Errorf("timeline: %w", writeErr), nil
	}
	in := r.Folder.In(timeline.Folder)
	defer in.Close()
	for rank := range r.station.Hosts {
		writeErr = errors.Join(writeErr, in.Remove(timeline.PartName(r.Timeline.Start, rank)))
	}
	_ = r.Folder.Remove(timeline.Folder) // parts of killed runs may be in it
	return writeErr, nil
}
