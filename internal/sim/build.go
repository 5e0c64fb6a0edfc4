package sim

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
	"fluentps/ps/scheme"
)

// traceStart is the offset basis of FNV-1a.
const traceStart = 14695981039346656037

// worldOf returns the name of the host of each rank.
func worldOf(c *configs.Config) (hosts []string) {
	n := c.Simulate.Workers
	if c.Cluster.Placement != "colocate" {
		n += c.Cluster.Servers
	}
	for rank := range n {
		hosts = append(hosts, fmt.Sprintf("host%d", rank/c.Simulate.RanksPerHost))
	}
	return hosts
}

// Link is the link between the hosts that are simulated.
func Link(c *configs.Config) layout.Link {
	hosts := worldOf(c)
	if hosts[0] == hosts[len(hosts)-1] {
		return layout.Link{}
	}
	return layout.Link{Rate: float64(c.Simulate.Network.Bandwidth), Given: true}
}

// New makes the nodes of a run and its first events.
func New(o Options) (*Simulation, error) {
	s, err := newSimulation(o)
	if err != nil {
		return nil, err
	}
	if o.Observer != nil {
		if s.observer, err = o.Observer(s); err != nil {
			return nil, err
		}
	}
	s.begin()
	return s, nil
}

func newSimulation(o Options) (*Simulation, error) {
	c := o.Config
	if err := refuse(&o); err != nil {
		return nil, err
	}
	hosts := worldOf(c)
	roles, err := shard.Assign(hosts, c.Cluster.Servers, c.Cluster.Placement)
	if err != nil {
		return nil, err
	}
	n := c.Simulate.Workers
	s := &Simulation{o: o, cfg: c, plan: o.Plan, roles: roles, latency: int64(c.Simulate.Network.Latency),
		traffic: traffic{net: newNetwork((len(hosts)-1)/c.Simulate.RanksPerHost+1, c.Simulate.Network.Bandwidth), ahead: map[[2]int32][]int32{}},
		workers: make([]worker, n), servers: make([]server, len(roles.Servers)), tallies: make([]tally, len(o.Plan.Shards)),
		undone: n + len(roles.Servers), observer: Nobody{}, counts: counts{trace: traceStart}}
	s.q.delay = [2]int64{0, s.latency}
	s.stages = newStages(c, o.Plan, c.Overlaps())
	if c.InRounds() {
		s.policies.scheduler = core.NewScheduler(n)
	}
	if err := s.takeAxes(); err != nil {
		return nil, err
	}
	for m := range s.servers {
		if err := s.makeServer(int32(m)); err != nil {
			return nil, err
		}
	}
	if err := s.makeWorkers(); err != nil {
		return nil, err
	}
	if err := s.makeDealer(); err != nil {
		return nil, err
	}
	if o.Values != nil {
		s.values, err = o.Values(s)
	}
	if err == nil {
		err = s.makeSteps()
	}
	s.makeTimelines(len(hosts))
	return s, err
}

// makeTimelines makes the timelines of the ranks, if they are wanted.
func (s *Simulation) makeTimelines(ranks int) {
	if !s.o.Timeline {
		return
	}
	names, limits := timeline.NamesOf(s.plan, len(s.workers)), layout.Timeline(s.cfg, s.plan, s.roles)
	for rank := range ranks {
		s.timelines = append(s.timelines, timeline.NewRank(rank, names, limits, nil)) // its clock is not asked: the simulator knows the times
	}
	for i := range s.workers {
		s.workers[i].timeline = timeline.NewWorker(s.timelines[s.workers[i].rank], int32(i), s.plan)
	}
	for m := range s.servers {
		s.servers[m].timeline = timeline.NewServer(s.timelines[s.servers[m].rank])
	}
}

// refuse fails for options that cannot be simulated.
func refuse(o *Options) error {
	c, n := o.Config, o.Config.Simulate.Workers
	stop := c.Train.Stop
	if o.Values == nil && stop.Epochs == 0 && stop.Samples == 0 && stop.Updates == 0 && stop.Time == 0 {
		return fmt.Errorf("train.stop has only a target, but without gradients there is no accuracy; set epochs, " +
			"samples, updates or time, or simulate.gradients")
	}
	if err := c.CheckWork(n, o.Rows); err != nil {
		return err
	}
	if err := c.CheckFaults(n); err != nil {
		return err
	}
	if err := c.CheckAwaits(n); err != nil {
		return err
	}
	if err := refuseCompute(o); err != nil {
		return err
	}
	for _, l := range o.Losses {
		if l.Worker < 0 || l.Worker >= n || l.At < 0 {
			return fmt.Errorf("loss of worker %d at %v, but the workers are 0 to %d and times start at 0", l.Worker, l.At, n-1)
		}
	}
	if err := refuseJoins(o); err != nil {
		return err
	}
	if err := refuseBaseline(o); err != nil {
		return err
	}
	for _, p := range o.Pauses {
		if p.Worker < 0 || p.Worker >= n || p.At < 0 || p.For < 0 {
			return fmt.Errorf("pause of worker %d at %v for %v, but the workers are 0 to %d and times start at 0", p.Worker, p.At, p.For, n-1)
		}
	}
	return nil
}

func (s *Simulation) makeServer(me int32) error {
	c, n := s.cfg, len(s.workers)
	b := s.Build()
	schemes, err := b.Schemes(me, nil)
	if err != nil {
		return err
	}
	for id, ss := range schemes {
		if err := s.refuseScheme(s.plan.Shards[id].Rule, &ss); err != nil {
			return err
		}
		bytes := s.plan.Shards[id].Bytes()
		s.tallies[id] = tally{fold: nanoseconds(bytes, c.Simulate.FoldRate),
			commit: nanoseconds(bytes, c.Simulate.CommitRate), slots: make([]int32, n)}
		if s.CopyOf(s.plan.Shards[id].Rule).Kind != scheme.Pulled {
			s.tallies[id].iters = make([]int64, n)
		}
		if ss.Norms {
			s.tallies[id].unmeasured = make([]unmeasured, n)
		}
	}
	m := &s.servers[me]
	m.lives = make([]uint16, n)
	m.rank = s.roles.Servers[me]
	m.host = m.rank / c.Simulate.RanksPerHost
	every := int64(0)
	if s.o.Values != nil {
		every = c.Evaluate.Samples(s.o.Rows)
	}
	m.node = b.Server(me, build.Server{Schemes: schemes, SnapshotEvery: every, Decided: s.o.Decided})
	return nil
}

func (s *Simulation) makeWorkers() error {
	c := s.cfg
	pauses, err := modelWorkers(&s.o, s.workers)
	if err != nil {
		return err
	}
	s.o.Pauses = append(slices.Clip(s.o.Pauses), pauses...)
	for i := range s.workers {
		w := &s.workers[i]
		w.rank = s.roles.Workers[i]
		w.host = w.rank / c.Simulate.RanksPerHost
		w.tasks.iter = -1
		w.node = s.Build().Worker(i, 0, nil)
	}
	return nil
}

// modelWorkers sets the model of computing of each worker, and returns the pauses that faults ask for.
func modelWorkers(o *Options, workers []worker) (pauses []Pause, err error) {
	c := o.Config
	batches := c.Batches(len(workers))
	for i := range workers {
		w := &workers[i]
		w.index, w.pace, w.cost = i, metrics.NewPace(len(workers)), CostOf(&c.Simulate, i)
		w.batch = int64(batches[i])
		var paused []configs.FaultPause
		if w.slow, paused, err = c.Stragglers(i, len(workers), o.Rows, o.Traces); err != nil {
			return nil, err
		}
		for _, p := range paused {
			pauses = append(pauses, Pause{Worker: i, At: p.At, For: p.For})
		}
	}
	return pauses, nil
}

// model describes the models, one line each.
func (s *Simulation) model() []string {
	m := s.cfg.Simulate
	lines := []string{
		computeText(&s.o, &s.stages),
		networkText(&m),
		fmt.Sprintf("servers  one thing at a time; fold %s, commit %s; control messages cost latency only", rate(m.FoldRate), rate(m.CommitRate)),
	}
	if s.cfg.InRounds() {
		lines = append(lines, roundsText(s.cfg))
	}
	if s.HasTasks() {
		lines = append(lines, tasksText(s.policies.axes.Parts, s.cfg.Work.ThreadsMax > 0))
	}
	lines = append(append(lines, faultsText(&s.o, len(s.o.Pauses))), slowLines(s.cfg)...)
	if p := s.cfg.Payload; p.Lossy() {
		text := fmt.Sprintf("payload  pushes %s, replies %s; encoding and decoding cost nothing", p.PushText(), p.Pull)
		if p.Push == "threshold" && s.values == nil {
			text += "; pushes are as large as they may be"
		}
		lines = append(lines, text)
	}
	if s.values != nil {
		return append(lines, s.values.Text())
	}
	for i := range s.tallies {
		if s.tallies[i].unmeasured != nil {
			return append(lines, fmt.Sprintf("norms    each element of a pushed mean is %g, each parameter 1; to find that "+
				"out costs nothing", m.PushNorm))
		}
	}
	return lines
}

func faultsText(o *Options, pauses int) string {
	slowed := 0
	for i := range o.Config.Faults {
		if !o.Config.Faults[i].Paused() {
			slowed++
		}
	}
	return fmt.Sprintf("faults   %d slowed, %d lost%s, %d paused", slowed, len(o.Losses), rejoinText(len(o.Joins)), pauses)
}

func networkText(m *configs.Simulate) string {
	return fmt.Sprintf("network  %s per host each way, shared equally; latency %v; ranks per host %d, between them %s",
		rate(m.Network.Bandwidth), m.Network.Latency, m.RanksPerHost, rate(m.Network.Memory))
}

func computeText(o *Options, n *stages) string {
	m := &o.Config.Simulate
	compute := fmt.Sprintf("%v per iteration", m.Compute.Fixed)
	switch c := m.Compute; {
	case c.PerSample > 0 && c.Fixed > 0:
		compute = fmt.Sprintf("%v per iteration and %v per sample", c.Fixed, c.PerSample)
	case c.PerSample > 0:
		compute = fmt.Sprintf("%v per sample", c.PerSample)
	}
	if of := m.PerWorker; len(of) > 0 {
		compute += fmt.Sprintf(", times %g to %g by worker", slices.Min(of), slices.Max(of))
	}
	if of := m.FixedPerWorker; len(of) > 0 {
		compute += fmt.Sprintf(", the time per iteration times %g to %g", slices.Min(of), slices.Max(of))
	}
	return fmt.Sprintf("compute  %s; %s", compute, n.text(o.Config))
}

// slowLines names the faults that make workers slow.
func slowLines(c *configs.Config) (lines []string) {
	const linesMax = 8
	for i := range c.Faults {
		if !c.Faults[i].Paused() {
			lines = append(lines, "slow     "+configs.FaultText(&c.Faults[i]))
		}
	}
	if more := len(lines) - linesMax; more > 0 {
		lines = append(lines[:linesMax], fmt.Sprintf("slow     and %d more", more))
	}
	return lines
}

func rate(bytesPerS int64) string {
	if bytesPerS == 0 {
		return "without limit"
	}
	return fmt.Sprintf("%.4g GB/s", float64(bytesPerS)/1e9)
}

// stuck describes the nodes that are not done when no event is left: what each waits for.
func (s *Simulation) stuck() string {
	const linesMax = 12
	lines := []string{fmt.Sprintf("liveness: no event is left, but %d nodes are not done", s.undone)}
	for i := range s.workers {
		if w := &s.workers[i]; !w.done && !w.dead && len(lines) < linesMax {
			lines = append(lines, w.node.String()+w.tasks.text())
		}
	}
	for i := range s.servers {
		if len(lines) < linesMax {
			lines = append(lines, fmt.Sprintf("%.400s", s.servers[i].node))
		}
	}
	return strings.Join(lines, "\n  ")
}

// refuseCompute fails if there are no computing times for each worker.
func refuseCompute(o *Options) error {
	m := &o.Config.Simulate
	if err := o.Config.CheckTraces(o.Traces, m.Workers); err != nil {
		return err
	}
	for key, of := range map[string][]float64{"per_worker": m.PerWorker, "fixed_per_worker": m.FixedPerWorker} {
		if n := len(of); n > 0 && n != m.Workers {
			return fmt.Errorf("simulate.%s has %d values, but simulate.workers is %d; give one value per worker, or set "+
				"simulate.%s=[], which makes all workers alike", key, n, m.Workers, key)
		}
	}
	return nil
}
