package verbs

import (
	"slices"

	"fluentps/internal/rank/supervise"
)

// Exit codes that only the command line uses. The runtime defines the others.
const (
	codeFailed   = 1
	codeUsage    = 2
	codeWarnings = 3
)

// supervisedFlag is on the command line of every run that a supervisor starts.
const supervisedFlag = "supervised"

// supervised says whether a supervisor started this process. It looks at the raw words, because the flags may be the ones that
// cannot be parsed.
func supervised(args []string) bool {
	if at := slices.Index(args, "--"); at >= 0 {
		args = args[:at]
	}
	return len(args) > 2 && args[1] == "run" && slices.Contains(args[2:], dashes(supervisedFlag))
}

// exitCodeFor is the exit code of a process with the command line args. Under a supervisor a usage error has a code of its own.
func exitCodeFor(code int, args []string) int {
	if code == codeUsage && supervised(args) {
		return supervise.CodeRefused
	}
	return code
}
