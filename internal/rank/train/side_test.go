package train

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/core/shard"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
)

// newPushEnd is the worker's end of a push, without a run around it.
func newPushEnd(t testing.TB, elements int, set ...string) *Side {
	t.Helper()
	r := stationtest.New(t, 1, elements, set...)
	w := &Side{station: r, arenas: arenas{into: make([]landing, 1)}}
	var err error
	if w.enc, err = newEncoder(r); err != nil {
		t.Fatal(err)
	}
	if w.arenas.grads, err = r.Transport.Alloc(elements * shard.ElemBytes); err != nil {
		t.Fatal(err)
	}
	return w
}

// What a worker has computed either has arrived at its server or is in its residual. The numbers are such that nothing is
// rounded.
func TestWhatArrivesAndTheResidualAreAllGradients(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "elements")
		payload := rapid.SampledFrom([]string{"{push: topk, ratio: 0.2}", "{push: threshold, threshold: 2, ratio: 0.3}",
			"{push: topk, ratio: 1}"}).Draw(rt, "payload")
		w := newPushEnd(t, n, "payload="+payload)
		computed, arrived := make([]float32, n), make([]float32, n)
		for range rapid.IntRange(1, 8).Draw(rt, "iterations") {
			for i := range n {
				w.arenas.grads.F32()[i] = float32(rapid.IntRange(-9, 9).Draw(rt, "gradient"))
				computed[i] += w.arenas.grads.F32()[i]
			}
			for k := range w.station.Plan.Pieces {
				p := &w.station.Plan.Pieces[k]
				b, off, bytes := w.encoded(p)
				received := make([]float32, p.Hi-p.Lo)
				if err := w.station.Routes.PushCodec(p.ID).Decode(received, b.Bytes()[off:off+bytes]); err != nil {
					rt.Fatal(err)
				}
				for i, x := range received {
					arrived[p.Lo+i] += x
				}
			}
		}
		for i, x := range w.enc.residual.F32() {
			if arrived[i]+x != computed[i] {
				rt.Fatalf("element %d: %g arrived and %g is left of %g", i, arrived[i], x, computed[i])
			}
		}
		if payload == "{push: topk, ratio: 1}" && !slices.Equal(arrived, computed) {
			rt.Fatal("a topk of all left something out")
		}
	})
}

// Short computing starts no timer.
func TestShortComputingStartsNoTimer(t *testing.T) {
	for usual, ticks := range map[time.Duration]bool{0: true, tickComputeMin - 1: false, tickComputeMin: true, time.Second: true} {
		r := &station.Station{}
		r.Mu.Lock() // a tick finds the lock taken and does not use the transport, which is missing here
		h := newForeground(&Side{station: r, counters: counters{computeUsual: usual}})
		h.startTicks()
		if got := h.computing.Load(); got != ticks {
			t.Errorf("computing that usually takes %v: timer runs: %v", usual, got)
		}
		h.stopTicks()
		if h.computing.Load() || h.timer.Stop() {
			t.Errorf("computing that usually takes %v: timer runs after the end", usual)
		}
	}
}
