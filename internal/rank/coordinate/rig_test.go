package coordinate_test

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/disk/lock"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/allreduce"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/replica"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// part is a part of a run: ranks that have met train, and end the run. Nobody watches them: a test rings where a clock, a signal or a
// heartbeat would.
type part struct {
	config *configs.Config
	ranks  int
	hosts  string              // of each rank, one letter; "": one host
	dir    string              // the run folder; "": none
	folder *metrics.FolderSpec // in place of dir; may be nil
	resume string              // a folder, a checkpoint, resume.Auto, or "" for a new run
	allow  []string            // keys that may differ from the checkpoint's

	lead       func(*coordinate.LeadOptions) // changes them; may be nil
	load       func(rank int, spec dataset.Spec) (*dataset.Set, error)
	device     func(rank int) kernels.Device // nil: the processor
	begun      func(rank int)                // called when training begins; may be nil
	iterations bool
	warn       io.Writer

	transports []comm.Transport
	mu         sync.Mutex
	of         []ranked // by rank, once a rank has set up
	results    []coordinate.Result
}

// ranked is a rank of a part.
type ranked struct {
	*coordinate.Run
	st *station.Station
}

// run trains, and returns what each rank ends with.
func (p *part) run(t testing.TB) ([]coordinate.Result, []error) {
	t.Helper()
	p.prepare()
	w := stationtest.World{Config: p.config, Hosts: p.hosts, Transports: p.transports, Warn: p.warn, Load: p.load}
	w.Closing = func(st *station.Station) stationtest.Closing {
		r := p.of[st.Me]
		c := stationtest.Closing{Cancel: func() {}, Idle: func() bool { return true }}
		if r.Server != nil {
			c.Cancel, c.Idle = r.Server.CloseAhead, r.Server.Idle
		}
		c.Release = func() {
			if r.Release(true, nil, nil); st.Net.Err() != nil {
				t.Errorf("rank %d closes with %v", st.Me, st.Net.Err())
			}
		}
		return c
	}
	errs := w.Each(t, func(st *station.Station) error {
		r := coordinate.New(st, p.options(st))
		p.mu.Lock()
		p.of[st.Me] = ranked{r, st}
		p.mu.Unlock()
		res, err := p.train(st, r)
		if p.results[st.Me] = res; err != nil {
			r.Release(false, nil, nil)
		}
		var agreed *station.ExitError
		if errors.As(err, &agreed) {
			p.results[st.Me].Code = agreed.Code
		}
		return err
	})
	return p.results, errs
}

// prepare makes the ranks, so that a goroutine may ring.
func (p *part) prepare() {
	if p.transports != nil {
		return
	}
	p.hosts = cmp.Or(p.hosts, stationtest.OneHost(p.ranks))
	p.transports = stationtest.Transports(p.hosts)
	p.of, p.results = make([]ranked, len(p.hosts)), make([]coordinate.Result, len(p.hosts))
}

func (p *part) options(st *station.Station) coordinate.Options {
	o := coordinate.Options{Mode: "local", Build: "test", Hash: "h", Iterations: p.iterations,
		Lead:   coordinate.LeadOptions{Start: time.Now(), Out: io.Discard},
		Device: func() (kernels.Device, error) { return p.open(st.Me), nil },
		Resume: resume.Options{Resume: p.resume, AllowChanged: p.allow, Folder: p.folder}}
	if p.folder == nil && p.dir+p.resume != "" {
		o.Resume.Folder = &metrics.FolderSpec{Out: p.dir}
	}
	o.Lead.Folder = o.Resume.Folder
	if p.lead != nil && st.Me == 0 {
		p.lead(&o.Lead)
	}
	return o
}

// open is a device of a rank.
func (p *part) open(rank int) kernels.Device {
	if p.device == nil {
		return cpu.New(1)
	}
	return p.device(rank)
}

// train is a rank from its folder to its end.
func (p *part) train(st *station.Station, r *coordinate.Run) (res coordinate.Result, err error) {
	if err := p.setup(st, r); err != nil {
		return res, err
	}
	began := st.Transport.Now()
	if err := link.Spread(st.Net, &began); err != nil {
		return res, err
	}
	st.Began = began
	if err := st.Transport.Barrier(); err != nil {
		return res, err
	}
	r.SetupEnd, r.CPU.Start = time.Now(), coordinate.ProcessCPU()
	if p.begun != nil {
		p.begun(st.Me)
	}
	if err := drive(st, r); err != nil {
		return res, err
	}
	r.TrainEnd, r.CPU.End = st.Transport.Now(), coordinate.ProcessCPU()
	if r.Server != nil {
		r.Server.FinishSpans(r.TrainEnd - st.Began)
	}
	if r.Worker != nil {
		r.Worker.End(r.TrainEnd - st.Began)
	}
	close(st.Ended)
	return r.Finish()
}

// setup makes the folder and the sides of a rank.
func (p *part) setup(st *station.Station, r *coordinate.Run) (err error) {
	for rank := range st.Hosts {
		r.PIDs = append(r.PIDs, 100+rank)
	}
	device := p.open(st.Me)
	own := coordinate.UnitReport{}
	own.Describe(device)
	computes := st.Roles.Leader(st.Me) >= 0
	if !computes {
		err = device.Close()
	} else {
		own.Name = device.Name()
	}
	if r.Units, err = gathered(st, own, err); err != nil {
		return err
	}
	if err := p.openFolder(st, r); err != nil {
		return err
	}
	if p.resume != "" {
		if r.From, err = r.Search.Restore(); err != nil {
			return err
		}
	}
	if st.Me == 0 && r.Folder != nil {
		err = r.WriteStart(r.Folder)
	}
	if err := st.Net.Agree(err, station.CodeUsage); err != nil {
		return err
	}
	if err := st.Net.Agree(p.makeSides(st, r, device), station.CodeFailed); err != nil {
		return err
	}
	if r.Reduce != nil {
		if err := r.Reduce.Choose(); err != nil {
			return err
		}
	}
	if r.Replicas, err = replica.Open(st, replica.Options{Host: st.Hosts[st.Me], Folder: r.Folder, Adopted: r.Search.Adopted,
		Earlier: r.Search.Earlier}); err != nil {
		return err
	}
	r.BeginSnapshots()
	return r.RemoveSummary()
}

func gathered(st *station.Station, own coordinate.UnitReport, err error) ([]coordinate.UnitReport, error) {
	if err != nil {
		return nil, err
	}
	return link.Gather(st.Net, own)
}

// openFolder has rank 0 make or find the run folder, and lock it. The other ranks follow.
func (p *part) openFolder(st *station.Station, r *coordinate.Run) (err error) {
	lost := func(err error) { st.Transport.Post(func() { st.Net.Fail(err) }) }
	if st.Me == 0 {
		r.Token = lock.NewSeries()
		if p.folder != nil || p.dir+p.resume != "" {
			if r.Folder, err = r.Search.TakeFolder(); err == nil {
				me := lock.Owner{Host: st.Hosts[0], Since: time.Now(), Start: r.Token}
				r.Lock, err = lock.Take(r.Folder.Folder, me, func(string) {}, lost)
			}
		}
	}
	if err := st.Net.Agree(err, station.CodeUsage); err != nil {
		return err
	}
	at := struct{ Dir, Token string }{r.Dir(), r.Token}
	if err := link.Spread(st.Net, &at); err != nil || at.Dir == "" {
		return err
	}
	r.Search.Dir, r.Token = at.Dir, at.Token
	if r.Folder == nil {
		r.Folder = metrics.At(at.Dir)
	}
	r.Follower = lock.Follow(r.Folder.Folder, r.Token, time.Second, lost)
	may := r.Follower.Check
	if r.Lock != nil {
		may = r.Lock.Check
	}
	r.Folder.Folder = r.Folder.Folder.Guarded(may)
	return nil
}

// makeSides makes the sides of a rank, where they are at the checkpoint, and has them hear of messages.
func (p *part) makeSides(st *station.Station, r *coordinate.Run, device kernels.Device) (err error) {
	var observer allreduce.Observer
	serving := serve.Options{Start: r.From.Start(), Write: r.WriteInBackground}
	if st.Me == 0 {
		r.Lead = coordinate.NewLead(r)
		if err := errors.Join(r.Lead.MakeDealer(nil), r.Lead.Open(), r.OpenOnline()); err != nil {
			return err
		}
		observer, serving.Observer = r.Lead, r.Lead
	}
	if st.Roles.Server(st.Me) >= 0 {
		if r.Server, err = serve.New(st, serving); err != nil {
			return err
		}
		r.Server.OpenAhead()
	}
	if st.Roles.Leader(st.Me) >= 0 {
		o := train.Options{Start: r.From.Start(), Device: device, Background: r.Server != nil, Records: r.Folder != nil || p.iterations,
			Write: r.WriteInBackground}
		if o.Traces, err = st.Config.ReadTraces(st.Roles.Computes()); err != nil {
			return err
		}
		if r.Worker, err = train.New(st, o); err != nil {
			return err
		}
	}
	if r.From != nil {
		if err := r.ResumeSides(); err != nil {
			return err
		}
	}
	if layout.Reduces(st.Config) {
		if r.Reduce, err = allreduce.New(st, r.Worker, observer, nil); err != nil {
			return err
		}
	}
	if st.Config.InRounds() && st.Me == 0 {
		r.Scheduler = core.NewScheduler(len(st.Roles.Workers))
	}
	if r.Lead != nil {
		r.Lead.Handle()
	}
	if r.Worker != nil {
		r.Worker.Handle()
	}
	switch {
	case r.Reduce != nil:
		r.HandleSnapshots(r.Reduce)
	case r.Server != nil:
		r.Server.Handle()
		r.HandleSnapshots(r.Server)
	}
	return nil
}

// drive drives the sides of a rank until training is over.
func drive(st *station.Station, r *coordinate.Run) error {
	st.Mu.Lock()
	defer st.Mu.Unlock()
	if r.Reduce != nil {
		return r.Reduce.Train()
	}
	r.BeginWorker(st.Began)
	isDone := func() bool {
		return (r.Server == nil || r.Server.Over()) && (r.Worker == nil || r.Worker.Over()) && st.Net.Idle()
	}
	isDue := func() bool { return isDone() || r.Worker != nil && r.Worker.Ready() }
	for {
		if err := st.Net.Drive(isDue); err != nil {
			return err
		}
		if !isDone() {
			r.Worker.Run()
			continue
		}
		if again, err := r.ContinueAfterPause(); err != nil || !again {
			return err
		}
	}
}

// ring has a rank do something where it drives its sides. Any goroutine may ring once the ranks have set up.
func (p *part) ring(rank int, do func(ranked)) {
	p.transports[rank].Post(func() {
		p.mu.Lock()
		r := p.of[rank]
		p.mu.Unlock()
		if !r.EndDecided {
			do(r)
		}
	})
}

// signal is a signal to a rank: rank 0 acts on it, and the others tell rank 0. again: it is the second.
func (p *part) signal(to int, name string, again bool) {
	p.ring(to, func(r ranked) {
		if r.Halted.Store(true); r.Lead == nil {
			h := wire.StopAsked{Rank: int32(to), Again: again}.Header()
			r.st.Net.Send(0, &h)
			return
		}
		if r.Lead.SignalStops(name); again {
			r.Lead.SkipCheckpoint()
		}
		r.Lead.Beat()
	})
}
