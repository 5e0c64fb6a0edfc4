package sim_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
	"fluentps/ps/scheme"
)

var update = flag.Bool("update", false, "rewrite the tables in testdata")

// TestTableOfSchemes holds testdata/one-straggler.md to what the simulator says of each scheme: one straggler at 4 times
// the compute time among 16 workers, defaults of every scheme, means over the seeds. A scheme that is new has no row there until
// somebody asks for one by -update.
func TestTableOfSchemes(t *testing.T) {
	table := schemeTable(t)
	t.Log("\n" + table)
	golden(t, "testdata/one-straggler.md", table, func(line, written string) bool {
		cell, _, isRow := strings.Cut(line, "` |")
		return isRow && !strings.Contains(written, cell+"` |")
	})
}

// golden holds a file to what the simulator says, but for lines that the file need not have, or writes it.
func golden(t *testing.T, name, said string, spared func(line, written string) bool) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(said), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for line := range strings.Lines(said) {
		if !spared(line, string(written)) {
			want += line
		}
	}
	if string(written) != want {
		t.Errorf("%s has\n%s\nthe simulator says\n%s\n(make golden rewrites it)", name, written, want)
	}
}

// row sums one scheme over the seeds.
type row struct {
	steps, blocked, mean float64
	max, delayed, lead   int64
	pulls                int64
}

func schemeTable(t *testing.T) string {
	seeds := []uint64{1, 2, 3}
	// A scheme is shown with its defaults, unless these make it another scheme of the table.
	rules := map[string]string{"drop": "drop, required: 15", "vap": "vap, v0: 0.1"}
	rows := map[string]*row{}
	var cost []string
	for _, e := range scheme.All {
		rows[e.Name] = &row{}
		if rules[e.Name] == "" {
			rules[e.Name] = e.Name
		}
		var work []string
		if e.WorkPolicy() != "" {
			work = []string{"work.policy=" + e.WorkPolicy()}
		}
		for _, seed := range seeds {
			r := run(t, simtest.Setting{Workers: 16, Servers: 2, Scheme: rules[e.Name], Iterations: 500, Bytes: 4 << 20,
				Seed: seed, Set: slices.Concat(work,
					simtest.Noisy(50*time.Millisecond, 0.1, "{worker: 3, slow: {factor: 4}}"),
					[]string{"simulate.network={bandwidth: 1.25GB, latency: 20us}", "simulate.server={fold: 4GB, commit: 2GB}"})})
			rows[e.Name].add(r)
			if len(r.Summary.CostModel) > len(cost) { // some schemes have a longer cost model
				cost = r.Summary.CostModel
			}
		}
	}
	base := rows["bsp"].steps
	if base == 0 {
		t.Fatal("bsp made no steps")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Simulated, not measured: 16 workers, one of them 4 times slower, 50 ms of computing within 10 "+
		"%%, 2 servers, a model of\n4 MiB, 500 iterations, every scheme with its defaults but for the keys shown; means "+
		"over the seeds %v. The cost model:\n\n", seeds)
	for _, line := range cost {
		b.WriteString("    " + line + "\n")
	}
	b.WriteString("\n| scheme | steps per second, bsp = 1 | staleness mean | staleness max | blocked share | delayed " +
		"pulls | largest lead |\n|---|---|---|---|---|---|---|\n")
	n := float64(len(seeds))
	for _, e := range scheme.All {
		r := rows[e.Name]
		fmt.Fprintf(&b, "| `%s` | %.2f | %.1f | %d | %.0f %% | %.1f %% | %d |\n", rules[e.Name], r.steps/base, r.mean/n,
			r.max, 100*r.blocked/n, 100*float64(r.delayed)/float64(r.pulls), r.lead)
	}
	return b.String()
}

func (r *row) add(res *sim.Result) {
	s := res.Summary
	r.steps += float64(s.Iterations) / res.Duration.Seconds()
	r.blocked += float64(s.PerRole[metrics.RoleWorker]["blocked"].Avg) / res.Duration.Seconds()
	var all metrics.Hist
	for i := range res.Stale {
		all.Merge(&res.Stale[i])
	}
	r.mean += all.Mean()
	r.max = max(r.max, all.Max())
	r.lead = max(r.lead, s.MaxLead)
	r.delayed += res.Delayed
	for _, sh := range s.PerShard {
		r.pulls += sh.Pulls
	}
}
