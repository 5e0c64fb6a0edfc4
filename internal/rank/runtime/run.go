package runtime

import (
	"errors"
	"fmt"
	"io"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

// Run trains on this rank. Every rank of the world calls it, with its own Transport, and it returns when all ranks are
// done. The caller closes the transport and leaves with Result.Code, which is the same on every rank. An *ExitError is
// agreed on, too; after any other error the caller aborts the world.
func Run(o Options) (res Result, err error) {
	if o.Load == nil {
		o.Load = dataset.Load
	}
	r := &rank{o: o, station: &station.Station{Ended: make(chan struct{}), Transport: o.Transport, Config: o.Config,
		Me: o.Transport.Rank(), Axes: o.axes}}
	r.station.Guard = r.guarded
	r.run = coordinate.New(r.station,
		coordinate.Options{Mode: o.Mode, Build: o.Build, Hash: o.Hash, Iterations: o.Iterations, Lead: o.Lead, Device: r.newDevice,
			Resume: resume.Options{Resume: o.Resume, AllowChanged: o.AllowChanged, Memory: o.Memory, Folder: o.Lead.Folder}})
	r.station.Log = metrics.NewLogger(metrics.LogSpec{Rank: r.station.Me, Tag: fmt.Sprintf("rank %d", r.station.Me),
		Host: o.Host, Stderr: o.Warn})
	defer r.guard(&res, &err)
	r.station.Net = link.New(r.station.Transport, link.Options{Apart: r.station.Config != nil && r.station.Config.InRounds()})
	r.live = r.openLiveness()
	defer r.live.Close()
	if err := r.station.Net.Open(); err != nil {
		return Result{Code: CodeFailed}, err
	}
	res, err = r.setupAndTrain()
	var agreed *ExitError
	var aborted *comm.AbortError
	if err != nil && !errors.As(err, &agreed) {
		if !errors.As(err, &aborted) { // else the rank that aborted has logged the reason
			r.station.Log.Error("run", "error", err)
		}
		r.release(false)
		return Result{Code: CodeFailed}, err
	}
	if agreed != nil {
		res.Code = agreed.Code
	}
	r.live.Conclude(res.Code)
	if closeErr := r.closeLink(); closeErr != nil && err == nil {
		err = closeErr
	}
	r.release(true)
	if unshareErr := r.station.Unshare(); unshareErr != nil && err == nil {
		err = unshareErr
	}
	if agreed != nil {
		return Result{Code: agreed.Code}, agreed
	}
	return res, err
}

// setupAndTrain sets up, trains and ends the run.
func (r *rank) setupAndTrain() (Result, error) {
	if err := r.setup(); err != nil {
		return Result{}, err
	}
	if err := r.run.RemoveSummary(); err != nil {
		return Result{}, err
	}
	r.bind()
	r.unitLog()
	if err := r.begin(); err != nil {
		return Result{}, err
	}
	stop := make(chan struct{})
	defer close(stop)
	go r.watch(stop)
	if r.o.Trains != nil {
		r.o.Trains()
	}
	r.run.Timeline.BeginPart(r.station.Guard)
	if err := r.train(); err != nil {
		return Result{}, err
	}
	res, err := r.run.Finish()
	return res, err
}

// begin returns when all ranks are ready. They have one zero of training, rank 0's: each would take its own later, as soon as it gets a
// processor again, and what it computes would seem to be earlier than it was. They have it before the first of them trains, for its
// messages are timed.
func (r *rank) begin() error {
	began := r.station.Transport.Now()
	if err := link.Spread(r.station.Net, &began); err != nil {
		return err
	}
	r.station.Began = began
	if err := r.station.Transport.Barrier(); err != nil {
		return err
	}
	r.run.SetupEnd, r.run.CPU.Start = time.Now(), coordinate.ProcessCPU()
	return nil
}

// bind keeps the driving thread on one core, if the configuration asks for it and it helps.
func (r *rank) bind() {
	if r.o.Bind == nil {
		return
	}
	if core := r.o.Bind(r.station.Config.Cluster.Bind == configs.BindAuto); core >= 0 {
		r.station.Log.Info("bound to one core, because this host has more ranks than cores", "core", core)
	}
}

// release frees what setup allocated.
func (r *rank) release(idle bool) {
	r.closeTeller()
	r.closeDigests()
	if timer := r.lost.Load(); timer != nil {
		defer timer.Stop()
	}
	var unit io.Closer
	if r.unit.Device != nil {
		unit = r.unit
	}
	if !idle {
		r.station.Model.Child.Kill()
	}
	r.run.Release(idle, unit, r.file)
}

// closeLink cancels all receives.
func (r *rank) closeLink() error {
	cancel, idle := func() {}, func() bool { return true }
	if s := r.run.Server; s != nil {
		cancel, idle = s.CloseAhead, s.Idle
	}
	return r.station.Net.Close(cancel, idle)
}

// train drives the nodes of this rank until both are done, and takes the times.
func (r *rank) train() error {
	r.station.Mu.Lock()
	defer r.station.Mu.Unlock()
	defer close(r.station.Ended)
	if err := r.driveTraining(); err != nil {
		return err
	}
	r.run.TrainEnd, r.run.CPU.End = r.station.Transport.Now(), coordinate.ProcessCPU()
	wall := r.run.TrainEnd - r.station.Began
	if r.run.Server != nil {
		r.run.Server.FinishSpans(wall)
	}
	if r.run.Worker != nil {
		r.run.Worker.End(wall)
	}
	return nil
}

// driveTraining drives the nodes of this rank until training is over.
func (r *rank) driveTraining() error {
	if r.run.Reduce != nil {
		return r.run.Reduce.Train()
	}
	r.run.BeginWorker(r.station.Began)
	for {
		if err := r.driveNodes(); err != nil {
			return err
		}
		if again, err := r.run.ContinueAfterPause(); err != nil || !again {
			return err
		}
	}
}

// driveNodes drives the nodes of this rank until they are done: at the end of training, or in a pause.
func (r *rank) driveNodes() error {
	w := r.run.Worker
	isDone := func() bool {
		return (r.run.Server == nil || r.run.Server.Over()) && (w == nil || w.Over()) && r.station.Net.Idle()
	}
	isDue := func() bool { return isDone() || w != nil && w.Ready() }
	for {
		if err := r.station.Net.Drive(isDue); err != nil || isDone() {
			return err
		}
		w.Run()
	}
}
