package station

import (
	"errors"
	"sync"
	"testing"

	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
)

// measured probes a world of ranks on these hosts, and returns the link that each rank knows afterwards.
func measured(t *testing.T, c *configs.Config, hosts []string, given layout.Link) []layout.Link {
	t.Helper()
	links, errs := make([]layout.Link, len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	for i, tr := range inproc.New(len(hosts), inproc.Options{}) {
		all.Go(func() {
			s := &Station{Transport: tr, Net: link.New(tr, link.Options{}), Config: c, Me: i, Hosts: hosts, Link: given}
			s.Net.Know(hosts)
			errs[i] = s.Net.Open()
			if errs[i] == nil {
				errs[i] = s.MeasureLink()
			}
			links[i] = s.Link
			if errs[i] != nil {
				tr.Abort(1)
				return
			}
			errs[i] = errors.Join(tr.Barrier(), s.Net.Close(func() {}, func() bool { return true }), tr.Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return links
}

// All ranks know the same rate, whichever host measured the least; ranks of one host measure none, nor does a run
// whose link is given or does not matter.
func TestTheLinkIsMeasuredOnce(t *testing.T) {
	plain, lossy := configstest.Load(t), configstest.Load(t, "payload.push=topk")
	for _, hosts := range [][]string{{"a", "b"}, {"a", "a", "b", "c", "c"}} {
		links := measured(t, plain, hosts, layout.Link{})
		for rank, l := range links {
			if l != links[0] || l.Rate < 1e6 || l.Given {
				t.Errorf("hosts %v: rank %d knows %+v, rank 0 %+v", hosts, rank, l, links[0])
			}
		}
	}
	for _, c := range []struct {
		cfg   *configs.Config
		hosts []string
		given layout.Link
	}{
		{plain, []string{"a", "a"}, layout.Link{}},
		{plain, []string{"a", "b"}, layout.Link{Rate: 25e6, Given: true}},
		{lossy, []string{"a", "b"}, layout.Link{}},
	} {
		for rank, l := range measured(t, c.cfg, c.hosts, c.given) {
			if l != c.given {
				t.Errorf("hosts %v, link %+v: rank %d measured %+v", c.hosts, c.given, rank, l)
			}
		}
	}
}
