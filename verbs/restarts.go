package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/comm/mpi"
	"fluentps/ps/checkpoint"
	"fluentps/ps/metrics"
	"fluentps/ps/replica"
	"fluentps/ps/resume"
	ps "fluentps/ps/runtime"
)

// run --restarts: when a rank dies, MPI ends the whole job, so whoever brings it back must stand outside. This process
// starts the launcher, and starts it again, to go on from the newest checkpoint, where the job died.

const (
	restartsMax = 1000
	// barrenMax is how many times in a row a job may die without a new checkpoint: what would fail at once each time is no
	// fault of a host.
	barrenMax = 2
)

type supervisor struct {
	c        *cli.Context
	in       *input
	launcher []string // empty: the ranks are goroutines of a process
	hosts    []string // of each rank; nil: the launcher knows them
	dir      string   // the run folder
	first    []string // what the first start says of it
	named    string   // the one checkpoint that the first start goes on from; "": any
	known    string   // the newest checkpoint before the first start
	limit    time.Duration
	began    time.Time
	signals  chan os.Signal
	stopped  bool // somebody asked the run to end
	asked    stages
	fault    int // the code, since the newest checkpoint, of the last start in which a rank was killed or silent; 0: none
}

func supervise(c *cli.Context, began time.Time) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, wishes()...)
	keepPipes()
	s, err := newSupervisor(c, began, signals)
	if err != nil {
		return err
	}
	barren, most := 0, c.Int("restarts")
	for n := 0; ; n++ {
		newest, starts, summary := s.newest(), replica.Starts(s.dir), s.summary()
		words, err := s.words(n)
		if err != nil {
			return err
		}
		start := time.Now()
		code, err := s.start(words)
		if err != nil {
			return err
		}
		if s.over(code, summary) {
			return &exitError{code: s.code(code)}
		}
		barren++
		if now := replica.Starts(s.dir); len(starts) > 0 && len(now) > 1 && now[1] == starts[0] {
			barren = 1 // for the start before had left a checkpoint in memory
		}
		if s.newest() != newest {
			barren, s.fault = 0, 0
		}
		end := endingOf(code)
		if end.lost {
			s.fault = end.code
		}
		died := fmt.Sprintf("the job died after %s with code %d", time.Since(start).Round(100*time.Millisecond), code)
		if code == codeFatal {
			died += ", by a fatal error of a process"
		}
		switch {
		case n == most:
			return &exitError{cmp.Or(s.fault, codeFailed), fmt.Sprintf("run: %s, and was restarted as often as --restarts %d says; go on with --resume %s", died, most, s.resume())}
		case barren == barrenMax:
			return &exitError{cmp.Or(s.fault, codeFailed), fmt.Sprintf("run: %s, the %dnd time in a row without a new checkpoint: giving up; see the messages above and %s, or write checkpoints more often (checkpoint.every)",
				died, barrenMax, filepath.Join(s.dir, "logs"))}
		}
		printError(c.App.ErrWriter, fmt.Sprintf("%s; restart %d of %d: %s", died, n+1, most, s.from(time.Now())))
	}
}

func newSupervisor(c *cli.Context, began time.Time, signals chan os.Signal) (*supervisor, error) {
	const example = "fluentps run CONFIG --restarts 3 -- mpirun -n 6, or --local 6 in place of a launcher"
	n, local := c.Int("restarts"), c.IsSet("local")
	s := &supervisor{c: c, began: began, signals: signals}
	if c.NArg() > 0 {
		s.launcher = c.Args().Slice()[1:]
	}
	switch {
	case n < 0 || n > restartsMax:
		return nil, usagef("run: --restarts is %d, must be 0 to %d", n, restartsMax)
	case mpi.UnderLauncher(os.Getenv):
		return nil, usagef("run: --restarts starts the launcher, and not the launcher it: %s", example)
	case c.NArg() == 0 || local == (len(s.launcher) > 0):
		return nil, usagef("run: --restarts needs to know what starts the ranks: %s", example)
	}
	if err := resumable(c); err != nil {
		return nil, err
	}
	var err error
	if s.limit, err = timeLimit(c); err != nil {
		return nil, err
	}
	if err := s.takeHosts(); err != nil {
		return nil, err
	}
	s.in = readInput(c, c.Args().First())
	if err := s.in.problem(); err != nil {
		return nil, err
	}
	if n > 0 {
		warnOfBeginnings(c, s.in)
	}
	return s, s.takeFolder()
}

// warnOfBeginnings tells whoever asks for restarts that there will be nothing to go on from.
func warnOfBeginnings(c *cli.Context, in *input) {
	if q := &in.cfg.Checkpoint; !q.Periodic() || q.Keep == 0 {
		printError(c.App.ErrWriter, "no checkpoints are written while training goes on, so that a restart begins again: set checkpoint.every")
	}
}

// takeFolder settles the run folder, so that every start has the same.
func (s *supervisor) takeFolder() error {
	out, from := s.c.String("out"), s.c.String("resume")
	mode := "local"
	if len(s.launcher) > 0 {
		mode = "mpi"
	}
	id, err := jobID(mode)
	if err != nil {
		return err
	}
	spec := metrics.FolderSpec{Root: "runs", Name: s.in.cfg.Name, Now: s.began, JobID: id, Out: out}
	if from != "" && from != resume.Auto {
		s.dir, s.first = from, []string{"--resume=" + from}
		if root, _, one := resume.OneCheckpoint(from); one {
			s.dir, s.named = filepath.Dir(root), from
			s.known = s.newest()
		}
		return nil
	}
	if from == resume.Auto {
		s.first = []string{"--resume=auto"}
	}
	if s.dir = out; out == "" && from == resume.Auto {
		folders, others := metrics.RunFolders(spec)
		if others > 0 {
			printError(s.c.App.ErrWriter, metrics.OthersText(spec, others))
		}
		i := slices.IndexFunc(folders, func(dir string) bool { s.dir = dir; return s.newest() != "" })
		if i < 0 {
			s.dir = ""
		}
	}
	if s.dir == "" {
		f, err := metrics.CreateRunFolder(spec)
		if err != nil {
			return err
		}
		s.dir = f.Dir
		if err := errors.Join(f.Remove("logs"), f.Close()); err != nil { // the run takes only an empty folder
			return err
		}
	}
	s.first = append(s.first, "--out="+s.dir)
	return nil
}

// resume is what the next start goes on from: the run folder or, as long as the run has written no checkpoint behind it, the
// one that was named, for those after that one are of another course.
func (s *supervisor) resume() string {
	if s.named != "" && s.newest() == s.known {
		return s.named
	}
	return s.dir
}

// words are the command line of the n-th start.
func (s *supervisor) words(n int) ([]string, error) {
	self, own := os.Args[0], slices.Clone(s.first)
	if n > 0 && s.resume() == s.dir {
		own = []string{"--resume=auto", "--out=" + s.dir}
	}
	hosts := s.hosts
	if n > 0 && len(hosts) > 0 {
		hosts = s.remaining()
		own = append(own, "--allow-changed=workers")
	}
	if n > 0 && s.limit > 0 {
		left := (s.limit - time.Since(s.began)).Truncate(time.Second)
		if left <= 0 {
			return nil, s.stoppedBy("--max-time")
		}
		own = append(own, "--max-time="+left.String())
	}
	if s.ended() {
		return nil, s.stoppedBy("a signal")
	}
	words := s.fill(hosts)
	if len(words) == 0 {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return slices.Concat(words, []string{self, "run", dashes(supervisedFlag)}, s.passed(n), own, []string{"--", s.in.file}), nil
}

// ended says whether somebody asked the run to end between two starts. There is no state to print then.
func (s *supervisor) ended() bool {
	for len(s.signals) > 0 {
		if <-s.signals != syscall.SIGUSR2 {
			return true
		}
	}
	return false
}

// stoppedBy ends a run between two starts.
func (s *supervisor) stoppedBy(what string) error {
	if s.newest() == "" {
		return &exitError{codeFailed, "run: stopped by " + what + " between two starts, without a checkpoint"}
	}
	return &exitError{ps.CodeAgain, fmt.Sprintf("run: stopped by %s between two starts; go on with --resume %s", what, s.resume())}
}

// passed are the flags of this command line that a start gets too.
func (s *supervisor) passed(n int) (words []string) {
	own := []string{"restarts", "hosts", "resume", "out", supervisedFlag}
	if n > 0 && s.limit > 0 {
		own = append(own, "max-time") // what is left of it is another
	}
	for _, f := range s.c.Command.Flags {
		name := f.Names()[0]
		if !s.c.IsSet(name) || slices.Contains(own, name) {
			continue
		}
		if _, many := f.(*cli.StringSliceFlag); many {
			for _, v := range s.c.StringSlice(name) {
				words = append(words, dashes(name)+"="+v)
			}
			continue
		}
		words = append(words, fmt.Sprintf("%s=%v", dashes(name), s.c.Value(name)))
	}
	return words
}

// start runs a command to its end, and hands signals on to it. It has a process group of its own, or Ctrl-C would reach
// it twice, which means something else; where this process is killed, it is told to end.
func (s *supervisor) start(words []string) (code int, err error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = fileOf(s.c.App.Writer), s.c.App.ErrWriter
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return 0, usagef("run: cannot start %s: %v", words[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-s.signals:
			s.stopped = s.stopped || sig != syscall.SIGUSR2
			if sig, on := s.handOn(sig, time.Now()); on {
				_ = cmd.Process.Signal(sig) // it may have ended just now
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

// handOn is the signal that the launcher gets. Open MPI's kills its ranks a second after SIGTERM, and at once after two, of
// which a batch system that signals every process sends it one, and after SIGHUP. So the first wish to end goes on as SIGUSR1,
// which means the same to the ranks and leaves them their time.
func (s *supervisor) handOn(sig os.Signal, now time.Time) (as os.Signal, on bool) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT:
	case syscall.SIGHUP:
		return syscall.SIGUSR1, true
	default:
		return sig, true
	}
	switch s.asked.next(now) {
	case 0:
		return nil, false
	case 1:
		return syscall.SIGUSR1, true
	}
	return sig, true
}

// exitCode is what a shell calls $?.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return state.ExitCode()
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
	case launcher == 0 && finished(s.dir):
		return 0
	case end.said || launcher == ps.CodeStall:
		return end.code
	}
	return codeFailed
}

// summary is the file that a run writes last, with a rename; nil where there is none.
func (s *supervisor) summary() os.FileInfo {
	info, err := os.Stat(filepath.Join(s.dir, "summary.json"))
	if err != nil {
		return nil
	}
	return info
}

// newest is the folder of the newest checkpoint, "" if there is none.
func (s *supervisor) newest() string {
	dirs, err := checkpoint.List(filepath.Join(s.dir, checkpoint.Folder))
	if err != nil || len(dirs) == 0 {
		return ""
	}
	return dirs[0]
}

// from says where the next start goes on, and what is lost.
func (s *supervisor) from(now time.Time) string {
	if dir := s.resume(); dir != s.dir {
		return "going on from " + dir + " once more"
	}
	dir := s.newest()
	if dir == "" && s.in.cfg.Checkpoint.Replica > 0 {
		return "there is no checkpoint in the run folder; it goes on from replicas in memory, or begins again"
	}
	if dir == "" {
		return "there is no checkpoint yet, so it begins again"
	}
	m, err := checkpoint.Open(dir)
	if err != nil { // the run says so, and takes another
		return "going on from a checkpoint before " + dir
	}
	if s.in.cfg.Checkpoint.Replica > 0 {
		dir += " or its replicas"
	}
	text := fmt.Sprintf("going on from %s, iteration %s", dir, strconv.FormatInt(m.Iteration, 10))
	if lost := now.Sub(m.Written); lost >= 0 { // else the host's clock was set back meanwhile, or another host's differs
		text += fmt.Sprintf("; at most %s of training are lost", lost.Round(100*time.Millisecond))
	}
	return text
}
