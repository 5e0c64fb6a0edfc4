package runtime

import (
	"fmt"
	"testing"

	"fluentps/comm"
	"fluentps/comm/inproc"
	"fluentps/ps/core"
	"fluentps/ps/optim"
)

// The norms are of the mean over the samples, and of the version that is current.
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
	st := &store{math: &optim.Store{}, bufs: []*comm.Buf{buf(9, 9, 9, 9), buf(2, 0, 0, 1.5)}, slots: []slot{{}, {push: buf(12, -16, 0, 0).F32(), of: -1}}}
	in := core.Input{Slot: 1}
	if st.measure(&in, 1, 4); in.Norm2 != 5 || in.NormInf != 4 || in.NormW != 2.5 {
		t.Errorf("sums 12 and -16 over 4 samples, parameters 2 and 1.5: norms %v, %v, %v; want 5, 4, 2.5", in.Norm2, in.NormInf, in.NormW)
	}
	if st.measure(&in, 1, 0); in.NormInf != 16 {
		t.Errorf("a push of no samples: %v", in.NormInf)
	}
}

// What a worker has in transit is bounded in a real run too: with a bound of 0 fast workers wait for others to read, with
// a large one nobody does, and what is learnt is the same. Deltas have norms as gradients have. All workers sleep, for
// fast ones that compute nothing may else be through before the straggler has begun, with nobody to wait for.
func TestVAPHoldsBackByValue(t *testing.T) {
	const slow = "faults=[{worker: 0, slow: {sleep: 1ms}}, {worker: 1, slow: {sleep: 1ms}}, {worker: 2, slow: {sleep: 1ms}}, {worker: 3, slow: {sleep: 3ms}}]"
	for _, push := range []string{"gradient", "delta"} {
		delayed := map[string]int64{}
		for _, v0 := range []string{"0", "1000"} {
			sync := fmt.Sprintf("sync=[{match: '*', scheme: vap, v0: %s, push: %s}]", v0, push)
			s := trainTogether(t, load(t, sync, slow, "train.stop={samples: 3200}", "train.optimizer={name: sgd, lr: 0.1}")).Summary
			for _, sh := range s.PerShard {
				delayed[v0] += sh.DelayedPulls
				if sh.Dropped > 0 || sh.Pushes != sumIterations(s) {
					t.Errorf("push: %s, v0: %s: shard %d got %d pushes of %d and dropped %d", push, v0, sh.Shard, sh.Pushes, sumIterations(s), sh.Dropped)
				}
			}
		}
		if delayed["0"] == 0 || delayed["1000"] != 0 {
			t.Errorf("push: %s: %d delayed pulls with v0 = 0 and %d with 1000", push, delayed["0"], delayed["1000"])
		}
	}
}
