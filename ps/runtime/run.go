package runtime

import (
	"errors"
	"fmt"
	"math"
	"time"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/workload"
)

// Run trains on this rank. Every rank of the world calls it, with its own Transport; it returns when all are
// done. The caller closes the transport and leaves with Result.Code, the same on every rank. An *ExitError is
// agreed too; after any other error the world is to be aborted.
func Run(o Options) (res Result, err error) {
	if o.Load == nil {
		o.Load = workload.Load
	}
	if o.Problem == nil && o.Require && o.Config.Train.Stop.Target == 0 {
		o.Problem = errors.New("--require needs a target to reach: set train.stop.target")
	}
	r := &rank{ended: make(chan struct{}), o: o, t: o.Transport, cfg: o.Config, me: o.Transport.Rank()}
	r.log = metrics.NewLogger(metrics.LogSpec{Rank: r.me, Tag: fmt.Sprintf("rank %d", r.me), Host: o.Host, Stderr: o.Warn})
	defer r.guard(&res, &err)
	r.net = link.New(r.t, link.Options{Apart: r.cfg != nil && r.cfg.InRounds()})
	r.live = r.openLiveness()
	defer r.live.Close()
	if err := r.net.Open(); err != nil {
		return Result{Code: CodeFailed}, err
	}
	res, err = r.run()
	var agreed *ExitError
	var aborted *comm.AbortError
	if err != nil && !errors.As(err, &agreed) {
		if !errors.As(err, &aborted) { // else the rank that aborted has said why
			r.log.Error("run", "error", err)
		}
		r.release(false)
		return Result{Code: CodeFailed}, err
	}
	if agreed != nil {
		res.Code = agreed.Code
	}
	r.live.Conclude(res.Code)
	if closing := r.closeLink(); closing != nil && err == nil {
		err = closing
	}
	r.release(true)
	if freeing := r.unshare(); freeing != nil && err == nil {
		err = freeing
	}
	if agreed != nil {
		return Result{Code: agreed.Code}, agreed
	}
	return res, err
}

func (r *rank) run() (Result, error) {
	if err := r.setup(); err != nil {
		return Result{}, err
	}
	if err := r.unfinish(); err != nil {
		return Result{}, err
	}
	r.bind()
	r.unitLog()
	if err := r.t.Barrier(); err != nil {
		return Result{}, err
	}
	r.setupEnd = time.Now()
	r.trainStart, r.cpuStart = r.t.Now(), processCPU()
	stop := make(chan struct{})
	defer close(stop)
	go r.watch(stop)
	if err := r.train(); err != nil {
		return Result{}, err
	}
	res, err := r.finish()
	return res, err
}

// bind keeps the thread that drives on one core, if the configuration wants that and it helps.
func (r *rank) bind() {
	if r.o.Bind == nil {
		return
	}
	if core := r.o.Bind(r.cfg.Cluster.Bind == configs.BindAuto); core >= 0 {
		r.log.Info("keeps to one core, for this host has more ranks than cores", "core", core)
	}
}

// release gives back what setup took. Memory that may still be in flight, or is being written to disk, stays with the
// transport; after an error a process ends, or waits for its writers, before it closes one whose windows it shares.
func (r *rank) release(idle bool) {
	if idle && r.server != nil {
		r.server.close()
	}
	if idle && r.worker != nil {
		r.worker.close()
	} else if idle && r.unit.Device != nil {
		r.net.Fail(r.unit.Close())
	}
	if idle && r.reduce != nil {
		r.reduce.forget(math.MaxInt64)
	}
	if idle && r.lead != nil && r.lead.online != nil {
		r.lead.online.e.close()
	}
	if r.replicas != nil {
		r.net.Fail(r.replicas.release(false))
	}
	if r.lead != nil && r.lead.sinks != nil {
		r.net.Fail(r.lead.sinks.Close())
	}
	if r.file != nil {
		r.net.Fail(r.file.Close())
	}
	if r.lock != nil { // last: whoever waits for it may write from now on
		r.net.Fail(r.lock.Release())
	}
	if r.folder != nil && idle { // else somebody may still be writing
		r.net.Fail(r.folder.Close())
	}
}

// hello is what every rank says first.
type hello struct {
	Host    string
	Node    int // the first rank that this one shares memory with
	PID     int
	Hash    string
	Build   string
	Problem string
}

// setup ends with every rank ready to train, or with the same error on all of them.
func (r *rank) setup() error {
	if err := r.greet(); err != nil {
		return err
	}
	roles, err := layout.Roles(r.cfg, r.hosts)
	if err != nil {
		return usage("%v", err) // the same on every rank: they know the same hosts
	}
	r.roles, r.computes = roles, roles.Computing()
	r.known()
	set, err := r.o.Load(layout.DataSpec(r.cfg))
	if err := r.net.Agree(err, CodeUsage); err != nil {
		return err
	}
	r.set = set
	if err := r.sameData(); err != nil {
		return err
	}
	if r.me == 0 { // the others have the same files
		for _, note := range set.Notes {
			r.log.Warn(note)
		}
	}
	if err := r.net.Agree(r.makePlan(), CodeUsage); err != nil {
		return err
	}
	if r.me == 0 && r.o.Known != nil {
		r.o.Known(layout.FactsOf(r.plan, r.roles, r.set.Train.Rows()))
	}
	if err := r.openUnit(); err != nil {
		return err
	}
	if err := r.openFolder(); err != nil {
		return err
	}
	if err := r.openWindow(); err != nil {
		return err
	}
	if err := r.share(); err != nil {
		return err
	}
	if r.o.Resume != "" {
		if err := r.restore(); err != nil {
			return err
		}
	}
	if err := r.net.Agree(r.makeSides(), CodeFailed); err != nil {
		return err
	}
	if err := r.openReplicas(); err != nil {
		return err
	}
	if r.lead != nil && r.cfg.Checkpoint.Periodic() && r.dir != "" && r.reduce == nil {
		at, version := time.Duration(0), int64(0)
		if r.from != nil {
			at, version = r.from.state.Trained, r.from.state.Version
		}
		r.lead.snapshots = newSnapshots(r.lead, at, version)
	}
	return nil
}

// greet tells everybody where everybody is, and refuses ranks that do not belong together.
func (r *rank) greet() error {
	mine := hello{Host: r.o.Host, Node: int(r.t.NodePeers()[0]), PID: r.o.PID, Hash: r.o.Hash, Build: r.o.Build}
	if r.o.Problem != nil {
		mine.Problem = r.o.Problem.Error()
	}
	all, err := link.Gather(r.net, mine)
	if err != nil {
		return err
	}
	if err := link.Spread(r.net, &all); err != nil {
		return err
	}
	problems := make([]string, len(all))
	r.nodeOf = make([]int, len(all))
	failed := false
	for i, h := range all {
		r.nodeOf[i] = h.Node
		r.hosts = append(r.hosts, h.Host)
		r.pids = append(r.pids, h.PID)
		problems[i] = h.Problem
		failed = failed || h.Problem != ""
	}
	r.net.Know(r.hosts)
	if failed {
		return usage("%s", r.net.Verdict(problems))
	}
	for i, h := range all {
		if h.Hash != all[0].Hash {
			return usage("%s reads another config than rank 0: sha256 %.12s against %.12s of the resolved values; do all hosts see the same file, and the same FLUENTPS_* variables?", r.net.Place(i), h.Hash, all[0].Hash)
		}
		if h.Build != all[0].Build {
			return usage("%s runs another build of fluentps than rank 0: %s against %s; install the same binary on all hosts", r.net.Place(i), h.Build, all[0].Build)
		}
	}
	if layout.Teams(r.cfg) {
		return r.sameNodes(r.nodeOf)
	}
	return nil
}

// makePlan cuts the shards.
func (r *rank) makePlan() error {
	q, err := layout.Prepare(r.cfg, r.roles, r.set)
	if err != nil {
		return err
	}
	r.model, r.param, r.plan, r.snapsMax = q.Model, q.Params, q.Plan, q.Snapshots
	r.workerOf = make([]int32, r.t.Size())
	for rank := range r.workerOf {
		r.workerOf[rank] = -1
	}
	for w, rank := range r.roles.Workers {
		r.workerOf[rank] = int32(w)
	}
	return nil
}

// makeSides builds the nodes of this rank with their memory.
func (r *rank) makeSides() error {
	var err error
	if r.me == 0 {
		r.lead = newLead(r)
		if err := r.lead.open(); err != nil {
			return err
		}
	}
	if r.roles.Server(r.me) >= 0 {
		if r.server, err = newServerSide(r); err != nil {
			return err
		}
		r.server.openAhead()
	}
	if r.roles.Leader(r.me) >= 0 {
		if r.worker, err = newWorkerSide(r); err != nil {
			return err
		}
	}
	if r.from != nil {
		if err := r.resumeSides(); err != nil {
			return err
		}
	}
	if layout.Reduces(r.cfg) {
		if r.reduce, err = newAllReduce(r); err != nil {
			return err
		}
	}
	if r.cfg.InRounds() && r.me == 0 {
		r.scheduler = core.NewScheduler(len(r.roles.Workers))
	}
	r.handle()
	return nil
}

// handle registers who hears what on this rank. No message of training comes before all ranks have.
func (r *rank) handle() {
	if r.lead != nil {
		r.lead.handle()
	}
	if r.worker != nil {
		r.worker.handle()
	}
	switch {
	case r.reduce != nil:
		r.handleSnapshots(r.reduce)
	case r.server != nil:
		r.server.handle()
		r.handleSnapshots(r.server)
	}
}

// closeLink takes all receives back.
func (r *rank) closeLink() error {
	cancel, idle := func() {}, func() bool { return true }
	if s := r.server; s != nil {
		cancel, idle = s.closeAhead, func() bool { return s.posted == 0 }
	}
	return r.net.Close(cancel, idle)
}

// now is the time of training, with that of the parts of the run before this one; within a batch it is not always looked at again.
func (r *rank) now() time.Duration { return r.net.Clock() - r.trainStart + r.before }

// train drives the nodes of this rank until both are done.
func (r *rank) train() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(r.ended)
	if r.reduce != nil {
		return r.reduce.train()
	}
	r.beginWorker(r.trainStart)
	for again := true; again; {
		err := r.untilDone()
		if err == nil {
			again, err = r.goesOn()
		}
		if err != nil {
			return err
		}
	}
	r.trainEnd, r.cpuEnd = r.t.Now(), processCPU()
	wall := r.trainEnd - r.trainStart
	if r.server != nil {
		r.server.finishSpans(wall)
	}
	if r.worker != nil {
		r.worker.spans.Wall = wall
	}
	return nil
}

// beginWorker lets this rank's worker begin, where it has one; it waits since that time.
func (r *rank) beginWorker(since time.Duration) {
	if w := r.worker; w != nil {
		w.wait(since)
		if w.node != nil { // a member waits for its leader
			w.step(core.Input{Kind: core.Begin})
		}
	}
}

// untilDone drives the nodes of this rank until all they had to do is done.
func (r *rank) untilDone() error {
	w := r.worker
	over := func() bool {
		return (r.server == nil || r.server.done) && (w == nil || w.done) && r.net.Idle()
	}
	due := func() bool { return over() || w != nil && w.site.ready() }
	for {
		if err := r.net.Drive(due); err != nil || over() {
			return err
		}
		w.site.run()
	}
}
