package train

import (
	"syscall"
	"time"
)

// nap sleeps in the system for d, or until a signal arrives.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // the caller looks at the clock afterwards
}
