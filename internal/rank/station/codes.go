package station

import (
	"fmt"

	"fluentps/internal/rank/link"
)

// Exit codes that all ranks agree on.
const (
	CodeOK     = 0
	CodeFailed = 1
	CodeUsage  = 2
	CodeStall  = 4
	CodeTarget = 5
	CodeAgain  = 75 // stopped early with a checkpoint: try again, like EX_TEMPFAIL of sysexits.h
)

// ExitError is an error that every rank returns alike, with the exit code.
type ExitError = link.ExitError

// Usage returns an ExitError with CodeUsage.
func Usage(format string, args ...any) error {
	return &ExitError{Code: CodeUsage, Text: fmt.Sprintf(format, args...)}
}
