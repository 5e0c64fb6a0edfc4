package verbs

import (
	"slices"
	"syscall"

	ps "fluentps/ps/runtime"
)

// What exit codes mean, in this one place: which one this process leaves with, and what the code of a launcher tells of a run.

// Exit codes that only the command line uses; the others are the runtime's.
const (
	codeFailed   = 1
	codeUsage    = 2
	codeWarnings = 3
	// codeSignal and the number of a signal make the code of who was killed by it.
	codeSignal = 128
)

const (
	// codeFatal is how the runtime of Go leaves after a fatal error: a signal such as SIGBUS, memory that the system refused, a
	// panic. It is codeUsage, too, so that 2 alone tells nobody whether a run was refused or a rank has died.
	codeFatal = 2
	// codeRefused is what a start with --supervised says in place of codeUsage (EX_USAGE of sysexits.h, as 75 is its EX_TEMPFAIL). No
	// death has this code, and every launcher hands it on, with or without a file system that hosts share.
	codeRefused = 64
	// codeDied is what the end of a run after a fatal error of Go is called: that of a process which died of SIGABRT. Job scripts
	// requeue for a code above 128, and whoever reads 2 would look for the mistake in the configuration.
	codeDied = codeSignal + int(syscall.SIGABRT)
)

// supervisedFlag stands in what a supervisor starts.
const supervisedFlag = "supervised"

// supervised says whether this process was started by a supervisor. It goes by the words, and not by the flags, which may be
// what is wrong.
func supervised(args []string) bool {
	if at := slices.Index(args, "--"); at >= 0 {
		args = args[:at]
	}
	return len(args) > 2 && args[1] == "run" && slices.Contains(args[2:], dashes(supervisedFlag))
}

// outward is the code that a process started with these words leaves with.
func outward(code int, args []string) int {
	if code == codeUsage && supervised(args) {
		return codeRefused
	}
	return code
}

// An ending is what the code of a launcher tells of a supervised start.
type ending struct {
	code int  // what the run leaves with where it is given up after this start
	said bool // the run itself said so, before or after it trained: another start would say the same again
	lost bool // a rank was killed or silent
}

// endingOf reads the code of a launcher. What is neither the run's word nor the end of a rank is the launcher's own, and
// tells nothing: 0 without a summary, 1 where a host was lost.
func endingOf(launcher int) ending {
	switch {
	case launcher == codeRefused:
		return ending{code: codeUsage, said: true}
	case launcher == ps.CodeTarget, launcher == ps.CodeAgain:
		return ending{code: launcher, said: true}
	case launcher == codeFatal:
		return ending{code: codeDied, lost: true}
	case launcher == ps.CodeStall, launcher > codeSignal:
		return ending{code: launcher, lost: true}
	}
	return ending{code: codeFailed}
}
