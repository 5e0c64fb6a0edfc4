package supervise

import (
	"os"
	"syscall"

	"fluentps/internal/rank/station"
)

const (
	codeFailed  = 1
	codeUsage   = 2
	codeStopped = station.CodeAgain
	// codeSignal plus the number of a signal is the code of a process that this signal killed.
	codeSignal = 128
	// codeFatal is the exit code of the Go runtime after a fatal error: a signal such as SIGBUS, a refused allocation,
	// a panic. A refused run also exits with 2, so 2 alone does not tell a refused run from a dead rank.
	codeFatal = 2
	// codeDied stands for the end of a run by a fatal error of Go: the code of a process that died of SIGABRT. Job
	// scripts requeue for a code above 128, and with 2 a user would look for a mistake in the configuration.
	codeDied = codeSignal + int(syscall.SIGABRT)
)

// CodeRefused replaces 2 as the exit code of a supervised start (EX_USAGE of sysexits.h, as 75 is its EX_TEMPFAIL). No
// death has this code, and every launcher passes it on, with or without a file system that hosts share.
const CodeRefused = 64

// An ending is the meaning of a launcher's exit code for a supervised start.
type ending struct {
	code     int  // exit code of the supervisor if it gives up after this start
	byRun    bool // the run itself chose this code, before or after it trained: another start would end alike
	rankLost bool // a rank was killed or silent
}

// endingOf interprets the exit code of a launcher. A code that comes neither from the run nor from the death of a rank
// is the launcher's own and means nothing: 0 without a summary, 1 after the loss of a host.
func endingOf(launcher int) ending {
	switch {
	case launcher == CodeRefused:
		return ending{code: codeUsage, byRun: true}
	case launcher == station.CodeTarget, launcher == station.CodeAgain:
		return ending{code: launcher, byRun: true}
	case launcher == codeFatal:
		return ending{code: codeDied, rankLost: true}
	case launcher == station.CodeStall, launcher > codeSignal:
		return ending{code: launcher, rankLost: true}
	}
	return ending{code: codeFailed}
}

// exitCode returns the code that a shell has in $?.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return state.ExitCode()
}
