package real

import (
	"math"
	"testing"
)

// Bösen's ssp and essp add a delta whole, consgd adds 1/N of it [C; item 6 of the second reading]: with one learning rate they
// differ, and with lr/N ssp ends where consgd ends with lr, within float tolerance. With weight 1/N both would be one scheme.
func TestDeltasOfSSPAreAddedWhole(t *testing.T) {
	end := func(rule, lr string) []float32 {
		o := realOptions(t, "simulate.workers=4", "train.optimizer={name: sgd, lr: "+lr+"}", "sync=[{match: '*', "+rule+
			"}]", "train.stop={samples: 3200}")
		return runReal(t, o).Parameters
	}
	apart := func(a, b []float32) float64 {
		var diff, norm float64
		for k := range a {
			d := float64(a[k] - b[k])
			diff, norm = diff+d*d, norm+float64(b[k])*float64(b[k])
		}
		return math.Sqrt(diff / norm)
	}
	con := end("scheme: consgd, staleness: 2", "0.2")
	if d := apart(end("scheme: ssp, push: delta, staleness: 2", "0.05"), con); !(d < 1e-5) {
		t.Errorf("ssp at lr/4 is %.3g away from consgd", d)
	}
	if d := apart(end("scheme: ssp, push: delta, staleness: 2, weight: 0.25", "0.2"), con); !(d < 1e-5) {
		t.Errorf("ssp with weight 1/4 is %.3g away from consgd", d)
	}
	if d := apart(end("scheme: ssp, push: delta, staleness: 2", "0.2"), con); d < 0.1 {
		t.Errorf("ssp and consgd at one learning rate are only %.3g apart", d)
	}
	if d := apart(end("scheme: essp, staleness: 2", "0.2"), end("scheme: essp, staleness: 2, weight: 0.25", "0.2")); d < 0.1 {
		t.Errorf("essp by default is only %.3g away from essp with weight 1/4", d)
	}
}
