// Package runtime is a rank of a run from its start to its end: it learns where all ranks are, opens the rooms in order,
// trains, ends the run with all other ranks, and closes the rooms in reverse.
//
// Every rank calls Run with the same configuration. On a rank without a worker one goroutine drives the transport all the
// time, and the state machines run inside the handlers. A worker's goroutine computes, and drives the transport while it
// waits, so no message costs a goroutine hand-off. A rank that serves and works computes on a second goroutine, because its
// server must answer meanwhile.
package runtime

import (
	"io"
	"io/fs"
	"log/slog"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/servernode"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/kernels"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Options are the inputs of one rank. All ranks must have equal Config, Hash and Mode.
type Options struct {
	Config    *configs.Config // nil only if Problem says why
	Hash      string          // identifies Config; compared between ranks
	Problem   error           // an error of this rank before Run; all ranks then leave with code 2
	Transport comm.Transport
	Mode      string // ModeMPI, or local: the ranks are goroutines of one process
	Host      string
	PID       int
	Build     string // version and commit; compared between ranks

	Load      func(workload.DataSpec) (*dataset.Set, error) // nil: dataset.Load
	NewDevice func() (kernels.Device, error)
	NewUnit   func(local int) (Unit, error) // of a rank that computes; local is its index among those of its host; nil: NewDevice
	Bind      func(on bool) int             // binds this thread to a core and returns the core's number; -1: not bound; may be nil

	Lead LeadOptions

	// Resume and AllowChanged are equal on all ranks. Resume is a run folder, whose newest complete checkpoint the run
	// resumes from, or resume.Auto, or "". AllowChanged lists keys of the configuration that may differ from the
	// checkpoint's.
	Resume       string
	AllowChanged []string
	Memory       string // the memory file system of this host, for replicas of checkpoints; "": /dev/shm

	Warn       io.Writer          // WARN and above, from every rank
	LogLevel   slog.Level         // lowest level of the log files; the zero value is Info
	Interrupt  <-chan string      // names of signals: those that ask to stop, the second with SignalAgain appended, or SignalState; may be nil
	Trains     func()             // called when set-up is over and training begins; may be nil
	Decided    servernode.Decided // told of the decisions of this rank's schemes; may be nil
	Iterations bool               // Result.Iterations is wanted; equal on all ranks

	testing    hooks
	thresholds layout.Thresholds // for tests: the sizes by which ways are chosen
	axes       station.Axes      // for tests: hooks
}

// hooks are for tests.
type hooks struct {
	initFile func(string) string // the file that this rank sees as model.init; nil: the file of that name
	mute     bool                // send one heartbeat and no more
	hostRoot fs.FS               // the root of the file system in which this rank looks for free memory; nil: /
}

// ModeMPI is the Mode of ranks that are processes.
const ModeMPI = "mpi"

// SignalState is the signal at which a rank prints its state; the run continues.
const SignalState = "SIGUSR2"

// SignalAgain, appended to the name of a signal, marks the second one: the run leaves without a checkpoint.
const SignalAgain = " again"

// LeadOptions are what only rank 0 uses.
type LeadOptions = coordinate.LeadOptions

// Result is the result of a run.
type Result = coordinate.Result

// Exit codes that all ranks agree on.
const (
	CodeOK     = station.CodeOK
	CodeFailed = station.CodeFailed
	CodeUsage  = station.CodeUsage
	CodeStall  = station.CodeStall
	CodeTarget = station.CodeTarget
	CodeAgain  = station.CodeAgain // stopped early with a checkpoint
)

// ExitError is an error that every rank returns alike, with the exit code.
type ExitError = link.ExitError
