package sim

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/configs"
	"fluentps/ps/build"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/metrics"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
	"fluentps/ps/timeline"
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

func newSimulation(o Options) (*simulation, error) {
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
	s := &simulation{o: o, cfg: c, plan: o.Plan, roles: roles, latency: int64(c.Simulate.Network.Latency),
		net:     newNetwork((len(hosts)-1)/c.Simulate.RanksPerHost+1, c.Simulate.Network.Bandwidth),
		workers: make([]worker, n), servers: make([]server, len(roles.Servers)), tallies: make([]tally, len(o.Plan.Shards)),
		undone: n + len(roles.Servers), ahead: map[[2]int32][]int32{}, trace: traceStart}
	s.q.delay = [2]int64{0, s.latency}
	s.passes = newPasses(c, o.Plan, c.Send.Overlap && !c.InRounds())
	if c.InRounds() {
		s.scheduler = core.NewScheduler(n)
	}
	limits := make([][]limit, len(o.Plan.Shards))
	if err := s.takeAxes(); err != nil {
		return nil, err
	}
	for m := range s.servers {
		if err := s.makeServer(int32(m), limits); err != nil {
			return nil, err
		}
	}
	s.check = newChecker(o.Plan, n, limits)
	if s.hasTasks() {
		s.check.tasks = newTaskCheck(s)
	}
	s.check.rounds, s.check.updates = c.InRounds(), c.Train.Stop.Updates
	if err := s.makeWorkers(); err != nil {
		return nil, err
	}
	if err := s.makeDealer(); err != nil {
		return nil, err
	}
	if o.Gradients != nil {
		s.real, err = newFloats(s)
	}
	if err == nil {
		err = s.makeSteps()
	}
	s.makeTimelines(len(hosts))
	return s, err
}

// makeTimelines makes the timelines of the ranks, if they are wanted.
func (s *simulation) makeTimelines(ranks int) {
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
	if o.Gradients == nil && stop.Epochs == 0 && stop.Samples == 0 && stop.Updates == 0 && stop.Time == 0 {
		return fmt.Errorf("train.stop has only a target, but without gradients there is no accuracy; set epochs, samples, updates or time, or simulate.gradients")
	}
	if g := o.Gradients; g != nil && stop.Target > 0 && g.Set.Test.Rows() == 0 {
		return fmt.Errorf("train.stop.target needs test data, but the data set has none; name data.test")
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

// build returns the builder of nodes and stores, which a real run uses, too.
func (s *simulation) build() *build.Run {
	return &build.Run{Config: s.cfg, Plan: s.plan, Roles: s.roles, Rows: s.o.Rows, Axes: s.axes}
}

func (s *simulation) makeServer(me int32, limits [][]limit) error {
	c, n := s.cfg, len(s.workers)
	b := s.build()
	schemes, err := b.Schemes(me, nil)
	if err != nil {
		return err
	}
	for id, ss := range schemes {
		phases, err := b.Phases(s.plan.Shards[id].Rule)
		if err != nil {
			return err
		}
		limits[id] = limitsOf(phases)
		if err := s.refuseScheme(s.plan.Shards[id].Rule, &ss); err != nil {
			return err
		}
		bytes := s.plan.Shards[id].Bytes()
		s.tallies[id] = tally{fold: nanoseconds(bytes, c.Simulate.FoldRate), commit: nanoseconds(bytes, c.Simulate.CommitRate), slots: make([]int32, n)}
		if s.copyOf(s.plan.Shards[id].Rule).Kind != scheme.Pulled {
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
	if s.o.Gradients != nil {
		every = c.Evaluate.Samples(s.o.Rows)
	}
	m.node = b.Server(me, build.Server{Schemes: schemes, SnapshotEvery: every, Decided: s.o.Decided})
	return nil
}

func (s *simulation) makeWorkers() error {
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
		w.node = s.build().Worker(i, 0, nil)
	}
	return nil
}

// modelWorkers sets the model of computing of each worker, and returns the pauses that faults ask for.
func modelWorkers(o *Options, workers []worker) (pauses []Pause, err error) {
	c := o.Config
	batches := c.Batches(len(workers))
	for i := range workers {
		w := &workers[i]
		w.index, w.pace, w.cost = i, metrics.NewPace(len(workers)), costOf(&c.Simulate, i)
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
func (s *simulation) model() []string {
	m := s.cfg.Simulate
	lines := []string{
		computeText(&s.o, &s.passes),
		networkText(&m),
		fmt.Sprintf("servers  one thing at a time; fold %s, commit %s; control messages cost latency only", rate(m.FoldRate), rate(m.CommitRate)),
	}
	if s.cfg.InRounds() {
		lines = append(lines, roundsText(s.cfg))
	}
	if s.hasTasks() {
		lines = append(lines, tasksText(s.axes.Parts, s.cfg.Work.ThreadsMax > 0))
	}
	lines = append(append(lines, faultsText(&s.o, len(s.o.Pauses))), slowLines(s.cfg)...)
	if p := s.cfg.Payload; p.Lossy() {
		text := fmt.Sprintf("payload  pushes %s, replies %s; encoding and decoding cost nothing", p.PushText(), p.Pull)
		if p.Push == "threshold" && s.real == nil {
			text += "; pushes are as large as they may be"
		}
		lines = append(lines, text)
	}
	if f := s.real; f != nil {
		return append(lines, fmt.Sprintf("real     gradients, of the parameters at the start of each iteration; evaluation takes no time; memory at most %s and %d snapshots of %s",
			metrics.Size(f.most), f.view.room, metrics.Size(int64(s.plan.Arena)*shard.ElemBytes)))
	}
	for i := range s.tallies {
		if s.tallies[i].unmeasured != nil {
			return append(lines, fmt.Sprintf("norms    each element of a pushed mean is %g, each parameter 1; to find that out costs nothing", m.PushNorm))
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

func computeText(o *Options, n *passes) string {
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
			lines = append(lines, "slow     "+c.Faults[i].YAML())
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
func (s *simulation) stuck() string {
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
