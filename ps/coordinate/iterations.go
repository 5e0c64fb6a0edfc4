package coordinate

import (
	"bytes"
	"errors"

	"fluentps/ps/layout"
	"fluentps/ps/metrics"
)

// iterations brings the records of all workers to rank 0, which writes them to the run folder, worker by worker, and
// returns them if Options.Iterations. It holds one chunk of one worker at a time. writeErr is set on rank 0 only, and does
// not end the other ranks.
func (r *Run) iterations(reports []report) (all [][]metrics.Iteration, writeErr, err error) {
	if r.Folder == nil && !r.o.Iterations {
		return nil, nil, nil
	}
	if r.station.Me != 0 {
		return nil, nil, r.sendRecords()
	}
	var f *metrics.IterationsFile
	if r.Folder != nil {
		f, writeErr = r.Folder.CreateIterations()
	}
	text := bytes.NewBuffer(metrics.IterationsHeader())
	var leftOut int64
	computing := r.station.Roles.Computing()
	rowsMax := layout.RecordsMax(r.station.Config, len(computing))
	rowsLeft := map[int]int{} // by worker: rows that it may still have, over all parts of the run
	appendRows := func(worker int, rows []byte) {
		rows, n, left := metrics.FirstRows(rows, rowsLeft[worker])
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
	before := metrics.RowsOf(keptRows)
	for _, from := range computing {
		w := reports[from].Worker
		leftOut += w.LeftOut
		rowsLeft[w.Index] = max(0, rowsMax-before[w.Index])
		for k := range metrics.ChunksOf(w.Records) {
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
		all, err = metrics.ParseIterations(text)
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
	records := r.Worker.Records()
	for k := range records.Chunks() {
		if err := r.station.Net.SendBlob(0, records.Chunk(r.Worker.Index(), k)); err != nil {
			return err
		}
	}
	return nil
}
