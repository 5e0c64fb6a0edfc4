package runtime

import (
	"math"
	"strings"
	"testing"

	"fluentps/internal/plan/network"
)

// The summary compares training with the bound that plan prints for the same hosts.
func TestSummaryComparesWithTheLimitOfTheCards(t *testing.T) {
	c := load(t, "cluster={servers: 2, link: '10Gbit, b=8kbit'}", "train.stop={updates: 20}")
	res, errs := runOnHosts(t, "abab", c, nil)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := res[0].Summary
	if s.Wire == nil || s.Wire.Host != "b" {
		t.Fatalf("wire is %+v, want the card of b", s.Wire)
	}
	// b serves half of the parameters, and its worker pushes the other half to a: both cross its card, at 1000 bytes a second.
	if want := 4 * float64(len(res[0].Parameters)) / (network.Goodput * 1000); math.Abs(float64(s.Wire.LimitS)/want-1) > 0.05 {
		t.Errorf("the limit is %v s, want %v", s.Wire.LimitS, want)
	}
	var worker int64
	for _, w := range s.PerWorker {
		worker = w.Iterations
	}
	each := float64(s.TrainS) / float64(worker)
	if share := float64(s.Wire.LimitS) / each; worker == 0 || math.Abs(share/float64(s.Wire.Share)-1) > 1e-9 {
		t.Errorf("%+v of %d iterations in %v s", s.Wire, worker, s.TrainS)
	}
	if s := mustTrain(t, load(t), 6).Summary; s.Wire != nil {
		t.Errorf("without cluster.link wire is %+v", s.Wire)
	}
	_, errs = runOnHosts(t, "abab", load(t, "cluster={servers: 2, link: '10Gbit, c=8kbit'}"), nil)
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "there is no host c; the hosts are a, b") {
			t.Errorf("%v", err)
		}
	}
}
