package train_test

import "testing"

// The next batch travels to a device while it still computes, in all iterations but each worker's first, if nothing
// can change the worker's rows. Else it travels when the iteration begins.
func TestTheNextBatchTravelsWhileTheDeviceComputes(t *testing.T) {
	for name, c := range map[string]struct {
		set   []string
		ahead bool
	}{
		"bsp":        {nil, true},
		"no overlap": {[]string{"send.overlap=false"}, true},
		"parts":      {[]string{"work={policy: anytime, time: 1h}"}, false},
	} {
		_, count := trainDistant(t, "", 1, true, append(c.set, "model={name: mlp, layers: [24, 16]}", "train.stop={updates: 6}")...)
		const workers = 4
		if count.Batches < 6*workers {
			t.Errorf("%s: only %d batches were uploaded", name, count.Batches)
		}
		want := 0
		if c.ahead {
			want = count.Batches - workers
		}
		if count.Ahead != want {
			t.Errorf("%s: %d of %d batches travelled while the device computed, want %d", name, count.Ahead, count.Batches, want)
		}
	}
}
