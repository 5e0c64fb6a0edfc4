package serve

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
)

// newPushEnd is the server's end of a push, without a run around it.
func newPushEnd(t testing.TB, elements int, set ...string) (*Side, *store) {
	t.Helper()
	r := stationtest.New(t, 0, elements, set...)
	own, err := r.Transport.Alloc(elements * shard.ElemBytes)
	if err != nil {
		t.Fatal(err)
	}
	sh := &r.Plan.Shards[0]
	return &Side{station: r}, &store{sh: sh, slots: []slot{{own: own}}, arrivals: make([]arrival, 1), coded: newDecoder(sh, 1, 3)}
}

// Each piece of a push, encoded or not, is stored at its place in the slot, and changes nothing beside it.
func TestWhatArrivesLiesInItsPlace(t *testing.T) {
	for _, payload := range []string{"payload={push: topk, ratio: 1}", "payload={}"} {
		s, st := newPushEnd(t, 50, payload)
		slot := st.slots[0].own
		want := make([]float32, 50)
		for i := range s.station.Plan.Pieces {
			p := &s.station.Plan.Pieces[len(s.station.Plan.Pieces)-1-i]
			values := make([]float32, p.Hi-p.Lo)
			for k := range values {
				values[k] = float32(100 + p.Lo + k)
				want[p.Lo+k] = values[k]
			}
			bytes := make([]byte, p.PushBytes)
			if codec := s.station.Routes.PushCodec(p.ID); codec != nil {
				bytes = bytes[:codec.Encode(bytes, values, nil)]
			} else {
				for k, v := range values {
					binary.LittleEndian.PutUint32(bytes[4*k:], math.Float32bits(v))
				}
			}
			if !s.decode(st, 0, p, bytes) {
				t.Fatal(s.station.Net.Err())
			}
			if got := slot.F32(); !slices.Equal(got, want) {
				t.Fatalf("%s: after piece %d the slot holds %v, want %v", payload, p.ID, got, want)
			}
		}
	}
}

// A frame with a piece that is longer than its codec allows is refused, and a damaged shorter piece fails the run.
func TestDamagedPiecesInFrames(t *testing.T) {
	s, st := newPushEnd(t, 20, "payload={push: topk, ratio: 0.5}")
	p := &s.station.Plan.Pieces[0]
	for n, want := range map[int]bool{0: true, int(p.PushBytes): true, int(p.PushBytes) + 1: false} {
		if got := s.station.Routes.AcceptsPush(p.ID, n); got != want {
			t.Errorf("%d bytes of %d in a frame: %v", n, p.PushBytes, got)
		}
	}
	if s.station.Routes.AcceptsReply(p.ID, int(p.ReplyBytes)-1) || !s.station.Routes.AcceptsReply(p.ID, int(p.ReplyBytes)) {
		t.Error("a reply without a codec must have exactly the bytes of its piece")
	}
	if s.decode(st, 0, p, []byte{1, 0}) || s.station.Net.Err() == nil ||
		!strings.Contains(s.station.Net.Err().Error(), "push of shard */0 from worker 0 (rank 1)") {
		t.Errorf("error %v", s.station.Net.Err())
	}
}

// Merging adds a part to another one and leaves the first as it was.
func TestPartsAreAddedUp(t *testing.T) {
	s, st := newPushEnd(t, 4, "payload={}")
	s.stores = []*store{st}
	st.slots = []slot{{push: []float32{1, 2, 3, 4}, owner: -1}, {push: []float32{10, 20, 30, 40}, owner: -1}}
	s.station.Net.Begin()
	s.merge(&core.Effect{Kind: core.Merge, Slot: 0, Dst: 1})
	if got := st.slots[1].push; !slices.Equal(got, []float32{11, 22, 33, 44}) || !slices.Equal(st.slots[0].push, []float32{1, 2, 3, 4}) {
		t.Errorf("the sum is %v, the part %v", got, st.slots[0].push)
	}
}

// A push that is copied out of its worker's memory keeps its values. A deferred fold has read the slot before.
func TestACopiedPushStaysWhatItWas(t *testing.T) {
	s, st := newPushEnd(t, 4, "payload={push: bfloat16}")
	update, err := s.station.Config.Update()
	if err != nil {
		t.Fatal(err)
	}
	st.math = s.station.Config.NewStore(s.station.Plan, 0, update)
	st.readsGrads, s.stores = make([]bool, 1), []*store{st}
	old := st.slots[0].own.F32()
	copy(old, []float32{1, 2, 3, 4})
	st.math.Fold(0, old, 0, 1) // of the slot's previous push
	st.readSlots = append(st.readSlots, st.slots[0].own)
	arena := make([]float32, 4)
	copy(arena, []float32{10, 20, 30, 40})
	st.slots[0].push, st.slots[0].owner = arena, 0
	s.station.Net.Begin()
	s.ownPush(&core.Effect{Kind: core.Own})
	clear(arena)
	if got := st.slots[0]; !slices.Equal(got.push, []float32{10, 20, 30, 40}) || got.owner >= 0 {
		t.Errorf("the push is %v, of worker %d", got.push, got.owner)
	}
	if got := st.math.Sums(0); !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Errorf("the previous fold has %v", got)
	}
}

// The norms are those of the mean over the samples, and of the current version.
func TestNormsOfAPush(t *testing.T) {
	transport := inproc.New(1, inproc.Options{})[0]
	buf := func(x ...float32) *comm.Buf {
		b, err := transport.Alloc(4 * len(x))
		if err != nil {
			t.Fatal(err)
		}
		copy(b.F32(), x)
		return b
	}
	st := &store{math: &optim.Store{}, bufs: []*comm.Buf{buf(9, 9, 9, 9), buf(2, 0, 0, 1.5)},
		slots: []slot{{}, {push: buf(12, -16, 0, 0).F32(), owner: -1}}}
	in := core.Input{Slot: 1}
	if st.measure(&in, 1, 4); in.Norm2 != 5 || in.NormInf != 4 || in.NormW != 2.5 {
		t.Errorf("sums 12 and -16 over 4 samples, parameters 2 and 1.5: norms %v, %v, %v; want 5, 4, 2.5", in.Norm2, in.NormInf, in.NormW)
	}
	if st.measure(&in, 1, 0); in.NormInf != 16 {
		t.Errorf("a push of no samples: %v", in.NormInf)
	}
}

func TestServersReportAFewTimesBetweenTwoRecords(t *testing.T) {
	long := 24 * time.Hour
	for _, c := range []struct{ interval, trained, want time.Duration }{
		{0, long, station.BeatEvery},
		{100 * time.Millisecond, long, station.BeatEvery},
		{2 * time.Second, long, 500 * time.Millisecond},
		{time.Hour, long, reportEveryMax},
		{time.Hour, 0, station.BeatEvery},
		{time.Hour, time.Minute, 300 * time.Millisecond}, // a run that ends now has had a record every 600 ms
		{time.Second, time.Minute, 250 * time.Millisecond},
	} {
		if got := reportEvery(c.interval, c.trained); got != c.want {
			t.Errorf("records every %v, after %v of training: reports every %v, want %v", c.interval, c.trained, got, c.want)
		}
	}
}
