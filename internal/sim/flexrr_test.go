package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/sim/simtest"
	"fluentps/tests/pagetest"
)

// beforeHelp were the defaults of help until the sweep: a helper got less than a step, and what a straggler had left at last was its own.
const beforeHelp = "helpers: 2, left: 0.05, first: 0.025, next: 0.05"

// helped is how long an iteration takes, over the time in which all workers together compute its samples: batches of
// 64 samples of a millisecond, one worker slower by a factor, or with factor 0 all of them 4 times slower now and
// then, where the ideal is that of the mean speed.
func helped(t *testing.T, workers int, factor float64, link, work string) float64 {
	t.Helper()
	const iterations, batch = 40, 64
	faults, speed := fmt.Sprintf("{worker: 1, slow: {factor: %g}}", factor), float64(workers-1)+1/factor
	if factor == 0 {
		faults, speed = `{worker: "*", slow: {kind: two_state, factor: 4, enter: 0.05, leave: 0.2}}`, float64(workers)*(0.8+0.2/4)
	}
	r := run(t, simtest.Setting{Workers: workers, Servers: 1, Seed: 1, Iterations: iterations, Bytes: 100_000,
		Scheme: "bsp", Compute: "{fixed: 0s, per_sample: 1ms}", Set: []string{
			fmt.Sprintf("train.batch_per_worker=%d", batch), fmt.Sprintf("train.stop={updates: %d}", iterations), "faults=[" +
				faults + "]", "work={" + work + "}",
			"simulate.network={latency: 50us, bandwidth: " + link + "}"}})
	return r.Duration.Seconds() * 1000 / iterations / (batch * float64(workers) / speed)
}

// TestFlexRRHelpersTable holds the table of FLEXRR.md to the simulator. The defaults are better than those before
// them in the mean over links and slowness, with each number of helpers, and better than one request. No number of
// helpers up to the default loses to a smaller one.
func TestFlexRRHelpersTable(t *testing.T) {
	if underRace {
		t.Skip("one goroutine: the tests of the pure build make the table")
	}
	made := "| link | slowness | bsp | the defaults before | before, 3 helpers | 1 helper | 2 helpers | 3 helpers, " +
		"the default | 4 helpers | 7 helpers | one request, 3 helpers |\n" +
		strings.Repeat("|---", 11) + "|\n"
	policies := []string{"policy: fixed", "policy: flexrr, help: {" + beforeHelp + "}", "policy: flexrr, help: {" +
		strings.Replace(beforeHelp, "2", "3", 1) + "}",
		"policy: flexrr, help: {helpers: 1}", "policy: flexrr, help: {helpers: 2}", "policy: flexrr",
		"policy: flexrr, help: {helpers: 4}", "policy: flexrr, help: {helpers: 7}",
		"policy: flexrr, help: {first: 0}"}
	mean := make([]float64, len(policies))
	rows := 0.0
	for _, link := range []string{"0B", "100MB"} {
		for _, factor := range []float64{1.01, 1.5, 2, 3, 4, 8, 0} {
			name, what := map[string]string{"0B": "free", "100MB": "1 ms a push"}[link], fmt.Sprintf("one, %g times", factor)
			switch factor {
			case 0:
				what = "all, now and then"
			case 1.01:
				what = "none"
			}
			made += fmt.Sprintf("| %s | %s ", name, what)
			for k, work := range policies {
				x := 0.0
				for _, workers := range []int{4, 8, 16} {
					x += helped(t, workers, factor, link, work) / 3
				}
				mean[k] += x
				made += fmt.Sprintf("| %.2f ", x)
			}
			rows++
			made += "|\n"
		}
	}
	made += "| all | mean "
	for k := range mean {
		mean[k] /= rows
		made += fmt.Sprintf("| %.2f ", mean[k])
	}
	made += "|\n"
	if mean[5] > 0.95*mean[1] || mean[5] > 0.97*mean[2] || mean[5] > 0.9*mean[8] || mean[5] > mean[4] || mean[4] > mean[3] {
		t.Errorf("means over all rows %.3f: the defaults do not pay", mean)
	}
	pagetest.Table(t, *update, "internal/policy/work/FLEXRR.md", "go test ./internal/sim -run TestFlexRRHelpersTable -update", made, 0)
}
