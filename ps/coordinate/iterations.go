package coordinate

import (
	"bytes"
	"errors"

	"fluentps/ps/layout"
	"fluentps/ps/metrics"
)

// iterations brings the records of all workers to rank 0, which writes them to the run folder, worker by worker, and
// returns them if it was asked for them. It holds one text of one worker at a time. unwritten is rank 0's, and no
// reason for the others to end.
func (r *Run) iterations(reports []report) (all [][]metrics.Iteration, unwritten, err error) {
	if r.Folder == nil && !r.o.Iterations {
		return nil, nil, nil
	}
	if r.station.Me != 0 {
		return nil, nil, r.sendRecords()
	}
	var f *metrics.IterationsFile
	if r.Folder != nil {
		f, unwritten = r.Folder.CreateIterations()
	}
	text := bytes.NewBuffer(metrics.IterationsHeader())
	var leftOut int64
	most := layout.RecordsMax(r.station.Config, len(r.station.Computes))
	room := map[int]int{} // by worker: rows that it may have, over all parts of the run
	keep := func(worker int, rows []byte) {
		rows, n, left := metrics.FirstRows(rows, room[worker])
		room[worker], leftOut = room[worker]-n, leftOut+int64(left)
		if f != nil && unwritten == nil {
			unwritten = f.Append(rows)
		}
		if r.o.Iterations {
			text.Write(rows)
		}
	}
	kept, unread := r.keptIterations()
	unwritten = errors.Join(unwritten, unread) // a file of a part before is no reason to lose the checkpoint of the end
	if f != nil && unwritten == nil {
		unwritten = f.Append(kept)
	}
	before := metrics.RowsOf(kept)
	for _, from := range r.station.Computes {
		w := reports[from].Worker
		leftOut += w.LeftOut
		room[w.Index] = max(0, most-before[w.Index])
		for k := range metrics.ChunksOf(w.Records) {
			if from == 0 {
				keep(w.Index, r.Worker.Records().Chunk(w.Index, k))
				continue
			}
			rows, err := r.station.Net.RecvBlob(from)
			if err != nil {
				return nil, nil, err
			}
			keep(w.Index, rows)
		}
	}
	if f != nil {
		unwritten = errors.Join(unwritten, f.Close(unwritten == nil))
	}
	if leftOut > 0 {
		r.station.Log.Warn("iterations.csv holds the first iterations of each worker only; the limit is in plan.txt",
			"of_each", most, "left_out", leftOut)
	}
	if r.o.Iterations {
		all, err = metrics.ParseIterations(text)
		for len(all) < len(r.station.Computes) { // who has left without one
			all = append(all, nil)
		}
	}
	return all, unwritten, err
}

func (r *Run) sendRecords() error {
	if r.Worker == nil {
		return nil
	}
	records := r.Worker.Records()
	for k := range records.Chunks() {
		if err := r.station.Net.SendBlob(0, records.Chunk(r.Worker.Index(), k)); err != nil {
			return err
		}
	}
	return nil
}
