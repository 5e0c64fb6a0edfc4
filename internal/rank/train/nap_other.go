//go:build !linux

package train

import "time"

func nap(d time.Duration) { time.Sleep(d) }
