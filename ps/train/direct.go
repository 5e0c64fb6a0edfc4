package train

import (
	"cmp"
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/kernels"
	"fluentps/ps/layout"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
	"fluentps/ps/station"
)

// direct is what of a worker's arenas a CUDA-aware MPI sends from the memory of the GPU and receives there: pieces with a
// message of their own that travel as they are. The others are copied to the host and from it: those in frames, encoded or
// pushed as deltas, of shards that the worker keeps copies of or whose server shares memory with it, to a server of its own
// rank, and all where the ranks of a host are one worker or an all-reduce adds up.
//
// MPI knows nothing of a GPU's streams. A piece is handed over when the Event of its layer's gradients has passed, which is
// behind all kernels that read the layer's parameters, too; a layer is readable when its pieces have been received, and its
// kernels are launched after that. So both ways are in order with no more waiting than copies need.
type direct struct {
	device         kernels.Placer
	pushed, pulled []bool    // by piece: it goes directly; nil: none does
	params, grads  *comm.Buf // the arenas on the device; nil: there are none
}

// place gives the arenas memory on the device, where MPI reaches it and has something to do there.
func (w *Side) place(params, grads *comm.Buf) error {
	r := w.station
	if w.o.Reached == nil || layout.Reduces(r.Config) {
		return nil
	}
	d := direct{device: w.o.Reached}
	d.pushed, d.pulled = r.Routes.Direct(int32(w.me))
	var sent, received []kernels.Range
	for i := range r.Plan.Pieces {
		p := &r.Plan.Pieces[i]
		if d.pushed[p.ID] {
			sent = append(sent, kernels.Range{Lo: p.Lo, Hi: p.Hi})
		}
		if d.pulled[p.ID] {
			received = append(received, kernels.Range{Lo: p.Lo, Hi: p.Hi})
		}
	}
	r.Log.Info("MPI sends from the GPU's memory and receives there", "pushed", fmt.Sprintf("%d of %s", len(sent), metrics.Count(len(r.Plan.Pieces), "piece")),
		"pulled", fmt.Sprintf("%d of %s", len(received), metrics.Count(len(r.Plan.Pieces), "piece")))
	if len(sent)+len(received) == 0 {
		return nil
	}
	var err error
	if d.params, err = d.arena(params, r.Plan.Arena, received); err != nil {
		return fmt.Errorf("parameter arena: %w", err)
	}
	if d.grads, err = d.arena(grads, r.Plan.Arena, sent); err != nil {
		return fmt.Errorf("gradient arena: %w", err)
	}
	w.arenas.direct = d
	return nil
}

// arena places an arena of n elements.
func (d *direct) arena(host *comm.Buf, n int, reached []kernels.Range) (*comm.Buf, error) {
	slices.SortFunc(reached, func(a, b kernels.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	v, err := d.device.Place(host.F32()[:n], reached)
	if err != nil {
		return nil, err
	}
	return comm.NewDevice(v.Dev, n*shard.ElemBytes), nil
}

// pushFrom is the arena that a piece of the gradients is sent from.
func (d *direct) pushFrom(piece int32, host *comm.Buf) *comm.Buf {
	if d.pushed != nil && d.pushed[piece] {
		return d.grads
	}
	return host
}

// lands says whether a piece of the parameters is received on the device.
func (d *direct) lands(piece int32) bool { return d.pulled != nil && d.pulled[piece] }

// tick lets messages move on a thread that is not the one that drives: MPI looks for the device there.
func (d *direct) tick(t comm.Transport) {
	if d.device != nil && d.device.Attach() == nil { // a device that has failed says so to who computes
		defer d.device.Detach()
	}
	t.Tick()
}

// bindModel hands the model its arenas.
func (w *Side) bindModel(params, grads *comm.Buf) error {
	if err := station.Announce(w.o.Device, params, grads); err != nil {
		return err
	}
	if err := w.place(params, grads); err != nil {
		return err
	}
	w.model.Bind(w.station.Plan.Views(params.F32()), w.station.Plan.Views(grads.F32()))
	return nil
}
