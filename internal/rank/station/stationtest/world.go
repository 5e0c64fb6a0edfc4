package stationtest

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

// World is the ranks of a run that have met, read their data and cut the parameters, and have no sides yet: what a room needs below it.
type World struct {
	Config     *configs.Config
	Hosts      string           // of each rank, one letter; ranks of different hosts share no memory
	Transports []comm.Transport // nil: those of inproc
	Warn       io.Writer        // nil: nothing is kept
	Load       func(rank int, spec dataset.Spec) (*dataset.Set, error)
	Thresholds layout.Thresholds
	Closing    func(*station.Station) Closing // of a rank that has done its part; nil: nothing is open
}

// Closing is what a rank has open beside its link when it has done its part.
type Closing struct {
	Cancel  func()      // cancels receives
	Idle    func() bool // says that none is left
	Release func()      // frees memory, when nothing is in flight any more
}

// OneHost is the Hosts of so many ranks.
func OneHost(ranks int) string { return strings.Repeat("a", ranks) }

// Transports makes the ranks of these hosts.
func Transports(hosts string) []comm.Transport {
	numbers := make([]int, len(hosts))
	for i := range hosts {
		numbers[i] = int(hosts[i])
	}
	return inproc.New(len(hosts), inproc.Options{Hosts: numbers})
}

// Each calls do on every rank, each on a goroutine of its own as in a run, and returns the error of each rank. As in a run, an
// error that is not agreed on ends all ranks.
func (w World) Each(t testing.TB, do func(*station.Station) error) []error {
	t.Helper()
	ts := w.Transports
	if ts == nil {
		ts = Transports(w.Hosts)
	}
	errs := make([]error, len(ts))
	var all sync.WaitGroup
	for i, tr := range ts {
		all.Go(func() {
			st, err := w.meet(ts, tr)
			if err == nil {
				err = do(st)
			}
			var agreed *station.ExitError
			if err != nil && !errors.As(err, &agreed) {
				tr.Abort(station.CodeFailed)
				errs[i] = errors.Join(err, tr.Close())
				return
			}
			end := Closing{Cancel: func() {}, Idle: func() bool { return true }, Release: func() {}}
			if err == nil && w.Closing != nil {
				end = w.Closing(st)
			}
			errs[i] = errors.Join(err, tr.Barrier(), st.Net.Close(end.Cancel, end.Idle))
			end.Release()
			errs[i] = errors.Join(errs[i], st.Unshare(), tr.Close())
		})
	}
	all.Wait()
	return errs
}

// Must is Each whose ranks must all end well.
func (w World) Must(t testing.TB, do func(*station.Station) error) {
	t.Helper()
	if err := errors.Join(w.Each(t, do)...); err != nil {
		t.Fatal(err)
	}
}

// meet sets up the station of a rank.
func (w World) meet(ts []comm.Transport, tr comm.Transport) (*station.Station, error) {
	c := w.Config
	st := &station.Station{Ended: make(chan struct{}), Guard: func() {}, Transport: tr, Config: c, Me: tr.Rank(),
		Net: link.New(tr, link.Options{Apart: c.InRounds()})}
	for i, other := range ts {
		st.Hosts = append(st.Hosts, w.Hosts[i:i+1])
		st.NodeOf = append(st.NodeOf, int(other.NodePeers()[0]))
	}
	st.Net.Know(st.Hosts)
	st.Log = metrics.NewLogger(metrics.LogSpec{Rank: st.Me, Host: st.Hosts[st.Me], Stderr: w.Warn})
	load := w.Load
	if load == nil {
		load = func(_ int, spec dataset.Spec) (*dataset.Set, error) { return configstest.Data(spec) }
	}
	var err error
	if st.Roles, err = layout.Roles(c, st.Hosts); err != nil {
		return st, station.Usage("%v", err)
	}
	if st.Set, err = load(st.Me, layout.DataSpec(c)); err != nil {
		return st, err
	}
	if err := st.Net.Open(); err != nil {
		return st, err
	}
	if _, err := st.Cut(); err != nil {
		return st, err
	}
	if err := st.OpenTeam(); err != nil {
		return st, err
	}
	return st, st.Share(w.Thresholds)
}
