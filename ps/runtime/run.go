package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/core"
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
	r.live = r.openLiveness()
	defer r.live.close()
	if err := r.openRing(); err != nil {
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
	r.live.conclude(res.Code)
	if closing := r.closeRing(); closing != nil && err == nil {
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
		r.fail(r.unit.Close())
	}
	if idle && r.reduce != nil {
		r.reduce.forget(math.MaxInt64)
	}
	if idle && r.lead != nil && r.lead.online != nil {
		r.lead.online.e.close()
	}
	if r.replicas != nil {
		r.fail(r.replicas.release(false))
	}
	if r.lead != nil && r.lead.sinks != nil {
		r.fail(r.lead.sinks.Close())
	}
	if r.file != nil {
		r.fail(r.file.Close())
	}
	if r.lock != nil { // last: whoever waits for it may write from now on
		r.fail(r.lock.Release())
	}
	if r.folder != nil && idle { // else somebody may still be writing
		r.fail(r.folder.Close())
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
	roles, err := Roles(r.cfg, r.hosts)
	if err != nil {
		return usage("%v", err) // the same on every rank: they know the same hosts
	}
	r.roles, r.computes = roles, roles.Computing()
	r.live.know()
	set, err := r.o.Load(DataSpec(r.cfg))
	if err := r.agree(err, CodeUsage); err != nil {
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
	if err := r.agree(r.makePlan(), CodeUsage); err != nil {
		return err
	}
	if r.me == 0 && r.o.Known != nil {
		r.o.Known(FactsOf(r.plan, r.roles, r.set.Train.Rows()))
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
	if err := r.agree(r.makeSides(), CodeFailed); err != nil {
		return err
	}
	return r.openReplicas()
}

// greet tells everybody where everybody is, and refuses ranks that do not belong together.
func (r *rank) greet() error {
	mine := hello{Host: r.o.Host, Node: int(r.t.NodePeers()[0]), PID: r.o.PID, Hash: r.o.Hash, Build: r.o.Build}
	if r.o.Problem != nil {
		mine.Problem = r.o.Problem.Error()
	}
	all, err := gather(r, mine)
	if err != nil {
		return err
	}
	if err := spread(r, &all); err != nil {
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
	if failed {
		return usage("%s", r.verdict(problems))
	}
	for i, h := range all {
		if h.Hash != all[0].Hash {
			return usage("%s reads another config than rank 0: sha256 %.12s against %.12s of the resolved values; do all hosts see the same file, and the same FLUENTPS_* variables?", r.place(i), h.Hash, all[0].Hash)
		}
		if h.Build != all[0].Build {
			return usage("%s runs another build of fluentps than rank 0: %s against %s; install the same binary on all hosts", r.place(i), h.Build, all[0].Build)
		}
	}
	if teams(r.cfg) {
		return r.sameNodes(r.nodeOf)
	}
	return nil
}

// Check finds what only the data and the ranks can tell: it is nil if this many workers, or ranks that compute for them,
// can train on the set.
func Check(c *configs.Config, set *workload.Set, workers int) error {
	if n := c.Train.BatchGlobal; n > 0 && n < workers {
		return fmt.Errorf("train.batch_global is %d, but there are %d workers and each needs at least 1 sample", n, workers)
	}
	for _, f := range c.Faults {
		if f.Worker >= workers {
			return fmt.Errorf("faults: worker %d, but the workers are 0 to %d", f.Worker, workers-1)
		}
	}
	if rows := set.Train.Rows(); rows < workers {
		return fmt.Errorf("the training set has %d rows for %d workers; every worker needs at least 1", rows, workers)
	}
	if err := c.Data.Augment.Check(set.Image); err != nil {
		return err
	}
	for i := range c.Sync {
		if _, err := c.PhasesOf(i, workers, set.Train.Rows()); err != nil {
			return err
		}
	}
	if c.Train.Stop.Target > 0 && set.Test.Rows() == 0 {
		return errors.New("train.stop.target needs test data, and the data set has none; name data.test")
	}
	return nil
}

// makePlan cuts the shards.
func (r *rank) makePlan() error {
	q, err := Prepare(r.cfg, r.roles, r.set)
	if err != nil {
		return err
	}
	r.model, r.param, r.plan, r.snapsMax = q.Model, q.Params, q.Plan, q.Snapshots
	r.push, r.pull, r.plain = r.cfg.PushCodec(), r.cfg.PullCodec(), configs.PlainCodec()
	if r.keyed = keyedCodecs(r.cfg, r.plan); r.keyed != nil {
		r.push, r.pull = r.keyed[0], r.keyed[0] // any: codecOf takes each piece's own
	}
	longest := cmp.Or(r.o.inlineMax, inlineMax)
	r.inline, r.inlineReply = inlined(r.plan, r.copyOf, pushBytes, longest), inlined(r.plan, r.copyOf, replyBytes, longest)
	r.workerOf = make([]int32, r.t.Size())
	for rank := range r.workerOf {
		r.workerOf[rank] = -1
	}
	for w, rank := range r.roles.Workers {
		r.workerOf[rank] = int32(w)
	}
	return nil
}

func modelOf(c *configs.Config, set *workload.Set) (workload.Model, error) {
	return workload.NewModel(c.ModelSpec(), set.Samples(), noDevice{}, 1)
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
	if reduces(r.cfg) {
		r.reduce, err = newAllReduce(r)
	}
	if r.cfg.InRounds() && r.me == 0 {
		r.scheduler = core.NewScheduler(len(r.roles.Workers))
	}
	return err
}

// now is the time of training, with that of the parts of the run before this one; within a batch it is not always looked at again.
func (r *rank) now() time.Duration { return r.clock() - r.trainStart + r.before }

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
		return (r.server == nil || r.server.done) && (w == nil || w.done) && r.open == 0
	}
	due := func() bool { return over() || w != nil && w.site.ready() }
	for {
		if err := r.drive(due); err != nil || over() {
			return err
		}
		w.site.run()
	}
}
