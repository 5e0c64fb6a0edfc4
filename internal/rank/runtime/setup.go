package runtime

import (
	"fmt"
	"os"
	"time"

	"fluentps/internal/core"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/allreduce"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/replica"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/pack"
)

// hello is the first message of every rank.
type hello struct {
	Host    string
	Node    int // the first rank that this one shares memory with
	PID     int
	Hash    string
	Build   string
	Problem string
}

// assignRoles gives each rank its roles, by the hosts of all.
func (r *rank) assignRoles() error {
	roles, err := layout.Roles(r.station.Config, r.station.Hosts)
	if err != nil {
		return err
	}
	r.station.Roles = roles
	r.nameRanks()
	r.station.Link, err = layout.LinkOf(r.station.Config, r.station.Hosts)
	return err
}

// meet returns when every rank knows all hosts, its roles, and the link between the hosts.
func (r *rank) meet() error {
	if err := r.greet(); err != nil {
		return err
	}
	if err := r.assignRoles(); err != nil {
		return station.Usage("%v", err) // the same error on every rank, since all know the same hosts
	}
	if r.o.Mode != ModeMPI {
		return nil // there is no network between ranks
	}
	return r.station.MeasureLink()
}

// setup returns with every rank ready to train, or with the same error on all of them.
func (r *rank) setup() error {
	before := r.memoryFree() // no rank reads data before all have met
	if err := r.meet(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	ledger, err := r.station.Cut()
	if err := r.station.Net.Agree(err, CodeUsage); err != nil {
		return err
	}
	r.checkHost(ledger, before)
	if r.station.Me == 0 && r.o.Lead.Known != nil {
		r.o.Lead.Known(layout.FactsOf(r.station.Plan, r.station.Roles, r.station.Set.Train.Rows()))
	}
	defer r.closeInitial()
	if r.o.Resume == "" { // else it may go on from a checkpoint
		if err := r.openInitial(); err != nil {
			return err
		}
	}
	if err := r.openUnit(); err != nil {
		return err
	}
	if err := r.openFolder(); err != nil {
		return err
	}
	if err := r.station.OpenTeam(); err != nil {
		return err
	}
	if err := r.station.Share(r.o.thresholds); err != nil {
		return err
	}
	if err := r.restore(); err != nil {
		return err
	}
	if err := r.openChild(); err != nil {
		return err
	}
	if err := r.beginFolder(); err != nil {
		return err
	}
	r.tellInitial()
	if err := r.openTimeline(); err != nil {
		return err
	}
	if err := r.station.Net.Agree(r.makeSides(), CodeFailed); err != nil {
		return err
	}
	if r.run.Reduce != nil {
		if err := r.run.Reduce.Choose(); err != nil {
			return err
		}
	}
	o := replica.Options{Memory: r.o.Memory, Host: r.o.Host, Folder: r.run.Folder, Adopted: r.run.Search.Adopted,
		Earlier: r.run.Search.Earlier}
	replicas, err := replica.Open(r.station, o)
	if err != nil {
		return err
	}
	r.run.Replicas = replicas
	r.run.BeginSnapshots()
	return nil
}

// restore finds the checkpoint from which the run resumes, if it does.
func (r *rank) restore() (err error) {
	if r.o.Resume == "" {
		return nil
	}
	if r.run.From, err = r.run.Search.Restore(); err == nil && r.run.From == nil {
		err = r.openInitial()
	}
	return err
}

// load reads the data set, and the times that faults replay.
func (r *rank) load() error {
	spec, err := r.staged(layout.DataSpec(r.station.Config))
	if err := r.station.Net.Agree(err, CodeUsage); err != nil {
		return err
	}
	set, err := r.o.Load(spec)
	if err := r.station.Net.Agree(err, CodeUsage); err != nil {
		return err
	}
	r.station.Set = set
	if err := r.station.SameData(); err != nil {
		return err
	}
	if r.station.Me == 0 { // the others have the same files
		for _, note := range set.Notes {
			r.station.Log.Warn(note)
		}
	}
	r.traces, err = r.station.Config.ReadTraces(r.station.Roles.Computes())
	if err == nil && r.station.Me == 0 {
		r.replay, err = r.station.Config.ReadReplay(r.station.Roles.Computes())
	}
	return r.station.Net.Agree(err, CodeUsage)
}

// stageShown is how often the progress of a copy is shown.
const stageShown = 2 * time.Second

// staged names the copy of a pack on the disk of the host, which the first rank of the host makes.
func (r *rank) staged(s workload.DataSpec) (workload.DataSpec, error) {
	dir := r.station.Config.Data.Stage
	if dir == "" {
		return s, nil
	}
	var err error
	if dir == dataset.StageAuto {
		if dir, err = pack.Scratch(os.Getenv); err != nil {
			return s, err
		}
	}
	shown := time.Now()
	s.Path, err = pack.Stage(s.Path, dir, func(done, all int64) {
		if time.Since(shown) >= stageShown {
			shown = time.Now()
			fmt.Fprintf(r.o.Warn, "fluentps: host %s: %d %% of %s copied to %s\n", foreign.Text(r.o.Host), 100*done/all, metrics.Size(all), dir)
		}
		if done == all {
			r.station.Log.Info("copied the pack to the disk of the host", "host", r.o.Host, "folder", dir, "bytes", all)
		}
	})
	return s, err
}

// greet exchanges the hellos of all ranks, and refuses ranks that do not belong together.
func (r *rank) greet() error {
	own := hello{Host: r.o.Host, Node: int(r.station.Transport.NodePeers()[0]), PID: r.o.PID, Hash: r.o.Hash, Build: r.o.Build}
	if r.o.Problem != nil {
		own.Problem = r.o.Problem.Error()
	}
	all, err := link.Gather(r.station.Net, own)
	if err != nil {
		return err
	}
	if err := link.Spread(r.station.Net, &all); err != nil {
		return err
	}
	problems := make([]string, len(all))
	r.station.NodeOf = make([]int, len(all))
	failed := false
	for i, h := range all {
		r.station.NodeOf[i] = h.Node
		r.station.Hosts = append(r.station.Hosts, h.Host)
		r.run.PIDs = append(r.run.PIDs, h.PID)
		problems[i] = h.Problem
		failed = failed || h.Problem != ""
	}
	r.station.Net.Know(r.station.Hosts)
	if failed {
		return station.Usage("%s", r.station.Net.Verdict(problems))
	}
	for i, h := range all {
		if h.Hash != all[0].Hash {
			return station.Usage("%s reads another config than rank 0: sha256 %.12s against %.12s of the resolved values; "+
				"do all hosts see the same file, and the same FLUENTPS_* variables?", r.station.Net.Place(i), h.Hash, all[0].Hash)
		}
		if h.Build != all[0].Build {
			return station.Usage("%s runs another build of fluentps than rank 0: %s against %s; install the same binary on "+
				"all hosts", r.station.Net.Place(i), h.Build, all[0].Build)
		}
	}
	if layout.Teams(r.station.Config) {
		return r.station.SameNodes()
	}
	return nil
}

// makeSides builds the nodes of this rank with their memory.
func (r *rank) makeSides() error {
	var err error
	if r.station.Me == 0 {
		r.run.Lead = coordinate.NewLead(r.run)
		if err := r.run.Lead.MakeDealer(r.replay); err != nil {
			return err
		}
		if err := r.run.Lead.Open(); err != nil {
			return err
		}
	}
	if err = r.run.OpenOnline(); err != nil {
		return err
	}
	if r.station.Roles.Server(r.station.Me) >= 0 {
		if r.run.Server, err = serve.New(r.station, r.serveOptions()); err != nil {
			return err
		}
		r.run.Server.OpenAhead()
	}
	if r.station.Roles.Leader(r.station.Me) >= 0 {
		o := train.Options{Start: r.run.From.Start(), Device: r.unit.Device, Placer: r.placer,
			Background: r.run.Server != nil, Records: r.run.Folder != nil || r.o.Iterations, Traces: r.traces, Write: r.run.WriteInBackground}
		if t := r.run.Timeline; t != nil {
			o.Timeline = timeline.NewWorker(t.Rank, int32(r.station.Roles.Leader(r.station.Me)), r.station.Plan)
		}
		if r.run.Worker, err = train.New(r.station, o); err != nil {
			return err
		}
	}
	if r.run.From != nil {
		if err := r.run.ResumeSides(); err != nil {
			return err
		}
	}
	if layout.Reduces(r.station.Config) {
		var observer allreduce.Observer
		if r.run.Lead != nil {
			observer = r.run.Lead
		}
		if r.run.Reduce, err = allreduce.New(r.station, r.run.Worker, observer, r.digests); err != nil {
			return err
		}
	}
	if r.station.Config.InRounds() && r.station.Me == 0 {
		r.run.Scheduler = core.NewScheduler(len(r.station.Roles.Workers))
	}
	r.handle()
	return nil
}

func (r *rank) serveOptions() serve.Options {
	o := serve.Options{Start: r.run.From.Start(), Decided: r.o.Decided, Write: r.run.WriteInBackground, Digests: r.digests}
	if r.run.Lead != nil {
		o.Observer = r.run.Lead
	}
	if t := r.run.Timeline; t != nil {
		o.Timeline = timeline.NewServer(t.Rank)
	}
	return o
}

// handle registers the messages of this rank's sides. No message of training arrives before all ranks have done so.
func (r *rank) handle() {
	if r.run.Lead != nil {
		r.run.Lead.Handle()
	}
	if r.run.Worker != nil {
		r.run.Worker.Handle()
	}
	r.run.HandleEvaluations()
	switch {
	case r.run.Reduce != nil:
		r.run.HandleSnapshots(r.run.Reduce)
	case r.run.Server != nil:
		r.run.Server.Handle()
		r.run.HandleSnapshots(r.run.Server)
	}
}
