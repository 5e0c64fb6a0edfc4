// Package supervise restarts a run after the death of a rank. MPI ends the whole job then, so the supervisor is a
// process outside: it starts the launcher, and starts it again if the job has died, so that the run resumes from its
// newest checkpoint.
package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/lock"
	"fluentps/internal/rank/replica"
)

// deathsMax is how many times in a row a job may die without a new checkpoint: a job that fails at once each time does
// not fail because of a host.
const deathsMax = 2

// Options say what to start, and where its files are.
type Options struct {
	Program  string                      // this program, as the command line names it
	File     string                      // the configuration
	Flags    func(maxTime bool) []string // flags of the verb run, with or without --max-time
	Launcher []string                    // command line of the launcher; empty: the ranks are goroutines of one process
	Hosts    []string                    // of each rank; nil: the launcher has them
	Restarts int                         // at most so many
	Replicas bool                        // checkpoints are also replicated in the memory of hosts

	Dir    string   // the run folder
	Series string   // of the tokens of all starts (internal/disk/lock)
	First  []string // flags of the first start: what it resumes from
	Named  string   // the only checkpoint that the first start may resume from; "": any

	Limit   time.Duration // for all starts together, since Began; 0: none
	Began   time.Time
	Signals chan os.Signal
	Out     io.Writer         // the launcher's output
	Err     io.Writer         // the launcher's error output
	Say     func(text string) // prints a line for the user
}

type supervisor struct {
	Options
	newestBefore string // the newest checkpoint before the first start
	stopped      bool   // a signal asked the run to end
	stages       Stages
	token        string // of the newest start; "": none was made
	lossCode     int    // code of the last start since the newest checkpoint in which a rank was killed or silent; 0: none
}

// End is the exit code of a supervised run, and its reason unless the run itself printed that.
type End struct {
	Code int
	Text string
}

// Run starts the run, and starts it again after each death, until the run has ended or was restarted Restarts times. It
// returns an error if a command could not be run.
func Run(ctx context.Context, o Options) (End, error) {
	s := &supervisor{Options: o}
	if s.Named != "" {
		s.newestBefore = s.newest()
	}
	end, err := s.run(ctx)
	if err == nil && s.token != "" {
		if err := lock.Clear(s.Dir, s.token, end == End{}); err != nil {
			s.Say(fmt.Sprintf("WARNING: the lock of a process that has died stays: %v", err))
		}
	}
	return end, err
}

// run is Run without what comes after the last start.
func (s *supervisor) run(ctx context.Context) (End, error) {
	deaths, folder := 0, lock.Watch(s.Dir)
	defer folder.Close()
	for n := 0; ; n++ {
		newest, starts, token := s.newest(), replica.Starts(s.Dir), lock.Attempt(s.Series, n+1)
		words, end, err := s.commandLine(ctx, n, token)
		if words == nil {
			return end, err
		}
		s.token = token
		start := time.Now()
		code, err := s.start(words)
		if errors.As(err, new(*exec.Error)) || errors.As(err, new(*os.PathError)) {
			return End{codeUsage, fmt.Sprintf("run: cannot start %s: %v", words[0], err)}, nil
		}
		if err != nil {
			return End{}, err
		}
		left := s.endLeft(token)
		if end, over := s.conclude(code, token, left); over {
			return end, nil
		}
		if err := folder.Check(); err != nil { // another start would write into what has the name now
			return End{codeFailed, fmt.Sprintf("%v; it is not started again", err)}, nil
		}
		deaths++
		if now := replica.Starts(s.Dir); len(starts) > 0 && len(now) > 1 && now[1] == starts[0] {
			deaths = 1 // because the start before had left a checkpoint in memory
		}
		if s.newest() != newest {
			deaths, s.lossCode = 0, 0
		}
		ending := endingOf(code)
		if ending.rankLost {
			s.lossCode = ending.code
		}
		died := fmt.Sprintf("the job died after %s with code %d", time.Since(start).Round(100*time.Millisecond), code)
		if code == codeFatal {
			died += ", by a fatal error of a process"
		}
		switch {
		case n == s.Restarts:
			return End{cmp.Or(s.lossCode, codeFailed), fmt.Sprintf(
				"run: %s, and all restarts of --restarts %d are used up; continue with --resume %s",
				died, s.Restarts, s.resumeFrom())}, nil
		case deaths == deathsMax:
			return End{cmp.Or(s.lossCode, codeFailed), fmt.Sprintf(
				"run: %s, the %dnd time in a row without a new checkpoint: giving up; see the messages above and %s, or write "+
					"checkpoints more often (checkpoint.every)",
				died, deathsMax, filepath.Join(s.Dir, "logs"))}, nil
		}
		s.Say(fmt.Sprintf("%s; restart %d of %d: %s", died, n+1, s.Restarts, s.describeResume(time.Now())))
	}
}

// tokenFlag, with its token, is on the command line of every process of a start.
const tokenFlag = "--start="

// resumeFrom returns what the next start resumes from: the run folder or, as long as the run has written no checkpoint
// after the named one, the named one. The checkpoints of the folder after that one belong to another course of
// training.
func (s *supervisor) resumeFrom() string {
	if s.Named != "" && s.newest() == s.newestBefore {
		return s.Named
	}
	return s.Dir
}

// commandLine returns the command line of the n-th start, which has the token; nil words if the run must end instead.
func (s *supervisor) commandLine(ctx context.Context, n int, token string) (words []string, end End, err error) {
	self, flags, own := s.Program, s.Flags(n == 0 || s.Limit == 0), slices.Clone(s.First)
	if n > 0 && s.resumeFrom() == s.Dir {
		own = []string{"--resume=auto", "--out=" + s.Dir}
	}
	hosts := s.Hosts
	if n > 0 && len(hosts) > 0 {
		hosts = s.answeringHosts(ctx)
		own = append(own, "--allow-changed=workers")
	}
	if n > 0 && s.Limit > 0 {
		left := (s.Limit - time.Since(s.Began)).Truncate(time.Second)
		if left <= 0 {
			return nil, s.stoppedBy("--max-time"), nil
		}
		own = append(own, "--max-time="+left.String())
	}
	if s.askedToEnd() {
		return nil, s.stoppedBy("a signal"), nil
	}
	words = s.launcherFor(hosts)
	if len(words) == 0 {
		if self, err = os.Executable(); err != nil {
			return nil, End{}, err
		}
	}
	return slices.Concat(words, []string{self, "run"}, flags, own, []string{tokenFlag + token, "--", s.File}), End{}, nil
}

// stoppedBy returns the end of a run that was stopped between two starts.
func (s *supervisor) stoppedBy(what string) End {
	if s.newest() == "" {
		return End{codeFailed, "run: stopped by " + what + " between two starts, without a checkpoint"}
	}
	return End{codeStopped, fmt.Sprintf("run: stopped by %s between two starts; continue with --resume %s", what, s.resumeFrom())}
}

// start runs a command to its end, and forwards signals to it. The command has a process group of its own; otherwise
// Ctrl-C would reach it twice, which has another meaning. If this process is killed, the command gets SIGTERM.
func (s *supervisor) start(words []string) (code int, err error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = s.Out, s.Err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-s.Signals:
			s.stopped = s.stopped || sig != syscall.SIGUSR2
			if sig, on := s.forwardAs(sig, time.Now()); on {
				_ = cmd.Process.Signal(sig) // the command may have ended just now
			}
		case err := <-done:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 0, err
			}
			return exitCode(cmd.ProcessState), nil
		}
	}
}

// newest returns the folder of the newest checkpoint, "" if there is none.
func (s *supervisor) newest() string { return Newest(s.Dir) }

// Newest returns the folder of the newest checkpoint of a run folder, "" if there is none.
func Newest(dir string) string {
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) == 0 {
		return ""
	}
	return dirs[0]
}

// describeResume says what the next start resumes from, and how much training is lost.
func (s *supervisor) describeResume(now time.Time) string {
	if dir := s.resumeFrom(); dir != s.Dir {
		return "resuming from " + dir + " again"
	}
	dir := s.newest()
	if dir == "" && s.Replicas {
		return "there is no checkpoint in the run folder; it resumes from replicas in memory, or starts over"
	}
	if dir == "" {
		return "there is no checkpoint yet, so it starts over"
	}
	m, err := checkpoint.Open(dir)
	if err != nil { // the run reports that, and takes another one
		return "resuming from a checkpoint before " + dir
	}
	if s.Replicas {
		dir += " or its replicas"
	}
	text := fmt.Sprintf("resuming from %s, iteration %s", dir, strconv.FormatInt(m.Iteration, 10))
	if lost := now.Sub(m.Written); lost >= 0 { // otherwise the host's clock was set back meanwhile, or another host's differs
		text += fmt.Sprintf("; at most %s of training are lost", lost.Round(100*time.Millisecond))
	}
	return text
}
