package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/lock"
)

// The first request to end is forwarded as the signal after which launchers leave their ranks alone. A second one that
// follows at once, from another sender, is not forwarded.
func TestHandOn(t *testing.T) {
	var s supervisor
	at := time.Now()
	for i, c := range []struct {
		sig, want os.Signal // nil: nothing is forwarded
		after     time.Duration
	}{
		{syscall.SIGUSR2, syscall.SIGUSR2, 0},
		{syscall.SIGUSR1, syscall.SIGUSR1, 0},
		{syscall.SIGHUP, syscall.SIGUSR1, 0},
		{syscall.SIGHUP, syscall.SIGUSR1, 0}, // sent by the system and by the shell
		{syscall.SIGTERM, syscall.SIGUSR1, 0},
		{syscall.SIGTERM, nil, Apart / 2},
		{syscall.SIGINT, syscall.SIGINT, 2 * Apart},
		{syscall.SIGTERM, syscall.SIGTERM, 4 * Apart},
	} {
		if got, on := s.forwardAs(c.sig, at.Add(c.after)); got != c.want || on != (c.want != nil) {
			t.Errorf("%d: %v after %v is forwarded as %v, %v; want %v", i, c.sig, c.after, got, on, c.want)
		}
	}
}

// Between two starts a signal that asks for the state ends nothing; a signal after it that asks for the end does.
func TestSignalsBetweenTwoStarts(t *testing.T) {
	s := supervisor{Options: Options{Signals: make(chan os.Signal, 8)}}
	s.Signals <- syscall.SIGUSR2
	if s.askedToEnd() {
		t.Error("SIGUSR2 ended the run")
	}
	s.Signals <- syscall.SIGUSR2
	s.Signals <- syscall.SIGTERM
	if !s.askedToEnd() {
		t.Error("SIGTERM did not end the run")
	}
}

// A run that was to resume from a named checkpoint resumes from the newest one once that is its own.
func TestResumeOfOneThatWasNamed(t *testing.T) {
	dir := t.TempDir()
	folder := func(name string) string {
		path := filepath.Join(dir, checkpoint.Folder, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	named, newestBefore := folder("000000000003"), folder("000000000005")
	s := supervisor{Options: Options{Dir: dir, Named: named}, newestBefore: newestBefore}
	if got := s.resumeFrom(); got != named {
		t.Errorf("resumes from %s, want %s", got, named)
	}
	folder("000000000006")
	if got := s.resumeFrom(); got != dir {
		t.Errorf("resumes from %s, want %s", got, dir)
	}
}

// The loss is not reported if the checkpoint seems to be from the future, because a clock was set back.
func TestNoLossIsReportedAfterTheClockWasSetBack(t *testing.T) {
	dir := t.TempDir()
	d, err := checkpoint.Begin(durable.Below(dir), "7.1")
	if err != nil {
		t.Fatal(err)
	}
	file, err := checkpoint.WriteFile(d.In, checkpoint.ServerFile(0), 1)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if _, err := d.Finish(&checkpoint.Manifest{Written: now, Iteration: 7, Servers: 1, Workers: 1, Starts: []int64{7},
		Files: []checkpoint.Entry{file}}); err != nil {
		t.Fatal(err)
	}
	s := supervisor{Options: Options{Dir: dir}}
	if got := s.describeResume(now.Add(2 * time.Second)); !strings.HasSuffix(got, "iteration 7; at most 2s of training are lost") {
		t.Error(got)
	}
	if got := s.describeResume(now.Add(-time.Hour)); !strings.HasSuffix(got, "iteration 7") {
		t.Error(got)
	}
}

// A run whose folder was exchanged is not started again: the next start would write into what has its name now.
func TestNoStartFollowsTheExchangeOfTheFolder(t *testing.T) {
	root := t.TempDir()
	dir, starts := filepath.Join(root, "run"), filepath.Join(root, "starts")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var said []string
	end, err := Run(t.Context(), Options{
		Program: "none", File: "x.yaml", Flags: func(bool) []string { return nil }, Restarts: 3, Dir: dir, Series: "s",
		Say:      func(text string) { said = append(said, text) },
		Launcher: []string{"sh", "-c", `echo "$@" >>"$0"; mv "$1" "$1-away"; mkdir "$1"; exit 137`, starts, dir},
		Began:    time.Now(), Signals: make(chan os.Signal),
	})
	if err != nil || end.Code != codeFailed || !strings.Contains(end.Text, dir+" was renamed to "+dir+"-away ") || len(said) > 0 {
		t.Errorf("%+v, %v, said %q", end, err, said)
	}
	if text, _ := os.ReadFile(starts); strings.Count(string(text), "\n") != 1 {
		t.Errorf("starts: %s", text)
	}
}

// A rank that dies after the summary says ok leaves its lock. The supervisor, which starts no other, removes it, and no one else's.
func TestNoLockOfAFinishedRunStays(t *testing.T) {
	for series, stays := range map[string]bool{"s": false, "another": true} {
		dir := t.TempDir()
		var said []string
		end, err := Run(t.Context(), Options{
			Program: "none", File: "x.yaml", Flags: func(bool) []string { return nil }, Restarts: 3, Dir: dir, Series: "s",
			Say: func(text string) { said = append(said, text) },
			Launcher: []string{"sh", "-c", `printf '{"start": "s.1", "finished": "ok"}' >"$0/summary.json"
				printf '{"token": "t", "start": "%s.1", "host": "far", "pid": 7}\n0000000000000001\n' "$1" >"$0/run.lock"; exit 137`, dir, series},
			Began: time.Now(), Signals: make(chan os.Signal),
		})
		if err != nil || end != (End{}) || len(said) != 1 || !strings.HasPrefix(said[0], "WARNING: the launcher left with code 137") {
			t.Errorf("%s: %+v, %v, said %q", series, end, err, said)
		}
		if _, err := os.Stat(filepath.Join(dir, lock.Name)); stays != (err == nil) {
			t.Errorf("%s: the lock stays: %v, want %v", series, err == nil, stays)
		}
	}
}
