package sim_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/sim/simtest"
)

// advised runs a setting. It returns its samples per second and, as one text, the NOTEs that name a scheme.
func advised(t *testing.T, c simtest.Setting) (rate float64, notes string) {
	t.Helper()
	s := run(t, c).Summary
	for _, n := range metrics.Notes(s) {
		if strings.Contains(n, "scheme:") {
			notes += n + "\n"
		}
	}
	return float64(s.SamplesPerS), notes
}

// in returns the number that pattern finds in a text. It fails the test if there is none.
func in(t *testing.T, text, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %q in %q", pattern, text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// keeps fails the test unless got is what was promised: at most a tenth less, and a third more, because pushes that arrive one by one
// crowd a link less.
func keeps(t *testing.T, what string, got, promised float64) {
	t.Helper()
	if got < 0.9*promised || got > 1.33*promised {
		t.Errorf("%s: %.3g times, promised were %.3g", what, got, promised)
	}
}

// slowInTurn makes the workers slow in turn, for a few iterations each. The exchange takes time, too.
var slowInTurn = []string{`faults=[{worker: "*", slow: {kind: two_state, factor: 8, enter: 0.02, leave: 0.4}}]`,
	"simulate.network={bandwidth: 1GB, latency: 500us}"}

// If the slow worker changes, the bound that the NOTE names gains what the NOTE says, and so does drop.
func TestAdviceAgainstWorkersThatAreSlowInTurn(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		c := simtest.Setting{Workers: 8, Servers: 2, Scheme: "bsp", Iterations: 600, Bytes: 400_000, Seed: seed, Set: slowInTurn}
		bsp, notes := advised(t, c)
		if strings.Contains(notes, "throughout the run") {
			t.Fatalf("%q of workers that are slow in turn", notes)
		}
		staleness := in(t, notes, `set scheme: ssp, staleness: (\d+) in the sync: rule`)
		c.Scheme = "ssp, staleness: " + strconv.Itoa(int(staleness))
		ssp, _ := advised(t, c)
		keeps(t, c.Scheme+" over bsp", ssp/bsp, in(t, notes, `about ([0-9.]+) times`))
		required := in(t, notes, `drop, required: (\d+)`)
		c.Scheme = "drop, required: " + strconv.Itoa(int(required))
		drop, _ := advised(t, c)
		keeps(t, c.Scheme+" over bsp", drop/bsp, in(t, notes, `drops late pushes \(([0-9.]+) times`))
		if ssp < 1.1*bsp || drop < 1.1*bsp {
			t.Errorf("seed %d: bsp %.0f, ssp %.0f, drop %.0f samples/s", seed, bsp, ssp, drop)
		}

		c.Scheme = "ssp, staleness: 1"
		one, notes := advised(t, c)
		c.Scheme = "ssp, staleness: " + strconv.Itoa(int(in(t, notes, `raise staleness to (\d+) in`)))
		more, _ := advised(t, c)
		keeps(t, c.Scheme+" over a staleness of 1", more/one, in(t, notes, `about ([0-9.]+) times`))
	}
}

// Against a worker that is always slow no bound helps, and the NOTE names none. The scheme that it names helps.
func TestAdviceAgainstAWorkerThatIsAlwaysSlow(t *testing.T) {
	c := simtest.Setting{Workers: 4, Servers: 2, Iterations: 600, Bytes: 400_000, Seed: 1,
		Set: append(simtest.Noisy(10*time.Millisecond, 0.1, "{worker: 3, slow: {factor: 5}}"),
			"simulate.network={bandwidth: 1GB, latency: 500us}")}
	rates := map[string]float64{}
	for _, scheme := range []string{"bsp", "ssp, staleness: 3", "ssp, staleness: 16", "dssp", "r2sp"} {
		c.Scheme = scheme
		rate, notes := advised(t, c)
		rates[scheme] = rate
		if strings.Contains(notes, "staleness") || strings.Contains(notes, "s_u") {
			t.Errorf("%s: a bound on the lead is advised: %s", scheme, notes)
		}
		simtest.Near(t, scheme+", the ratio", in(t, notes, `worker 3 \(.*\) computes ([0-9.]+) times as long`), 5, 0.03)
		base := scheme
		for scheme, says := range map[string]string{"asp": `scheme: asp .*about ([0-9.]+) times`,
			"drop, required: 3": `drop, required: 3, .*\(([0-9.]+) times`} {
			c.Scheme = scheme
			r, silent := advised(t, c)
			if silent != "" {
				t.Errorf("%s: %s", scheme, silent)
			}
			if base != "r2sp" {
				keeps(t, scheme+" over "+base, r/rate, in(t, notes, says))
			} else if !strings.Contains(notes, "scheme: "+scheme) || r < 2*rate {
				t.Errorf("%s makes %.0f samples/s and %s %.0f: %s", base, rate, scheme, r, notes)
			}
		}
	}
	for _, scheme := range []string{"ssp, staleness: 3", "ssp, staleness: 16", "dssp"} {
		if got := rates[scheme] / rates["bsp"]; got > 1.1 {
			t.Errorf("%s makes %.2f times as many samples/s as bsp: a bound helps after all", scheme, got)
		}
	}
}

// There is no NOTE after too few iterations, and none about workers that are alike.
func TestNoAdviceWithoutCause(t *testing.T) {
	slow := []string{"faults=[{worker: 3, slow: {factor: 5}}]"}
	for _, c := range []struct {
		simtest.Setting
		want bool
	}{
		{simtest.Setting{Iterations: 1, Set: slow}, false},
		{simtest.Setting{Iterations: 19, Set: slow}, false},
		{simtest.Setting{Iterations: 40, Set: slow}, true},
		{simtest.Setting{Iterations: 200}, false},
		{simtest.Setting{Iterations: 200, Set: simtest.Noisy(10*time.Millisecond, 0.05)}, false},
		// slow for too few iterations
		{simtest.Setting{Iterations: 200, Set: []string{"faults=[{worker: 3, slow: {factor: 5, until: 60}}]"}}, false},
	} {
		c.Workers, c.Servers, c.Scheme, c.Bytes, c.Seed = 4, 1, "bsp", 4000, 1
		if _, notes := advised(t, c.Setting); (notes != "") != c.want {
			t.Errorf("%d iterations with %v: %q", c.Iterations, c.Set, notes)
		}
	}
}

// If turns cost more than they save, a NOTE says so. The schemes that it names are faster.
func TestAdviceAgainstTurns(t *testing.T) {
	c := simtest.Setting{Workers: 8, Servers: 1, Scheme: "r2sp", Iterations: 400, Bytes: 4000, Seed: 1,
		Set: []string{"faults=[" + simtest.Exponential(0.5) + "]", "simulate.network={bandwidth: 1GB, latency: 100us}"}}
	r := run(t, c)
	if s := r.Summary.PerShard[0]; s.DelayedGrants == 0 || s.DelayedGrantsS <= 0 || s.MissedTurns == 0 {
		t.Fatalf("noisy workers waited for %d grants and missed %d turns", s.DelayedGrants, s.MissedTurns)
	}
	rate, notes := advised(t, c)
	if !strings.Contains(notes, "waited for their turn to push") || in(t, notes, `a server saw ([0-9,]+) turns missed`) < 1 {
		t.Errorf("%q", notes)
	}
	for _, scheme := range []string{"asp", "ssp"} {
		c.Scheme = scheme
		if other, _ := advised(t, c); other < 1.1*rate {
			t.Errorf("%s makes %.0f samples/s, r2sp %.0f", scheme, other, rate)
		}
	}
}

// Batches that fit gain what the NOTE says where computing is in proportion to samples, and are not advised where they are dealt already.
func TestAdviceOfBatchesThatFit(t *testing.T) {
	c := simtest.Setting{Workers: 4, Servers: 2, Scheme: "bsp", Iterations: 12000, Bytes: 400_000,
		Set: []string{"train.batch_per_worker=40", "simulate.compute={per_sample: 250us}", "faults=[{worker: 2, slow: {factor: 4}}]"}}
	bsp, notes := advised(t, c)
	promised := in(t, notes, `work: \{policy: dbs\} \(about ([0-9.]+) times`)
	c.Set = append(c.Set, "work.policy=dbs")
	dbs, notes := advised(t, c)
	if keeps(t, "dbs", dbs/bsp, promised); strings.Contains(notes, "work:") {
		t.Errorf("advised where batches are dealt: %s", notes)
	}
}
