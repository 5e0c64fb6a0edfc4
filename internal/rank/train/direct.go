package train

import (
	"cmp"
	"fmt"
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
)

// direct describes the parts of a worker's arenas that a CUDA-aware MPI sends and receives in GPU memory: pieces that have
// a message of their own and are not encoded. All others are copied through the host: pieces in frames, encoded pieces,
// deltas, pieces of shards that the worker keeps copies of or whose server shares memory with it, pieces to a server of
// the same rank, and all pieces where the ranks of a host are one worker, an all-reduce adds gradients up, or the worker takes steps of its
// own or computes its batch in several.
//
// MPI knows nothing of GPU streams. A piece is handed over when the Event of its layer's gradients has passed; that Event
// also follows all kernels that read the layer's parameters. A layer is readable when its pieces were received, and its
// kernels are launched after that. So both directions are ordered without more waiting than copies need.
type direct struct {
	device         kernels.Placer
	pushed, pulled []bool    // by piece: MPI moves it in GPU memory; nil: no piece does
	params, grads  *comm.Buf // the arenas on the device; nil: none
}

// place gives the arenas memory on the device, if MPI reaches that memory and some piece can use it.
func (w *Side) place(params, grads *comm.Buf) error {
	r := w.station
	if w.o.Placer == nil || layout.Reduces(r.Config) || r.Config.Local.IsSet() {
		return nil
	}
	d := direct{device: w.o.Placer}
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
	r.Log.Info("MPI sends from the GPU's memory and receives there", "pushed",
		fmt.Sprintf("%d of %s", len(sent), metrics.Count(len(r.Plan.Pieces), "piece")),
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

// arena places an arena of n elements on the device.
func (d *direct) arena(host *comm.Buf, n int, reached []kernels.Range) (*comm.Buf, error) {
	slices.SortFunc(reached, func(a, b kernels.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	v, err := d.device.Place(host.F32()[:n], reached)
	if err != nil {
		return nil, err
	}
	return comm.NewDevice(v.Dev, n*shard.ElemBytes), nil
}

// pushFrom returns the arena that a piece of the gradients is sent from.
func (d *direct) pushFrom(piece int32, host *comm.Buf) *comm.Buf {
	if d.pushed != nil && d.pushed[piece] {
		return d.grads
	}
	return host
}

// receivesDirectly says whether a piece of the parameters is received on the device.
func (d *direct) receivesDirectly(piece int32) bool { return d.pulled != nil && d.pulled[piece] }

// tick lets messages move on a thread other than the driver's: MPI looks for the device on the thread that calls it.
func (d *direct) tick(t comm.Transport) {
	if d.device != nil && d.device.Attach() == nil { // the goroutine that computes reports a failed device
		defer d.device.Detach()
	}
	t.Tick()
}

// bindModel gives the model its arenas.
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
