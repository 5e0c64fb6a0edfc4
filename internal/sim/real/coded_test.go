package real

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/tests/pagetest"
)

// codedOptions are those of workers that push sums, with real gradients. Slow ones take ten times as long.
func codedOptions(t *testing.T, workers, stragglers, slow int, more string) training {
	t.Helper()
	faults := "[]"
	for w := range slow {
		if w == 0 {
			faults = ""
		}
		faults += fmt.Sprintf(", {worker: %d, slow: {factor: 10}}", 2*w)
	}
	if slow > 0 {
		faults = "[" + faults[2:] + "]"
	}
	set := []string{fmt.Sprintf("simulate={workers: %d, compute: {per_sample: 1ms}, network: {bandwidth: 0B, latency: "+
		"0s}, server: {fold: 0B, commit: 0B}}", workers), "faults=" + faults}
	if stragglers >= 0 {
		set = append(set, fmt.Sprintf("work={policy: coded, micro: 1, code: {stragglers: %d%s}}", stragglers, more),
			`sync=[{match: "*", scheme: coded}]`)
	}
	return realOptions(t, set...)
}

func ranCoded(t *testing.T, o training) *sim.Result {
	t.Helper()
	r, err := check.Run(o.Options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// With s workers slowed ten times a coded run takes hardly longer than without, s + 1 times as long as bsp without
// them, and learns what bsp learns.
func TestCodedHidesStragglers(t *testing.T) {
	for _, c := range []struct {
		workers, s int
		kind       string
		error      float64
	}{{5, 1, "cyclic", 1e-5}, {4, 1, "fractional", 1e-6}, {7, 2, "cyclic", 1e-4}, {6, 2, "fractional", 1e-6}} {
		more := ", kind: " + c.kind
		clean := ranCoded(t, codedOptions(t, c.workers, c.s, 0, more))
		slow := ranCoded(t, codedOptions(t, c.workers, c.s, c.s, more))
		bsp, bspSlow := ranCoded(t, codedOptions(t, c.workers, -1, 0, "")), ranCoded(t, codedOptions(t, c.workers, -1, c.s, ""))
		t.Logf("%d workers, %s, s = %d: %v without stragglers, %v with them; bsp %v and %v", c.workers, c.kind, c.s,
			clean.Duration, slow.Duration, bsp.Duration, bspSlow.Duration)
		if slow.Duration > clean.Duration*115/100 || clean.Duration < bsp.Duration*time.Duration(c.s+1)*99/100 ||
			bspSlow.Duration < slow.Duration*10/time.Duration(c.s+1)*8/10 {
			t.Errorf("%d workers, %s, s = %d: %v without stragglers, %v with them; bsp %v and %v", c.workers, c.kind, c.s,
				clean.Duration, slow.Duration, bsp.Duration, bspSlow.Duration)
		}
		if n := slow.Summary.PerShard[0].Approximate; n > 0 {
			t.Errorf("%d workers, %s, s = %d: %d versions decoded approximately", c.workers, c.kind, c.s, n)
		}
		if got, want := float64(*slow.Summary.TestLoss),
			float64(*bsp.Summary.TestLoss); math.Abs(got-want) > c.error*want || slow.Summary.Samples != bsp.Summary.Samples {
			t.Errorf("%d workers, %s, s = %d: a test loss of %v after %d samples, bsp has %v after %d", c.workers, c.kind, c.s,
				got, slow.Summary.Samples, want, bsp.Summary.Samples)
		}
	}
}

// If more workers are lost than a code allows, the others go on with what they can decode. With a deadline nobody
// waits for slow ones either.
func TestCodedGoesOnWithTooFew(t *testing.T) {
	o := codedOptions(t, 5, 1, 0, "")
	o.Losses = []sim.Loss{{Worker: 1, At: 50 * time.Millisecond}, {Worker: 2, At: 70 * time.Millisecond},
		{Worker: 4, At: 90 * time.Millisecond}}
	r := ranCoded(t, o)
	if r.Lost != 3 || r.Summary.Updates != 30 {
		t.Errorf("%d workers lost, %d versions; want 3 and 30", r.Lost, r.Summary.Updates)
	}
	n := int64(0)
	for _, s := range r.Summary.PerShard {
		n += s.Approximate
	}
	var text strings.Builder
	if err := metrics.WriteText(&text, r.Summary, 200); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("Over all shards: %d versions decoded approximately", n); n == 0 || !strings.Contains(text.String(), want) {
		t.Errorf("the summary does not say %q:\n%s", want, text.String())
	}
	waits, closes := ranCoded(t, codedOptions(t, 6, 1, 3, ", kind: cyclic")),
		ranCoded(t, codedOptions(t, 6, 1, 3, ", kind: cyclic, deadline: 8ms"))
	t.Logf("three of six are slow, s = 1: %v, with a deadline %v", waits.Duration, closes.Duration)
	if closes.Duration > waits.Duration/3 || *closes.Summary.TestAccuracy < *waits.Summary.TestAccuracy-0.1 {
		t.Errorf("three of six are slow, s = 1: %v and accuracy %v, with a deadline %v and %v", waits.Duration,
			*waits.Summary.TestAccuracy, closes.Duration, *closes.Summary.TestAccuracy)
	}
}

// partialStragglers is one row of the table in internal/policy/work/CODED.md: 12 workers, of which s compute alpha times as long as the
// others.
type partialStragglers struct {
	s     int
	alpha float64
}

// takes is how long an iteration takes, in those of a worker with a batch, and the run. Computing ends between two
// steps of micro samples, 0: the default.
func (p partialStragglers) takes(t *testing.T, work string, micro int, slow float64) (float64, *sim.Result) {
	t.Helper()
	const workers, batch, iterations = 12, 60, 20
	var faults []string
	for w := range p.s {
		faults = append(faults, fmt.Sprintf("{worker: %d, slow: {factor: %g}}", 4*w+1, slow))
	}
	set := []string{fmt.Sprintf("simulate={workers: %d, compute: {per_sample: 1ms}, network: {bandwidth: 0B, latency: "+
		"0s}, server: {fold: 0B, commit: 0B}}", workers),
		"faults=[" + strings.Join(faults, ", ") + "]", fmt.Sprintf("train.batch_per_worker=%d", batch),
		fmt.Sprintf("train.stop={updates: %d}", iterations)}
	if work != "" {
		set = append(set, fmt.Sprintf("work={policy: coded, micro: %d, code: {%s}}", micro, work), `sync=[{match: "*", scheme: coded}]`)
	}
	r := ranCoded(t, realOptions(t, set...))
	return float64(r.Duration) / float64(iterations*batch*time.Millisecond), r
}

// row runs bsp, the code of whole batches, and the code with private parts, which learn alike, and compares each with what theory says.
func (p partialStragglers) row(t *testing.T) string {
	coded := fmt.Sprintf("stragglers: %d", p.s)
	private := fmt.Sprintf("stragglers: %d, alpha: %g", p.s, p.alpha)
	naive, bsp := p.takes(t, "", 0, p.alpha)
	whole, all := p.takes(t, coded, 1, p.alpha)
	two, ours := p.takes(t, private, 1, p.alpha)
	late, _ := p.takes(t, private, 1, 2*p.alpha)
	wholeSteps, _ := p.takes(t, coded, 0, p.alpha)
	twoSteps, _ := p.takes(t, private, 0, p.alpha)
	load := float64(p.s + 1)
	theory := load * p.alpha / (float64(p.s) + p.alpha)
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"bsp", naive, p.alpha}, {"all coded", whole, load}, {"private parts", two, theory}} {
		// A slow worker that is let past an iteration ends its step first, of alpha samples' time; and the end of the run waits for it.
		if c.got < 0.98*c.want || c.got > 1.06*c.want {
			t.Errorf("%+v, %s: %.3f iterations, theory says %.3f", p, c.name, c.got, c.want)
		}
	}
	for _, r := range []*sim.Result{all, ours} {
		if got, want := float64(*r.Summary.TestLoss), float64(*bsp.Summary.TestLoss); math.Abs(got-want) > 1e-5*want ||
			r.Summary.Samples != bsp.Summary.Samples {
			t.Errorf("%+v: a test loss of %v after %d samples, bsp has %v after %d", p, got, r.Summary.Samples, want, bsp.Summary.Samples)
		}
	}
	best := min(naive, whole)
	return fmt.Sprintf("| %d | %g | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", p.s,
		p.alpha, naive, whole, two, theory, best/two, min(p.alpha, load)/theory, late,
		wholeSteps, twoSteps, min(naive, wholeSteps)/twoSteps)
}

// The table of the page is what is simulated: with private parts an iteration takes (s+1) alpha / (s + alpha) times
// as long as a worker takes for its batch, which is less than under bsp, alpha, and with whole batches coded, s + 1.
func TestPrivatePartsUseSlowWorkers(t *testing.T) {
	made := "| s | alpha | bsp | all coded | private parts | theory | gain over the better of both | gain in theory | " +
		"private parts, if slow workers take 2 alpha " +
		"| all coded, default `micro` | private parts, default `micro` | gain, default `micro` |\n" + strings.Repeat("|---", 12) + "|\n"
	for _, p := range []partialStragglers{{1, 1.5}, {1, 2}, {1, 3}, {1, 8}, {2, 2}, {2, 3}, {3, 2}, {3, 4}} {
		made += p.row(t)
	}
	t.Log("\n" + made)
	pagetest.Table(t, *update, "internal/policy/work/CODED.md",
		"go test ./internal/sim/real -run TestPrivatePartsUseSlowWorkers -update", made, 0)
}
