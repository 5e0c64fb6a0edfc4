package runtime

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// parameters trains and returns the final parameters.
func parameters(t *testing.T, set ...string) []float32 {
	t.Helper()
	return mustTrain(t, load(t, set...), 6).Parameters
}

func distance(a, b []float32) (most float64) {
	for i := range a {
		most = math.Max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

// slowEnd lets a run end at a small learning rate, so that its accuracy does not depend on which worker was late with which
// rows.
var slowEnd = []string{"train.stop={epochs: 14}", "data.partition=overlap_reshuffle",
	"train.schedule={name: step, at: [100], factor: 0.02}"}

// Halved floats change the parameters a little; a topk that leaves nothing out does not change them.
func TestPayloadsLearn(t *testing.T) {
	learns(t)
	full := parameters(t)
	for payload, most := range map[string]float64{"{push: topk, ratio: 1}": 0, "{push: threshold, threshold: 0, ratio: 1}": 0,
		"{push: float16, pull: float16}": 0.002, "{push: bfloat16, pull: bfloat16}": 0.02} {
		if d := distance(full, parameters(t, "payload="+payload)); d > most || most > 0 && d == 0 {
			t.Errorf("%s: a parameter is off by %g, want at most %g", payload, d, most)
		}
	}
	for _, scheme := range []string{"bsp", "asp", "ssp, staleness: 2", "r2sp", "dynsgd", "consgd"} {
		for _, payload := range []string{"{push: topk, ratio: 0.1}", "{push: threshold, threshold: 0.02, ratio: 0.1, pull: bfloat16}"} {
			s := mustTrain(t, load(t, append(slowEnd, "payload="+payload, "sync=[{match: '*', scheme: "+scheme+"}]")...), 6).Summary
			if acc := float64(*s.TestAccuracy); acc < 0.8 {
				t.Errorf("%s, %s: test accuracy %.3f, want 0.8 as without", payload, scheme, acc)
			}
			if !s.Payload.Lossy || !strings.Contains(s.Payload.Push, payload[7:11]) {
				t.Errorf("%s: the summary says %+v", payload, s.Payload)
			}
		}
	}
}

// Workers refresh their copies from lossy versions, and push lossy gradients; lossy pushes may be dropped.
func TestPayloadsOfCopiesAndOfDrops(t *testing.T) {
	for scheme, payload := range map[string]string{"essp, staleness: 2": "{pull: bfloat16}",
		"ssp, staleness: 2, push: delta, cache: true": "{pull: float16}", "drop, required: 3": "{push: bfloat16, pull: float16}"} {
		for _, longest := range []int{-1, 0} {
			res, errs := world(t, load(t, append(slowEnd, "payload="+payload, "sync=[{match: '*', scheme: "+scheme+"}]")...),
				6, func(o *Options) { o.thresholds.Inline = longest })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if s := res[0].Summary; float64(*s.TestAccuracy) < 0.8 || s.BytesSent != s.BytesReceived {
				t.Errorf("%s, %s: test accuracy %.3f, %d bytes sent, %d received", scheme, payload, *s.TestAccuracy, s.BytesSent, s.BytesReceived)
			}
		}
	}
}
