// Package sidestest trains with the two sides of ranks alone: servers and workers, without a run that evaluates, writes or
// ends them. Tests of serve and train see there what the sides do to parameters.
package sidestest

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/rank/train"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Options are what a test changes.
type Options struct {
	Hosts      string                   // of each rank, one letter; "": all ranks on one host
	Transports []comm.Transport         // nil: those of inproc
	Device     func(int) kernels.Device // of a rank that computes; nil: the processor
	Placer     func(kernels.Device) kernels.Placer
	Load       func(rank int, spec dataset.Spec) (*dataset.Set, error)
	Thresholds layout.Thresholds
	Axes       func(rank int) station.Axes // nil: none
	Warn       io.Writer                   // nil: nothing is kept
	Decided    servernode.Decided          // told of the decisions of schemes, by all servers at once; may be nil
}

// Result is what training ends with.
type Result struct {
	Plan       *shard.Plan
	Parameters []float32 // in model order
	Servers    []*serve.Report
	Workers    []*train.Report // of all ranks that compute, by their index among these
	Loss       float64         // mean over the samples that rank 0 hears of, if it serves the lead shard
	Sent       int64           // bytes, of all ranks
	Between    int64           // part of Sent that went to other hosts
	Shared     int64           // bytes that were read from the shared memory of other ranks, instead of received
}

// SHA256 is the hash of the parameters.
func (r *Result) SHA256() string { return workload.HashOf(r.Parameters) }

// Shards are those of all servers, by ID.
func (r *Result) Shards() (all []serve.ShardReport) {
	for _, s := range r.Servers {
		all = append(all, s.Shards...)
	}
	slices.SortFunc(all, func(a, b serve.ShardReport) int { return int(a.State.ID - b.State.ID) })
	return all
}

// Pushes are the iterations that the workers have started: each is one push to every shard.
func (r *Result) Pushes() (n int64) {
	for _, w := range r.Workers {
		if !w.Member {
			n += w.Iterations
		}
	}
	return n
}

// LeadMax is the largest lead at which a worker has started an iteration.
func (r *Result) LeadMax() (most int64) {
	for _, w := range r.Workers {
		most = max(most, w.LeadMax)
	}
	return most
}

// Samples are the samples that the workers have computed.
func (r *Result) Samples() (n int64) {
	for _, w := range r.Workers {
		n += w.Samples
	}
	return n
}

// Committed are the samples in the parameters, as the lead shard counts them.
func (r *Result) Committed() int64 {
	for _, s := range r.Servers {
		for _, sh := range s.Shards {
			if sh.State.ID == 0 {
				return sh.State.Samples
			}
		}
	}
	return 0
}

// sides are those of one rank.
type sides struct {
	server *serve.Side
	worker *train.Side
	heard  ear // of rank 0
}

// Train trains with so many ranks until the budget of the configuration is used up.
func Train(t testing.TB, c *configs.Config, ranks int, o Options) *Result {
	t.Helper()
	res, errs := Try(t, c, ranks, o)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return res
}

// Try is Train that may fail: it returns the error of each rank.
func Try(t testing.TB, c *configs.Config, ranks int, o Options) (*Result, []error) {
	t.Helper()
	if o.Hosts == "" {
		o.Hosts = stationtest.OneHost(ranks)
	}
	var mu sync.Mutex
	res := &Result{}
	var arena []float32
	all := make([]sides, ranks)
	w := stationtest.World{Config: c, Hosts: o.Hosts, Transports: o.Transports, Load: o.Load, Thresholds: o.Thresholds, Warn: o.Warn}
	w.Closing = func(st *station.Station) stationtest.Closing { return all[st.Me].closing() }
	errs := w.Each(t, func(st *station.Station) error {
		own := &all[st.Me]
		if o.Axes != nil {
			st.Axes = o.Axes(st.Me)
		}
		if err := own.open(st, o); err != nil {
			return err
		}
		if err := own.train(st); err != nil {
			return err
		}
		if err := st.Net.Agree(nil, station.CodeFailed); err != nil { // what others have sent by now is received
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if res.Plan = st.Plan; arena == nil {
			arena = make([]float32, res.Plan.Arena)
		}
		own.report(res, arena)
		res.Sent += st.Net.Traffic.Sent
		res.Between += st.Net.Traffic.Between
		res.Shared += st.Net.Traffic.Shared
		return st.Net.Err()
	})
	slices.SortFunc(res.Workers, func(a, b *train.Report) int { return a.Index - b.Index })
	if errors.Join(errs...) == nil {
		res.Parameters = slices.Concat(res.Plan.Views(arena)...)
	}
	return res, errs
}

// open makes the sides of a rank.
func (s *sides) open(st *station.Station, o Options) (err error) {
	if st.Me == 0 {
		st.Net.HandleHeader(wire.Stale, func(*wire.Header) {})
	}
	if st.Roles.Server(st.Me) >= 0 {
		of := serve.Options{Decided: o.Decided}
		if st.Me == 0 {
			of.Observer = &s.heard
		}
		if s.server, err = serve.New(st, of); err != nil {
			return err
		}
		s.server.OpenAhead()
	}
	if st.Roles.Leader(st.Me) >= 0 {
		of := train.Options{Background: s.server != nil}
		if o.Device == nil {
			of.Device = cpu.New(1)
		} else {
			of.Device = o.Device(st.Me)
		}
		if o.Placer != nil {
			of.Placer = o.Placer(of.Device)
		}
		if of.Traces, err = st.Config.ReadTraces(st.Roles.Computes()); err != nil {
			return err
		}
		if s.worker, err = train.New(st, of); err != nil {
			return err
		}
		s.worker.Handle()
	}
	if s.server != nil {
		s.server.Handle()
	}
	if st.Config.InRounds() && st.Me == 0 {
		schedule(st)
	}
	return st.Transport.Barrier()
}

// schedule has rank 0 answer at barriers, as the scheduler of PS-Lite does.
func schedule(st *station.Station) {
	node := core.NewScheduler(len(st.Roles.Workers))
	st.Net.HandleHeader(wire.Barrier, func(h *wire.Header) {
		for _, e := range node.Step(core.Input{Kind: core.Arrived, Msg: *h}, nil) {
			st.Net.Send(st.Roles.Workers[e.To], &e.Msg)
		}
	})
}

// train drives the sides of a rank until both are done.
func (s *sides) train(st *station.Station) error {
	st.Mu.Lock()
	defer st.Mu.Unlock()
	defer close(st.Ended)
	if s.worker != nil {
		s.worker.Begin(0)
	}
	isDone := func() bool {
		return (s.server == nil || s.server.Over()) && (s.worker == nil || s.worker.Over()) && st.Net.Idle()
	}
	isDue := func() bool { return isDone() || s.worker != nil && s.worker.Ready() }
	for {
		if err := st.Net.Drive(isDue); err != nil || isDone() {
			return err
		}
		s.worker.Run()
	}
}

// report adds what a rank ends with.
func (s *sides) report(to *Result, arena []float32) {
	if s.server != nil {
		to.Servers = append(to.Servers, s.server.Report())
		state, vectors := s.server.Save()
		for _, sh := range state.Shards {
			copy(arena[sh.Lo:sh.Hi], vectors[0])
			vectors = vectors[sh.Vectors:]
		}
	}
	if s.heard.samples > 0 {
		to.Loss = s.heard.loss / float64(s.heard.samples)
	}
	if s.worker != nil {
		to.Workers = append(to.Workers, s.worker.Report())
	}
}

func (s *sides) closing() stationtest.Closing {
	c := stationtest.Closing{Cancel: func() {}, Idle: func() bool { return true }}
	if s.server != nil {
		c.Cancel, c.Idle = s.server.CloseAhead, s.server.Idle
	}
	c.Release = func() {
		if s.server != nil {
			s.server.Close()
		}
		if s.worker != nil {
			s.worker.Close()
		}
	}
	return c
}

// ear hears what happens to the lead shard.
type ear struct {
	loss    float64
	samples int64
}

func (e *ear) Folded(m wire.Header) { e.loss, e.samples = e.loss+m.Loss, e.samples+m.Samples }

func (*ear) Committed(int64, int64, float64) {}
func (*ear) Snapshot(int64, int64)           {}
func (*ear) Kept(int64)                      {}
func (*ear) Changed(*core.Effect)            {}
func (*ear) Stale(int, int64)                {}
