//go:build mpi

package mpi

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"fluentps/internal/comm"
)

// allowed returns the list of cores that a thread may run on, as the system writes it.
func allowed(t *testing.T, thread string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + thread + "/status")
	if err != nil {
		t.Skip(err)
	}
	_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list)
}

// If ranks share cores, this thread stays on one, and no other thread does; otherwise nothing changes.
func TestRankStaysOnOneCore(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := allowed(t, "thread-self")
	core := Bind(world, true)
	_, ranks := world.NodeRank()
	if shares := ranks > runtime.NumCPU(); shares != (core >= 0) {
		t.Errorf("%d ranks on %d cores: bound to %d", ranks, runtime.NumCPU(), core)
	} else if got := world.(comm.Crowded).Crowded(); got != shares {
		t.Errorf("%d ranks on %d cores: crowded %t", ranks, runtime.NumCPU(), got)
	}
	if now := allowed(t, "thread-self"); core >= 0 && strings.ContainsAny(now, ",-") || core < 0 && now != before {
		t.Errorf("bound to %d, the thread may run on %s", core, now)
	}
	others := make(chan string)
	for range 8 {
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			others <- allowed(t, "thread-self")
		}()
	}
	for range 8 {
		if got := <-others; got != before {
			t.Errorf("another thread may run on %s, not on %s", got, before)
		}
	}
	if got := Bind(world, false); got != -1 {
		t.Errorf("after unbinding, bound to %d", got)
	}
	if now := allowed(t, "thread-self"); now != before {
		t.Errorf("after unbinding, the thread may run on %s, not on %s", now, before)
	}
}
