package train

import (
	"fluentps/comm/wire"
	"fluentps/ps/station"
)

// keepState copies what a worker keeps, when that is due.
func (w *Side) keepState() {
	if w.node == nil || w.station.Net.Err() != nil {
		return
	}
	if iter, due := w.node.TakeSave(); due {
		w.writeState(iter)
	}
}

// KeepAll copies and writes in a pause what the worker keeps.
func (w *Side) KeepAll() {
	if w.node != nil {
		w.writeState(w.node.Next())
	}
}

// writeState copies and writes what a worker keeps before it has begun an iteration.
func (w *Side) writeState(iter int64) {
	state, vectors := w.Save()
	state.Next = iter
	w.arenas.keeps = station.CopyInto(w.arenas.keeps, vectors)
	w.o.Write(wire.FileSaved{Kind: wire.WorkerFile, Index: int32(w.me), Version: iter}, state, w.arenas.keeps, func() {})
}
