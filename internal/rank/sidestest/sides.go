// Package sidestest trains with the two sides of ranks alone: servers and workers, without a run that evaluates, writes or
// ends them. Tests of serve and train see there what the sides do to parameters.
package sidestest

import (
	"slices"
	"sync"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
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
}

// Result is what training ends with.
type Result struct {
	Parameters []float32 // in model order
	Servers    []*serve.Report
	Workers    []*train.Report
	Sent       int64 // bytes, of all ranks
}

// SHA256 is the hash of the parameters.
func (r *Result) SHA256() string { return workload.HashOf(r.Parameters) }

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
}

// Train trains with so many ranks until the budget of the configuration is used up.
func Train(t testing.TB, c *configs.Config, ranks int, o Options) *Result {
	t.Helper()
	if o.Hosts == "" {
		o.Hosts = stationtest.OneHost(ranks)
	}
	var mu sync.Mutex
	res := &Result{}
	var arena []float32
	var plan *shard.Plan
	all := make([]sides, ranks)
	w := stationtest.World{Config: c, Hosts: o.Hosts, Transports: o.Transports, Load: o.Load, Thresholds: o.Thresholds}
	w.Closing = func(st *station.Station) stationtest.Closing { return all[st.Me].closing() }
	w.Must(t, func(st *station.Station) error {
		own := &all[st.Me]
		if err := own.open(st, o); err != nil {
			return err
		}
		if err := own.train(st); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if plan = st.Plan; arena == nil {
			arena = make([]float32, plan.Arena)
		}
		own.report(res, arena)
		res.Sent += st.Net.Traffic.Sent
		return st.Net.Err()
	})
	res.Parameters = slices.Concat(plan.Views(arena)...)
	return res
}

// open makes the sides of a rank.
func (s *sides) open(st *station.Station, o Options) (err error) {
	if st.Me == 0 {
		st.Net.HandleHeader(wire.Stale, func(*wire.Header) {})
	}
	if st.Roles.Server(st.Me) >= 0 {
		of := serve.Options{}
		if st.Me == 0 {
			of.Observer = nobody{}
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

// nobody hears what happens to the lead shard.
type nobody struct{}

func (nobody) Folded(wire.Header)              {}
func (nobody) Committed(int64, int64, float64) {}
func (nobody) Snapshot(int64, int64)           {}
func (nobody) Kept(int64)                      {}
func (nobody) Changed(*core.Effect)            {}
func (nobody) Stale(int, int64)                {}
