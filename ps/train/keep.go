package train

import (
	"fluentps/comm/wire"
	"fluentps/ps/station"
)

// keepState copies the worker's state for a checkpoint, if the node says that it is due.
func (w *Side) keepState() {
	if w.node == nil || w.station.Net.Err() != nil {
		return
	}
	if iter, due := w.node.TakeSave(); due {
		w.writeState(iter)
	}
}

// KeepAll copies the worker's state in a pause, and begins to write it.
func (w *Side) KeepAll() {
	if w.node != nil {
		w.writeState(w.node.Next())
	}
}

// writeState copies the worker's state before iteration iter, and begins to write it.
func (w *Side) writeState(iter int64) {
	state, vectors := w.Save()
	state.Next = iter
	w.arenas.savedCopies = station.CopyInto(w.arenas.savedCopies, vectors)
	w.o.Write(wire.FileSaved{Kind: wire.WorkerFile, Index: int32(w.me), Version: iter}, state, w.arenas.savedCopies, func() {})
}
