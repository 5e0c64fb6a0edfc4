package supervise

import (
	"os"
	"syscall"

	"fluentps/ps/station"
)

const (
	codeFailed  = 1
	codeUsage   = 2
	codeStopped = station.CodeAgain
	// codeSignal and the number of a signal make the code of a process that this signal killed.
	codeSignal = 128
	// codeFatal is how the runtime of Go leaves after a fatal error: a signal such as SIGBUS, memory that the system refused, a
	// panic. A refused run leaves with 2, too, so that 2 alone tells nobody whether a run was refused or a rank has died.
	codeFatal = 2
	// codeDied stands for the end of a run after a fatal error of Go: the code of a process that died of SIGABRT. Job scripts
	// requeue for a code above 128, and a reader of 2 would look for the mistake in the configuration.
	codeDied = codeSignal + int(syscall.SIGABRT)
)

// CodeRefused is what a supervised start says in place of 2 (EX_USAGE of sysexits.h, as 75 is its EX_TEMPFAIL). No death
// has this code, and every launcher hands it on, with or without a file system that hosts share.
const CodeRefused = 64

// An ending is what the code of a launcher tells of a supervised start.
type ending struct {
	code int  // what the supervisor leaves with where it gives up after this start
	said bool // the run itself said so, before or after it trained: another start would say the same again
	lost bool // a rank was killed or silent
}

// endingOf reads the code of a launcher. A code that is neither the run's word nor the end of a rank is the launcher's own, and
// tells nothing: 0 without a summary, 1 where a host was lost.
func endingOf(launcher int) ending {
	switch {
	case launcher == CodeRefused:
		return ending{code: codeUsage, said: true}
	case launcher == station.CodeTarget, launcher == station.CodeAgain:
		return ending{code: launcher, said: true}
	case launcher == codeFatal:
		return ending{code: codeDied, lost: true}
	case launcher == station.CodeStall, launcher > codeSignal:
		return ending{code: launcher, lost: true}
	}
	return ending{code: codeFailed}
}

// exitCode is what a shell calls $?.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return state.ExitCode()
}
