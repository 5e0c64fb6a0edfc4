package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
)

// The first wish to end goes on as the signal for which launchers leave their ranks alone, and what comes at once behind it,
// by another way, not at all.
func TestHandOn(t *testing.T) {
	var s supervisor
	at := time.Now()
	for i, c := range []struct {
		sig, want os.Signal // nil: nothing goes on
		after     time.Duration
	}{
		{syscall.SIGUSR2, syscall.SIGUSR2, 0},
		{syscall.SIGUSR1, syscall.SIGUSR1, 0},
		{syscall.SIGHUP, syscall.SIGUSR1, 0},
		{syscall.SIGHUP, syscall.SIGUSR1, 0}, // said by the system and by the shell
		{syscall.SIGTERM, syscall.SIGUSR1, 0},
		{syscall.SIGTERM, nil, Apart / 2},
		{syscall.SIGINT, syscall.SIGINT, 2 * Apart},
		{syscall.SIGTERM, syscall.SIGTERM, 4 * Apart},
	} {
		if got, on := s.handOn(c.sig, at.Add(c.after)); got != c.want || on != (c.want != nil) {
			t.Errorf("%d: %v after %v goes on as %v, %v; want %v", i, c.sig, c.after, got, on, c.want)
		}
	}
}

// Between two starts a signal that asks for the state ends nothing, and one behind it does.
func TestSignalsBetweenTwoStarts(t *testing.T) {
	s := supervisor{Options: Options{Signals: make(chan os.Signal, 8)}}
	s.Signals <- syscall.SIGUSR2
	if s.ended() {
		t.Error("SIGUSR2 ended the run")
	}
	s.Signals <- syscall.SIGUSR2
	s.Signals <- syscall.SIGTERM
	if !s.ended() {
		t.Error("SIGTERM did not end the run")
	}
}

// A run that was to go on from one checkpoint goes on from the newest when that is its own.
func TestResumeOfOneThatWasNamed(t *testing.T) {
	dir := t.TempDir()
	folder := func(name string) string {
		path := filepath.Join(dir, checkpoint.Folder, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	named, known := folder("000000000003"), folder("000000000005")
	s := supervisor{Options: Options{Dir: dir, Named: named}, known: known}
	if got := s.resume(); got != named {
		t.Errorf("goes on from %s, want %s", got, named)
	}
	folder("000000000006")
	if got := s.resume(); got != dir {
		t.Errorf("goes on from %s, want %s", got, dir)
	}
}

// What is lost is not said where the checkpoint seems to be written later than now, by a clock that was set back.
func TestALossByAClockThatWasSetBackIsNotSaid(t *testing.T) {
	dir := t.TempDir()
	d, err := checkpoint.Begin(durable.Below(dir))
	if err != nil {
		t.Fatal(err)
	}
	file, err := checkpoint.WriteFile(d.In, checkpoint.ServerFile(0), 1)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if _, err := d.Finish(&checkpoint.Manifest{Written: now, Iteration: 7, Servers: 1, Workers: 1, Starts: []int64{7}, Files: []checkpoint.Entry{file}}); err != nil {
		t.Fatal(err)
	}
	s := supervisor{Options: Options{Dir: dir}}
	if got := s.from(now.Add(2 * time.Second)); !strings.HasSuffix(got, "iteration 7; at most 2s of training are lost") {
		t.Error(got)
	}
	if got := s.from(now.Add(-time.Hour)); !strings.HasSuffix(got, "iteration 7") {
		t.Error(got)
	}
}
