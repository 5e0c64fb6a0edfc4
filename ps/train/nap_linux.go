package train

import (
	"syscall"
	"time"
)

// nap sleeps in the system, for so long or until a signal comes.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // whoever naps looks at the clock
}
