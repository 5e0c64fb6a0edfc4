// Package supervise brings a run back whose rank died. MPI ends the whole job then, so the supervisor stands outside: it starts the
// launcher, and starts it again where the job died, so that the run resumes from its newest checkpoint.
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

	"fluentps/ps/checkpoint"
	"fluentps/ps/replica"
	"fluentps/ps/station"
)

// barrenMax is how many times in a row a job may die without a new checkpoint: what would fail at once each time is no
// fault of a host.
const barrenMax = 2

// Options say what is started, and where its traces lie.
type Options struct {
	Program  string                      // this program, as the command line names it
	File     string                      // the configuration
	Flags    func(maxTime bool) []string // of the verb run, with or without --max-time
	Launcher []string                    // empty: the ranks are goroutines of a process
	Hosts    []string                    // of each rank; nil: the launcher knows them
	Restarts int                         // at most
	Replicas bool                        // checkpoints are in the memory of hosts, too

	Dir   string   // the run folder
	First []string // flags of the first start, which say what it resumes from
	Named string   // the one checkpoint that the first start resumes from; "": any

	Limit   time.Duration // of all starts together, from Began on; 0: none
	Began   time.Time
	Signals chan os.Signal
	Out     io.Writer // what the launcher writes goes there and to Err
	Err     io.Writer
	Say     func(text string) // tells the user a line

	Finished func(dir string) bool // whether the run of a folder has ended well, by its own word
}

type supervisor struct {
	Options
	known   string // the newest checkpoint before the first start
	stopped bool   // somebody asked the run to end
	asked   Stages
	fault   int // the code, since the newest checkpoint, of the last start in which a rank was killed or silent; 0: none
}

// End is how a run under a supervisor ended: the exit code, and why it is that one, if the run itself did not say so.
type End struct {
	Code int
	Text string
}

// Run starts the run, and starts it again where it died, until it has ended or was restarted Restarts times. The error says that a
// start was impossible.
func Run(ctx context.Context, o Options) (End, error) {
	s := &supervisor{Options: o}
	if s.Named != "" {
		s.known = s.newest()
	}
	barren := 0
	for n := 0; ; n++ {
		newest, starts, summary := s.newest(), replica.Starts(s.Dir), s.summary()
		words, end, err := s.words(ctx, n)
		if words == nil {
			return end, err
		}
		start := time.Now()
		code, err := s.start(words)
		if errors.As(err, new(*exec.Error)) || errors.As(err, new(*os.PathError)) {
			return End{codeUsage, fmt.Sprintf("run: cannot start %s: %v", words[0], err)}, nil
		}
		if err != nil {
			return End{}, err
		}
		if s.over(code, summary) {
			return End{Code: s.code(code)}, nil
		}
		barren++
		if now := replica.Starts(s.Dir); len(starts) > 0 && len(now) > 1 && now[1] == starts[0] {
			barren = 1 // for the start before had left a checkpoint in memory
		}
		if s.newest() != newest {
			barren, s.fault = 0, 0
		}
		ending := endingOf(code)
		if ending.lost {
			s.fault = ending.code
		}
		died := fmt.Sprintf("the job died after %s with code %d", time.Since(start).Round(100*time.Millisecond), code)
		if code == codeFatal {
			died += ", by a fatal error of a process"
		}
		switch {
		case n == s.Restarts:
			return End{cmp.Or(s.fault, codeFailed), fmt.Sprintf("run: %s, and was restarted as often as --restarts %d says; go on with --resume %s", died, s.Restarts, s.resume())}, nil
		case barren == barrenMax:
			return End{cmp.Or(s.fault, codeFailed), fmt.Sprintf("run: %s, the %dnd time in a row without a new checkpoint: giving up; see the messages above and %s, or write checkpoints more often (checkpoint.every)",
				died, barrenMax, filepath.Join(s.Dir, "logs"))}, nil
		}
		s.Say(fmt.Sprintf("%s; restart %d of %d: %s", died, n+1, s.Restarts, s.from(time.Now())))
	}
}

// resume is what the next start resumes from: the run folder or, as long as the run has written no checkpoint after the
// one that was named, that one. The checkpoints that lie behind it are of another course.
func (s *supervisor) resume() string {
	if s.Named != "" && s.newest() == s.known {
		return s.Named
	}
	return s.Dir
}

// words are the command line of the n-th start; nil where the run ends instead.
func (s *supervisor) words(ctx context.Context, n int) (words []string, end End, err error) {
	self, flags, own := s.Program, s.Flags(n == 0 || s.Limit == 0), slices.Clone(s.First)
	if n > 0 && s.resume() == s.Dir {
		own = []string{"--resume=auto", "--out=" + s.Dir}
	}
	hosts := s.Hosts
	if n > 0 && len(hosts) > 0 {
		hosts = s.remaining(ctx)
		own = append(own, "--allow-changed=workers")
	}
	if n > 0 && s.Limit > 0 {
		left := (s.Limit - time.Since(s.Began)).Truncate(time.Second)
		if left <= 0 {
			return nil, s.stoppedBy("--max-time"), nil
		}
		own = append(own, "--max-time="+left.String())
	}
	if s.ended() {
		return nil, s.stoppedBy("a signal"), nil
	}
	words = s.fill(hosts)
	if len(words) == 0 {
		if self, err = os.Executable(); err != nil {
			return nil, End{}, err
		}
	}
	return slices.Concat(words, []string{self, "run"}, flags, own, []string{"--", s.File}), End{}, nil
}

// stoppedBy ends a run between two starts.
func (s *supervisor) stoppedBy(what string) End {
	if s.newest() == "" {
		return End{codeFailed, "run: stopped by " + what + " between two starts, without a checkpoint"}
	}
	return End{codeStopped, fmt.Sprintf("run: stopped by %s between two starts; go on with --resume %s", what, s.resume())}
}

// start runs a command to its end, and hands signals on to it. The command has a process group of its own, or Ctrl-C would reach
// it twice, which means something else; where this process is killed, the command is told to end.
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
			if sig, on := s.handOn(sig, time.Now()); on {
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

// over says whether the run has ended, and did not just die: it said so itself, or somebody wished it, or it would
// say the same again.
func (s *supervisor) over(code int, before os.FileInfo) bool {
	after := s.summary()
	concluded := after != nil && (before == nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()))
	return s.stopped || concluded || endingOf(code).said
}

// code is the exit code of a run that is over, whose launcher left with one. That a launcher left with 0 is no proof.
func (s *supervisor) code(launcher int) int {
	end := endingOf(launcher)
	switch {
	case launcher == 0 && s.Finished(s.Dir):
		return 0
	case end.said || launcher == station.CodeStall:
		return end.code
	}
	return codeFailed
}

// summary is the file that a run writes last, with a rename; nil where there is none.
func (s *supervisor) summary() os.FileInfo {
	info, err := os.Stat(filepath.Join(s.Dir, "summary.json"))
	if err != nil {
		return nil
	}
	return info
}

// newest is the folder of the newest checkpoint, "" if there is none.
func (s *supervisor) newest() string { return Newest(s.Dir) }

// Newest is the folder of the newest checkpoint of a run folder, "" if there is none.
func Newest(dir string) string {
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) == 0 {
		return ""
	}
	return dirs[0]
}

// from says where the next start resumes, and what is lost.
func (s *supervisor) from(now time.Time) string {
	if dir := s.resume(); dir != s.Dir {
		return "going on from " + dir + " once more"
	}
	dir := s.newest()
	if dir == "" && s.Replicas {
		return "there is no checkpoint in the run folder; it goes on from replicas in memory, or begins again"
	}
	if dir == "" {
		return "there is no checkpoint yet, so it begins again"
	}
	m, err := checkpoint.Open(dir)
	if err != nil { // the run says so, and takes another
		return "going on from a checkpoint before " + dir
	}
	if s.Replicas {
		dir += " or its replicas"
	}
	text := fmt.Sprintf("going on from %s, iteration %s", dir, strconv.FormatInt(m.Iteration, 10))
	if lost := now.Sub(m.Written); lost >= 0 { // else the host's clock was set back meanwhile, or another host's differs
		text += fmt.Sprintf("; at most %s of training are lost", lost.Round(100*time.Millisecond))
	}
	return text
}
