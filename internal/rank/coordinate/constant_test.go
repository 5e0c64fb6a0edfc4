package coordinate_test

import (
	"math"
	"strings"
	"testing"

	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// A run that ends with finite values which are worth less than a constant prediction says so, and --require sees it.
// A healthy run says nothing.
func TestALossFarAboveThatOfAConstantIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		set  []string
		code int
		says bool
	}{
		"absurd": {[]string{"train.optimizer={name: sgd, lr: 1e30, l1: 9e29}", "model={name: softmax}",
			"train.stop={updates: 1}"}, station.CodeTarget, true},
		"ratings": {[]string{"data={set: generated_ratings, rows: 400, test_rows: 100}",
			"model={name: matrix_factorization}", "train.optimizer={name: sgd, lr: 1000}", "train.stop={updates: 2}"}, station.CodeTarget, true},
		"healthy": {nil, station.CodeOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, require := range []bool{false, true} {
				want := station.CodeOK
				if require {
					want = c.code
				}
				p := &part{config: load(t, c.set...), ranks: 6, lead: func(o *coordinate.LeadOptions) { o.Require = require }}
				s := p.mustEnd(t, want).Summary
				if (s.Finished == metrics.FinishedOK) != (want == station.CodeOK) {
					t.Errorf("require %t: finished %q with code %d", require, s.Finished, want)
				}
				var text strings.Builder
				if err := metrics.WriteText(&text, s, metrics.TextWidth); err != nil ||
					strings.Contains(text.String(), "WARNING: the test loss at the end") != c.says {
					t.Errorf("error %v; says it: want %t in\n%s", err, c.says, text.String())
				}
				if name == "absurd" && !strings.Contains(s.WorseHint, "train.optimizer.l1 (now 9e+29)") || (s.WorseHint != "") != c.says {
					t.Errorf("the hint is %q", s.WorseHint)
				}
				if c := float64(*s.ConstantLoss); name != "ratings" && math.Abs(c-math.Log(4)) > 0.05 || name == "ratings" && (c < 0.3 || c > 3) {
					t.Errorf("the loss of a constant prediction is %v", c)
				}
			}
		})
	}
}
