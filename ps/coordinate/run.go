// Package coordinate is what rank 0 does for all ranks, and what all do together for it: it counts the budget, prints the progress, writes
// the metrics, makes checkpoints, has parameters looked at, ends the run and sums it up.
package coordinate

import (
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/ps/allreduce"
	"fluentps/ps/core"
	"fluentps/ps/lock"
	"fluentps/ps/metrics"
	"fluentps/ps/replica"
	"fluentps/ps/resume"
	"fluentps/ps/serve"
	"fluentps/ps/station"
	"fluentps/ps/train"
)

// Run is a run as one rank sees it: its sides, its folder, where it goes on from, and how it ends.
type Run struct {
	station *station.Station
	o       Options
	PIDs    []int              // of all ranks
	Units   []UnitReport       // rank 0 only: those of all ranks
	Folder  *metrics.RunFolder // nil without one
	Lock    *lock.Lock         // rank 0 only: of the folder, if there is one

	Search   *resume.Search    // for what the run goes on from
	From     *resume.Origin    // that; nil: it begins
	Replicas *replica.Replicas // of checkpoints, in memory; nil: none

	Server    *serve.Side          // nil if this rank does not serve
	Worker    *train.Side          // nil if this rank does not work
	Lead      *Lead                // rank 0 only
	Reduce    *allreduce.AllReduce // nil unless baseline: allreduce
	Scheduler *core.Scheduler      // rank 0 only, with baseline: pslite
	releases  []core.Effect        // scratch for it

	Halted  atomic.Bool // a signal asked to stop; read by an evaluation on another goroutine
	Hurried atomic.Bool // and a second one to leave without a checkpoint
	Over    bool        // how the run ended is decided, on rank 0 first: signals and time change nothing any more

	TrainEnd         time.Duration
	CPUStart, CPUEnd time.Duration // of this process
	SetupEnd         time.Time
}

// Options are what a run is started with, as far as it is led by that.
type Options struct {
	Mode       string // mpi, local
	Build      string // version and commit
	Hash       string // of the configuration
	Iterations bool   // Result.Iterations is wanted
	Lead       LeadOptions

	Device func() (kernels.Device, error) // to evaluate on
	Resume resume.Options
}

// LeadOptions are what only rank 0 uses.
type LeadOptions struct {
	Start    time.Time // when the program started, for wall_s
	Out      io.Writer // input echo, progress, breakdown
	Terminal bool      // Out is one
	Width    int       // of that terminal, in columns
	Folder   *metrics.FolderSpec
	Job      string              // number in the batch system; "": none
	Restarts int                 // how often the batch system has started the job again
	Files    map[string][]byte   // written into the run folder at the start, by name
	RunInfo  map[string]any      // what run.json says beside the rank map
	Require  bool                // exit code 5 if the target is not reached
	MaxTime  time.Duration       // since Start, after which the run is stopped with a checkpoint; 0: never
	Known    func(configs.Facts) // told once what the ranks and the data tell of the run, before it trains; may be nil
}

// New makes that of a rank. What is not known yet is set when it is.
func New(st *station.Station, o Options) *Run {
	return &Run{station: st, o: o, Search: resume.New(st, o.Resume)}
}

// Dir is the run folder, "" without one.
func (r *Run) Dir() string {
	if r.Folder == nil {
		return ""
	}
	return r.Folder.Dir
}

// Release gives back what setup took, with what a rank without a worker would have computed on and the file of the log; both may
// be nil. Memory that may still be in flight, or is being written to disk, stays with the transport; after an error, where the rank
// is not idle, a process ends, or waits for its writers, before it closes one whose windows it shares.
func (r *Run) Release(idle bool, unit io.Closer, log *os.File) {
	net := r.station.Net
	if idle && r.Server != nil {
		r.Server.Close()
	}
	if idle && r.Worker != nil {
		r.Worker.Close()
	} else if idle && unit != nil {
		net.Fail(unit.Close())
	}
	if idle && r.Reduce != nil {
		r.Reduce.Forget(math.MaxInt64)
	}
	if idle && r.Lead != nil && r.Lead.looks.online != nil {
		r.Lead.looks.online.e.Close()
	}
	if r.Replicas != nil {
		net.Fail(r.Replicas.Release(false))
	}
	if r.Lead != nil && r.Lead.out.sinks != nil {
		net.Fail(r.Lead.out.sinks.Close())
	}
	if log != nil {
		net.Fail(log.Close())
	}
	if r.Lock != nil { // last: whoever waits for it may write from now on
		net.Fail(r.Lock.Release())
	}
	if r.Folder != nil && idle { // else somebody may still be writing
		net.Fail(r.Folder.Close())
	}
}
