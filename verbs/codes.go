package verbs

import (
	"slices"

	"fluentps/ps/supervise"
)

// Exit codes that only the command line uses; the others are the runtime's.
const (
	codeFailed   = 1
	codeUsage    = 2
	codeWarnings = 3
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
		return supervise.CodeRefused
	}
	return code
}
