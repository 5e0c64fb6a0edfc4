package local

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// made is a policy with a learning rate that a test may change.
func made(t *testing.T, change func(s *Spec)) (p Policy, rate *float64) {
	t.Helper()
	s := Defaults()
	change(&s)
	rate = new(float64)
	p, err := New(s, Env{Workers: 4, WarmUp: 100, Rate: func(float64) float64 { return *rate }})
	if err != nil {
		t.Fatal(err)
	}
	return p, rate
}

// QSR (Gu et al., ICLR 2024; code [Q]): H = max(H_base, floor((alpha / rate)^2)), H_base in warm-up, at most the steps that are left. For
// ViT-B with AdamW H_base is 4 and alpha 0.0175.
func TestQSRAtThePublishedSettings(t *testing.T) {
	p, rate := made(t, func(s *Spec) {
		s.Policy, s.Steps, s.Period.Name, s.Period.Alpha = "averaging", 4, "qsr", 0.0175
	})
	for _, c := range []struct {
		rate       float64
		step, left int64
		want       int64
	}{
		{0.008, 100, -1, 4},        // the peak: (2.19)^2 = 4.79
		{0.0078, 100, -1, 5},       // 5.03
		{0.004, 5000, -1, 19},      // half of the peak: 19.14
		{0.001, 9000, -1, 306},     // 306.25
		{0.0001, 9500, -1, 30625},  // 30625
		{0.0001, 9500, 500, 500},   // the run ends
		{0.016, 5000, -1, 4},       // 1.20, below H_base
		{0.0001, 99, -1, 4},        // warm-up
		{0.0001, 0, 3, 3},          // and a run that is shorter than a round
		{1e-9, 9999, -1, StepsMax}, // a rate of next to nothing
	} {
		*rate = c.rate
		if got := p.Round(Now{Step: c.step, Left: c.left}); got != (Round{Steps: c.want}) {
			t.Errorf("at rate %g, step %d, %d left: %+v, want %d steps", c.rate, c.step, c.left, got, c.want)
		}
	}
}

// AdaComm (Wang and Joshi, MLSys 2019; [A, M]): at the end of each interval tau = ceil(tau_0 * sqrt(F / F_0)); where that is no decrease,
// half of tau.
func TestAdaCommsRule(t *testing.T) {
	p, _ := made(t, func(s *Spec) {
		s.Policy, s.Steps, s.Period.Name, s.Period.Interval = "diloco", 20, "adacomm", 3
	})
	loss, want := []float64{2.4, 0.6, 0.6, 0.5, 9, 0.0024, 9}, []int64{20, 10, 5, 2, 1, 1, 1}
	for interval := range loss { // 20, 20/2, no less: a half, 20*0.456 = 9.1 is no less: a half, ...
		for k := range 3 {
			if got := p.Round(Now{Left: -1, Loss: loss[interval]}); got.Steps != want[interval] {
				t.Errorf("exchange %d of interval %d at loss %g: %d steps, want %d", k, interval, loss[interval], got.Steps, want[interval])
			}
		}
	}
}

// DyLU (Liu et al., arXiv 2401.09135): the steps of a worker are in proportion to its speed. How they are rounded is reconstructed: to the
// nearest number, halves up, and at least 1.
func TestDyLURoundsToTheNearest(t *testing.T) {
	p, _ := made(t, func(s *Spec) { s.Policy, s.Steps = "async_local", 32 })
	for share, want := range map[float64]int64{1: 32, 0.5: 16, 1.0 / 3: 11, 0.484375: 16, 0.48: 15, 0.25: 8, 1.0 / 64: 1, 0.001: 1, 1.5: 32} {
		if got := p.Round(Now{Left: -1, Share: share}); got != (Round{Steps: want}) {
			t.Errorf("a worker at %g of the fastest: %+v, want %d steps", share, got, want)
		}
	}
	fixed, _ := made(t, func(s *Spec) { s.Policy, s.Steps, s.Dynamic = "async_local", 32, false })
	if got := fixed.Round(Now{Left: -1, Share: 0.1}); got.Steps != 32 {
		t.Errorf("without dynamic: %+v", got)
	}
}

// Streaming DiLoCo (torchft's local_sgd.py [Q]): fragment p is exchanged at the offset H p / P, and its answer is taken over tau steps
// later; torchft's example has H 20 and tau 5.
func TestStreamingDiLoCosOffsets(t *testing.T) {
	p, _ := made(t, func(s *Spec) { s.Policy, s.Steps, s.Fragments, s.Delay = "streaming_diloco", 20, 2, 5 })
	step := int64(0)
	for exchange := range int64(6) {
		r := p.Round(Now{Step: step, Left: -1})
		step += r.Steps
		if r.Ahead != 5 || step != 20*(exchange+1)/2 {
			t.Errorf("exchange %d after %d steps: %+v", exchange, step, r)
		}
	}
}

// SelSync (Tyagi and Swany, CLUSTER 2023; code [Q]): a worker votes for an exchange when the smoothed norm of its
// gradients has changed by the share delta, 0.3, in a step; each of the first 25 steps is an exchange.
func TestSelSyncVotes(t *testing.T) {
	for smoothing, c := range map[float64]struct{ norms, votes string }{
		1:   {"10 12 16 10 10 13 17", "- - x x - x x"}, // 20 %, 33 %, 37.5 %, 0, 30 %, 31 %
		0.5: {"10 14 24 18 7 7", "- - x - x -"},        // 10, 12, 18, 18, 12.5, 9.75
	} {
		p, _ := made(t, func(s *Spec) {
			s.Policy, s.Steps, s.Period.Name, s.Period.Smoothing = "averaging", 40, "selsync", smoothing
		})
		got := []string{}
		for norm := range strings.FieldsSeq(c.norms) {
			x, err := strconv.ParseFloat(norm, 64)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, map[bool]string{true: "x", false: "-"}[Observe(p, x)])
		}
		if text := strings.Join(got, " "); text != c.votes {
			t.Errorf("smoothing %g: votes %s for norms %s, want %s", smoothing, text, c.norms, c.votes)
		}
		for step, want := range map[int64]Round{0: {Steps: 1}, 24: {Steps: 1}, 25: {Steps: 40, Votes: true}} {
			if r := p.Round(Now{Step: step, Left: -1}); r != want {
				t.Errorf("step %d: %+v, want %+v", step, r, want)
			}
		}
	}
	if p, _ := made(t, func(s *Spec) { s.Policy, s.Steps = "hpsgd", 3 }); Votes(p) || Observe(p, 1) {
		t.Error("hpsgd votes")
	}
}

// Post-local SGD (Lin et al., ICLR 2020; PyTorch [Q]): gradients are averaged up to step 100, then there is a period of 4.
func TestPostLocalAtPyTorchsSettings(t *testing.T) {
	p, _ := made(t, func(s *Spec) { s.Policy, s.Steps = "post_local", 4 })
	step, exchanges := int64(0), 0
	for ; step < 200; exchanges++ {
		step += p.Round(Now{Step: step, Left: -1, Loss: math.NaN()}).Steps
	}
	if exchanges != 100+25 {
		t.Errorf("%d exchanges in 200 steps, want 100 and then one in 4", exchanges)
	}
}
