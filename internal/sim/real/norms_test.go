package real

import (
	"math"
	"testing"

	"fluentps/internal/sim"
	"fluentps/ps/scheme"
)

// With real gradients the norms are real, too. They change decisions, and the modelled norms do not matter.
func TestRealNorms(t *testing.T) {
	run := func(v0, norm string) (*sim.Result, []scheme.Event) {
		o := realOptions(t, "sync=[{match: '*', scheme: vap, v0: "+v0+"}]", "train.optimizer={name: sgd, lr: 0.1}",
			"shards.max_bytes=64B", "cluster.servers=2",
			"faults=[{worker: 1, slow: {factor: 3}}]", "simulate.push_norm="+norm)
		var pushed []scheme.Event
		o.Decided = func(ev scheme.Event, _ []scheme.Decision) {
			if ev.Kind == scheme.Pushed {
				pushed = append(pushed, ev)
			}
		}
		return runReal(t, o), pushed
	}
	a, pushed := run("0", "0")
	b, _ := run("0", "7")
	free, _ := run("1000", "1e9")
	if a.Trace != b.Trace || a.Delayed == 0 || free.Delayed != 0 {
		t.Errorf("traces %x and %x with modelled norms of 0 and 7; %d delayed pulls, without a bound %d", a.Trace, b.Trace,
			a.Delayed, free.Delayed)
	}
	var first, last scheme.Event
	for _, ev := range pushed {
		if n := 42.0; !(ev.NormInf > 0 && ev.Norm2 >= ev.NormInf && float64(ev.Norm2) <= math.Sqrt(n)*float64(ev.NormInf)*1.0001) {
			t.Errorf("%v: a largest element of %v and a norm of %v cannot be, of %v elements at most", ev, ev.NormInf, ev.Norm2, n)
		}
		if first = pushed[0]; ev.NormW > 0 {
			last = ev
		}
	}
	if first.NormW != 0 || last.NormW == 0 || first.NormInf > 3 || first.NormInf < 0.01 {
		t.Errorf("softmax starts at 0: norms of the parameters %v, then %v; first push %v", first.NormW, last.NormW, first.NormInf)
	}
}
