package train

import (
	"fluentps/ps/core"
	"fluentps/ps/shard"
)

// takeGradients allocates the gradient arena of n bytes, in shared memory if a server reads it.
func (w *Side) takeGradients(n int) (err error) {
	for s := range w.station.Plan.Shards {
		if w.station.Routes.Shares(int32(s), int32(w.me)) {
			w.arenas.grads = w.station.Gradients(w.station.Me)
			return nil
		}
	}
	w.arenas.grads, err = w.alloc(n)
	return err
}

// readVersion copies a version from the server's memory to the parameters.
func (w *Side) readVersion(e *core.Effect) {
	sh := &w.station.Plan.Shards[e.Shard]
	lo := sh.Lo * shard.ElemBytes
	n := copy(w.arenas.params.Bytes()[lo:], w.station.Version(sh, e.Src))
	w.station.Net.Traffic.Shared += int64(n)
}
