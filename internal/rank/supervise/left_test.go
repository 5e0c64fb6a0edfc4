package supervise

import (
	"os/exec"
	"testing"

	"fluentps/internal/disk/lock"
)

// Processes of a start outlive their launcher no longer than they need; those of other starts are left alone.
func TestProcessesThatALauncherLeavesAreEnded(t *testing.T) {
	series := lock.NewSeries()
	sleep := func(token string) (*exec.Cmd, chan error) {
		t.Helper()
		c := exec.Command("sh", "-c", "while :; do sleep 0.05; done", "rank", tokenFlag+token)
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		return c, done
	}
	_, left := sleep(lock.Attempt(series, 1))
	other, lives := sleep(lock.Attempt(series, 11))
	s := supervisor{Options: Options{Say: func(text string) { t.Error(text) }}}
	if !s.endLeft(lock.Attempt(series, 1)) {
		t.Error("none was found")
	}
	<-left
	select {
	case <-lives:
		t.Error("a process of another start was ended")
	default:
	}
	_ = other.Process.Kill()
	<-lives
	if s.endLeft(lock.Attempt(series, 1)) {
		t.Error("one was found where none is")
	}
}
