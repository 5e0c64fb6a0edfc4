// Package coordinate is what rank 0 does for all ranks, and what all ranks do together: it counts the budget, prints the
// progress, writes the metrics, makes checkpoints, has parameters evaluated, ends the run and writes the summary.
package coordinate

import (
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/disk/lock"
	"fluentps/internal/rank/allreduce"
	"fluentps/internal/rank/replica"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
	"fluentps/kernels"
)

// Run is a run as one rank sees it: its sides, its folder, the checkpoint that it resumes from, and how it ends.
type Run struct {
	station  *station.Station
	o        Options
	PIDs     []int              // of all ranks
	Units    []UnitReport       // of all ranks; on rank 0 only
	Folder   *metrics.RunFolder // nil without one
	Lock     *lock.Lock         // of the run folder, if there is one; on rank 0 only
	Token    string             // of this start; the same on all ranks once they have opened the folder
	Follower *lock.Follower     // whether the folder still belongs to this start; nil without a folder

	Search   *resume.Search    // for the checkpoint to resume from
	From     *resume.Origin    // the checkpoint that the run resumes from; nil: it begins
	Replicas *replica.Replicas // checkpoints in memory; nil: none

	Server    *serve.Side          // nil if this rank does not serve
	Worker    *train.Side          // nil if this rank does not work
	Lead      *Lead                // rank 0 only
	answers   *answers             // on a rank that evaluates for rank 0; else nil
	Reduce    *allreduce.AllReduce // nil unless baseline: allreduce
	Scheduler *core.Scheduler      // rank 0 only, with baseline: pslite
	releases  []core.Effect        // scratch for Scheduler

	Timeline *timeline.Recording // nil: none is recorded

	Halted         atomic.Bool // a signal asked to stop; an evaluation reads this on another goroutine
	SkipCheckpoint atomic.Bool // a second signal asked to leave without a checkpoint
	EndDecided     bool        // how the run ends is decided, on rank 0 first: signals and time limits have no effect any more

	TrainEnd time.Duration
	CPU      struct{ Start, End time.Duration } // CPU time of this process, when training begins and ends
	SetupEnd time.Time
}

// Options are the inputs of a run that this package uses.
type Options struct {
	Mode       string // mpi, local
	Build      string // version and commit
	Hash       string // of the configuration
	Iterations bool   // Result.Iterations is wanted
	Lead       LeadOptions

	Device func() (kernels.Device, error) // to evaluate on
	Resume resume.Options
}

// LeadOptions are the inputs that only rank 0 uses.
type LeadOptions struct {
	Start    time.Time // when the program started, for wall_s
	Out      io.Writer // input echo, progress, breakdown
	Terminal bool      // Out is a terminal
	Width    int       // of the terminal, in columns
	Folder   *metrics.FolderSpec
	Job      string              // number in the batch system; "": none
	Restarts int                 // how often the batch system has started the job again
	Token    string              // of this start (internal/disk/lock); "": rank 0 draws one
	Files    map[string][]byte   // written into the run folder at the start, by name
	RunInfo  map[string]any      // what run.json says beside the rank map
	Require  bool                // exit code 5 if the target is not reached
	MaxTime  time.Duration       // since Start, after which the run is stopped with a checkpoint; 0: never
	Known    func(configs.Facts) // called once before training with the facts about ranks and data; may be nil

	// WhyStopped says what the batch system knows of a signal that stops the run; "" or nil: nothing. It is called at most once, on a
	// goroutine of its own.
	WhyStopped func() string
}

// New makes the run of a rank. Setup sets the other fields.
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

// Release frees what setup allocated, with the unit of a rank without a worker and the file of the log; both may be nil.
// Memory that may still be in flight, or is being written to disk, stays with the transport. After an error the rank is not
// idle: a process then ends, or waits for its writers before it closes a transport whose windows they share.
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
		r.Reduce.Close()
	}
	if idle && r.Lead != nil && r.Lead.evals.online != nil && r.Lead.evals.online.e != nil {
		r.Lead.evals.online.e.Close()
	}
	if idle && r.answers != nil {
		r.answers.e.Close()
	}
	if idle && r.station.Model.Child != nil {
		if err := r.station.Model.Child.Close(); err != nil { // after training, whose result it no longer changes
			r.station.Log.Warn("model external: " + err.Error())
		}
	}
	if r.Timeline != nil {
		net.Fail(r.Timeline.EndPart())
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
	r.Follower.Close()
	if r.Lock != nil { // last: a run that waits for it may write from now on
		net.Fail(r.Lock.Release())
	}
	if r.Folder != nil && idle { // else a goroutine may still be writing
		net.Fail(r.Folder.Close())
	}
}
