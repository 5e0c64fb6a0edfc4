// Package runtime is a rank of a run from its start to its end: it finds out where everybody is, opens the rooms in order, trains, ends
// the run with all others, and closes the rooms in reverse.
//
// Every rank calls Run with the same configuration. A rank without a worker serves: its goroutine drives the transport for good, and
// the state machines run inside the handlers. A worker's goroutine computes and drives the transport while it waits, so no message
// costs a goroutine hand-off. A rank that is both computes on a second goroutine, because its server must answer meanwhile.
package runtime

import (
	"io"
	"log/slog"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/ps/coordinate"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/station"
	"fluentps/ps/workload"
)

// Options are what one rank is started with. All ranks must have equal Config, Hash and Mode.
type Options struct {
	Config    *configs.Config // nil only if Problem says why
	Hash      string          // identifies Config; compared over ranks
	Problem   error           // what went wrong on this rank before Run; all ranks then leave with code 2
	Transport comm.Transport
	Mode      string // mpi, local
	Host      string
	PID       int
	Build     string // version and commit; compared over ranks

	Load      func(workload.DataSpec) (*workload.Set, error) // nil: workload.Load
	NewDevice func() (kernels.Device, error)
	NewUnit   func(local int) (Unit, error) // of a rank that computes, before which so many of its host do; nil: NewDevice
	Bind      func(on bool) int             // keeps this thread on one core, whose number it returns, or -1 if not; may be nil

	Lead LeadOptions

	// Resume and AllowChanged are equal on all ranks. Resume is a run folder whose newest checkpoint that is whole the run
	// goes on from, resume.Auto, or empty; AllowChanged are keys of the configuration that may have other values than there.
	Resume       string
	AllowChanged []string
	Memory       string // the memory file system of this host, for replicas of checkpoints; "": /dev/shm

	Warn       io.Writer     // WARN and above, from every rank
	LogLevel   slog.Level    // least level of the log files; the zero value is Info
	Interrupt  <-chan string // names of signals that ask to stop, with SignalAgain behind the second, or of the one that asks for the state; may be nil
	Decided    core.Decided  // told what the schemes of this rank's server decide; may be nil
	Iterations bool          // Result.Iterations is wanted; equal on all ranks

	mute bool              // of tests: it beats once and no more
	at   layout.Thresholds // of tests: the sizes by which ways are chosen
	axes station.Axes      // doors, which tests use
}

// SignalState is the signal at which a rank prints where it stands, and goes on.
const SignalState = "SIGUSR2"

// SignalAgain behind the name of a signal makes it the second one: the run leaves no checkpoint any more.
const SignalAgain = " again"

// LeadOptions are what only rank 0 uses.
type LeadOptions = coordinate.LeadOptions

// Result is what a run came to.
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

// ExitError is an error that every rank returns alike, with the code to leave with.
type ExitError = link.ExitError
