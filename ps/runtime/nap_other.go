//go:build !linux

package runtime

import "time"

func nap(d time.Duration) { time.Sleep(d) }
