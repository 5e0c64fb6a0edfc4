package runtime

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/faulty"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/scheme"
)

var (
	leadRuns  = flag.Int("lead.runs", 12, "random runs whose leads are computed from their records")
	leadFirst = flag.Int("lead.first", 0, "the first of these runs")
)

// recordedLead is the largest lead that a reader of the records finds.
func recordedLead(res Result) int64 {
	return timings.LeadsOf(res.Iterations, time.Duration(res.Summary.ClockErrorNS)).Max(res.Iterations)
}

// boundOf is the largest lead that the schemes of all shards allow; false: some shard has no bound.
func boundOf(c *configs.Config) (most int64, ok bool) {
	for _, rule := range c.Sync {
		for _, of := range rule.Phases() {
			e, _ := scheme.All.Lookup(of.Scheme)
			bound, bounded := e.LeadMax(of.Params)
			if !bounded {
				return 0, false
			}
			most = max(most, bound)
		}
	}
	return most, true
}

// drawLead draws a small run: schemes with and without a bound, shards on several servers, workers that are slowed down.
func drawLead(r *rand.Rand) (workers, servers int, set []string) {
	schemes := []string{"scheme: bsp", "scheme: ssp, staleness: %d", "scheme: ssp, staleness: %d, release: soft",
		"scheme: essp, staleness: %d", "scheme: bounded_delay, tau: %d",
		"scheme: asp", "scheme: dssp, s_l: %d, s_u: 7", "scheme: pssp, staleness: %d, probability: 0.5, hard_cap: 6",
		"scheme: r2sp", "scheme: softsync"}
	draw := func() string {
		s := schemes[r.IntN(len(schemes))]
		if strings.Contains(s, "%d") {
			s = fmt.Sprintf(s, 1+r.IntN(4))
		}
		return s
	}
	sync := fmt.Sprintf("sync=[{match: '*', %s}]", draw())
	if r.IntN(2) == 0 {
		sync = fmt.Sprintf("sync=[{match: 'fc%d.*', %s}, {match: '*', %s}]", 1+r.IntN(2), draw(), draw())
	}
	workers, servers = 2+r.IntN(4), 1+r.IntN(3)
	set = []string{sync, fmt.Sprintf("cluster.servers=%d", servers), fmt.Sprintf("seed=%d", r.IntN(1000)), "model={name: mlp, layers: [8]}",
		fmt.Sprintf("train.stop={samples: %d}", 8*workers*(20+r.IntN(30))), "evaluate={every_epochs: 0}",
		fmt.Sprintf("send.overlap=%v", r.IntN(4) > 0)}
	if r.IntN(2) == 0 {
		set = append(set, fmt.Sprintf("faults=[{worker: %d, slow: {sleep: %dus}}]", r.IntN(workers), 100+r.IntN(900)))
	}
	return workers, servers, set
}

// drawClocks draws what is wrong with the clocks of the ranks: some lose the processor wherever they read the clock, and some are on hosts
// whose clocks are not known exactly and run away.
func drawClocks(r *rand.Rand, ranks int) []faulty.Clock {
	clocks := make([]faulty.Clock, ranks)
	apart := r.IntN(3) == 0
	for i := range clocks {
		if r.IntN(2) == 0 {
			clocks[i].Late = time.Duration(1+r.IntN(4)) * time.Millisecond / 2
		}
		if apart && i > 0 {
			clocks[i].Error = time.Duration(10+r.IntN(500)) * time.Microsecond
			clocks[i].Off = time.Duration((2*r.Float64() - 1) * float64(clocks[i].Error))
			clocks[i].Gain = 0.1 * (2*r.Float64() - 1)
		}
	}
	return clocks
}

// lateStart is a rank that gets the processor late after each barrier.
type lateStart struct {
	comm.Transport
	late time.Duration
}

func (l lateStart) Barrier() error {
	err := l.Transport.Barrier()
	time.Sleep(l.late)
	return err
}

// The law of the lead: what a reader of the records computes is never above what the gates let pass, and so not above the bound of
// the schemes.
func TestTheLeadInTheRecordsIsWhatTheGateKept(t *testing.T) {
	held, bounded, apart, most := 0, 0, 0, int64(0)
	for k := range *leadRuns {
		seed := uint64(*leadFirst + k)
		r := rand.New(rand.NewPCG(seed, 31))
		workers, servers, set := drawLead(r)
		c := load(t, set...)
		ts := inproc.New(workers+servers, inproc.Options{})
		clocks := drawClocks(r, len(ts))
		late := r.IntN(len(ts))
		ts[late] = lateStart{ts[late], time.Duration(r.IntN(20)) * time.Millisecond} // below the clock, whose error it would hide
		ts = faulty.WithClocks(ts, seed, clocks...)
		results, errs := runOver(t, ts, c, func(o *Options) { o.Iterations = true })
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("run %d: %v\n%v", seed, err, set)
		}
		s := results[0].Summary
		if slices.ContainsFunc(s.PerShard, func(sh metrics.ShardSummary) bool { return sh.Dropped+sh.Skipped > 0 }) {
			continue // such a worker's clock goes on without its pushes
		}
		held++
		lead := recordedLead(results[0])
		if lead > s.MaxLead {
			t.Errorf("run %d: the records show a lead of %d, the gates let %d pass; %v, clocks %v", seed, lead, s.MaxLead, set, clocks)
		}
		if bound, ok := boundOf(c); ok {
			bounded++
			if lead > bound {
				t.Errorf("run %d: the records show a lead of %d, the schemes allow %d; %v, clocks %v", seed, lead, bound, set, clocks)
			}
		}
		if most = max(most, lead); s.ClockErrorNS > 0 {
			apart++
		}
	}
	t.Logf("%d runs: the recorded lead was never above the gates', %d with a bound, %d on hosts with clocks of their "+
		"own; the largest was %d", held, bounded, apart, most)
	if *leadRuns >= 12 && (bounded == 0 || apart == 0 || most == 0 || held < *leadRuns/2) {
		t.Error("the draw is too narrow")
	}
}
