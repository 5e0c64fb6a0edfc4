package runtime

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// waitMax is how long a test waits for an event before it fails.
const waitMax = 20 * time.Second

type lines = stationtest.Lines

// awaitedLines is lines that calls end when all wanted texts were written.
type awaitedLines struct {
	lines
	want []*regexp.Regexp
	end  func()
}

func (u *awaitedLines) Write(p []byte) (int, error) {
	n, err := u.lines.Write(p)
	if len(u.missing()) == 0 {
		u.end()
	}
	return n, err
}

// missing lists the wanted texts that were not written.
func (u *awaitedLines) missing() (list []string) {
	text := u.String()
	for _, re := range u.want {
		if !re.MatchString(text) {
			list = append(list, re.String())
		}
	}
	return list
}

// mustStall runs a world in which a worker sleeps for too long, until all of these texts were logged.
func mustStall(t *testing.T, hosts string, c *configs.Config, want ...string) {
	t.Helper()
	ts := hosted(hosts)
	said := &awaitedLines{end: func() { ts[0].Abort(CodeStall) }}
	for _, w := range want {
		said.want = append(said.want, regexp.MustCompile(w))
	}
	late := time.AfterFunc(waitMax, said.end)
	defer late.Stop()
	_, errs := runOver(t, ts, c, func(o *Options) { o.Host, o.Warn = hosts[o.Transport.Rank():][:1], said })
	for i, err := range errs {
		if err == nil {
			t.Errorf("rank %d ended well", i)
		}
	}
	if list := said.missing(); len(list) > 0 {
		t.Errorf("nobody said %q:\n%s", list, said.String())
	}
}

// cached reads each data set once for all tests.
func cached(spec workload.DataSpec) (*dataset.Set, error) { return configstest.Data(spec) }

// beginTogether makes n workers begin together, so that none is told to stop before it has begun: a fast worker computes
// hundreds of iterations before a busy machine lets another one begin.
func beginTogether(n int) func(*Options) {
	load := sidestest.Together(n)
	return func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) { return load(o.Transport.Rank(), spec) }
	}
}

// trainTogether trains with 2 servers and 4 workers that begin together.
func trainTogether(t testing.TB, c *configs.Config) Result {
	t.Helper()
	res, errs := world(t, c, 6, beginTogether(4))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return res[0]
}

// runsInRaceMode says whether a case of a test runs under the race detector, which makes convolutions some 20 times slower;
// the other cases run the same code.
func runsInRaceMode(name string, few ...string) bool { return !underRace || slices.Contains(few, name) }

// learns skips a test under the race detector that trains so long that a model learns: its many iterations run the same code as the few
// of other tests.
func learns(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("the same code as in shorter runs")
	}
}

// dropsSome says whether the scheme of a rule drops pushes beside a straggler.
func dropsSome(sync string) bool {
	return slices.ContainsFunc([]string{"drop, required", "ringmaster", "rennala"},
		func(name string) bool { return strings.Contains(sync, "scheme: "+name) })
}

// schemesThatPause are rules under which workers are at different iterations, or hold what a shard does not.
var schemesThatPause = []string{
	"{match: '*', scheme: asp}", "{match: '*', scheme: ssp, staleness: 3}", "{match: '*', scheme: ssp, staleness: 2, fold: rank}",
	"{match: '*', scheme: bounded_delay, tau: 3}", "{match: '*', scheme: dssp, s_l: 2, s_u: 4}",
	"{match: '*', scheme: pssp, staleness: 1, probability: 0.5}",
	"{match: '*', scheme: dsps, s_min: 1, s_max: 3, window: 4}", "{match: '*', scheme: drop, required: 3}",
	"{match: '*', scheme: drop, required: 3, contributors: step}",
	"{match: '*', scheme: softsync, q: 3}", "{match: '*', scheme: consgd}", "{match: '*', scheme: dynsgd}",
	"{match: '*', scheme: dynsgd, versions: multi, staleness: 2}",
	"{match: '*', scheme: ringmaster, delay_threshold: 3}", "{match: '*', scheme: rennala, pushes: 3}",
	"{match: '*', scheme: ringleader}", "{match: '*', scheme: quorum, required: 2}",
	"{match: '*.bias', scheme: quorum}, {match: '*', schemes: [{scheme: quorum, until: 9}, {scheme: bsp}]}",
	"{match: '*', scheme: r2sp}", "{match: '*', scheme: essp}", "{match: '*', scheme: ssp, push: delta, cache: true}",
	"{match: '*', scheme: vap, push: delta, v0: 0.01}",
	"{match: '*.bias', scheme: bsp}, {match: '*', scheme: ssp, staleness: 3}",
	"{match: '*.bias', scheme: essp}, {match: '*', schemes: [{scheme: bsp, until: 9}, {scheme: asp}]}",
}
