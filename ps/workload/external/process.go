package external

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is the child as the system sees it. It leads a group of processes of its own.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the child has ended and was waited for
	read  chan struct{} // closed when nothing more of what it writes can be read
	out   *os.File

	mu     sync.Mutex
	tail   []string // the last lines that it wrote
	reaped bool     // its number may be that of another process by now
}

const (
	tailLinesMax = 12
	lineBytesMax = 4096
	// drainMax is how long the last lines of a child that has ended may take: processes that have left its group may keep its output open.
	drainMax = time.Second
)

// startProcess starts a child that has the other end of the socket. heard gets each line that it writes.
func startProcess(o *Options, end *os.File) (*process, error) {
	name, err := lookUp(o.Command[0])
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{ended: make(chan struct{}), read: make(chan struct{}), out: r}
	p.cmd = &exec.Cmd{Path: name, Args: o.Command, Env: environment(os.Environ(), o), Stdout: w, Stderr: w, ExtraFiles: []*os.File{end},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the system ends the child when the thread that has started it ends
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.reap()
		}
	}()
	err = <-started
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, notStarted(o.Command[0], err)
	}
	go p.hear(o.Log)
	return p, nil
}

// lookUp finds a program as a shell would.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return filepath.Abs(path)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s is not executable; chmod +x it, or name its interpreter first, as in [python3, train.py]", name)
	case errors.Is(err, syscall.EISDIR):
		return "", fmt.Errorf("%s is a folder; give the path of a program", name)
	case strings.Contains(name, "/"):
		return "", fmt.Errorf("%s does not exist; give a path from the folder in which the run was started, or an absolute one", name)
	}
	return "", fmt.Errorf("%s is not found in PATH; install it on all hosts, or give its path", name)
}

func notStarted(name string, err error) error {
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Errorf("%s is no program; name its interpreter first, as in [python3, train.py], or begin it with a line such as "+
			"#!/usr/bin/python3", name)
	}
	if errors.Is(err, fs.ErrNotExist) { // the file itself was found
		return fmt.Errorf("%s cannot be started: what its first line names behind #! does not exist on this host", name)
	}
	return err
}

// ours are the beginnings of variables by which launchers know their ranks. A child with them would take itself for a rank.
var ours = []string{"OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_PMI", "FLUENTPS_CHILD="}

// environment is that of the child.
func environment(all []string, o *Options) (env []string) {
	hasThreads := false
	for _, v := range all {
		isOurs := false
		for _, begin := range ours {
			isOurs = isOurs || strings.HasPrefix(v, begin)
		}
		if !isOurs {
			env = append(env, v)
			hasThreads = hasThreads || strings.HasPrefix(v, "OMP_NUM_THREADS=")
		}
	}
	if o.Threads > 0 && !hasThreads {
		env = append(env, "OMP_NUM_THREADS="+strconv.Itoa(o.Threads))
	}
	const first = 3 // of the descriptors in ExtraFiles
	return append(env, fmt.Sprintf("FLUENTPS_CHILD=fd=%d version=%d", first, Version), "PYTHONUNBUFFERED=1")
}

// hear reads what the child writes.
func (p *process) hear(log func(line string)) {
	defer close(p.read)
	lines := bufio.NewReaderSize(p.out, lineBytesMax)
	for {
		line, _, err := lines.ReadLine() // a longer line comes in parts
		if len(line) > 0 {
			text := strings.ToValidUTF8(string(line), "\ufffd")
			p.mu.Lock()
			if p.tail = append(p.tail, text); len(p.tail) > tailLinesMax {
				p.tail = p.tail[1:]
			}
			p.mu.Unlock()
			if log != nil {
				log(text)
			}
		}
		if err != nil {
			return
		}
	}
}

// lastLines are the last lines that the child wrote. Behind kill they are all there.
func (p *process) lastLines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.tail...)
}

// hasEnded says whether the child ends within a time.
func (p *process) hasEnded(within time.Duration) bool {
	select {
	case <-p.ended:
	case <-time.After(within):
	}
	select { // both may be so
	case <-p.ended:
		return true
	default:
		return false
	}
}

// end says how the child has ended, which it has.
func (p *process) end() string {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return fmt.Sprintf("was killed by %s", unix.SignalName(status.Signal()))
	}
	return fmt.Sprintf("has ended with exit code %d", p.cmd.ProcessState.ExitCode())
}

// reap waits until the child has ended, and ends the rest of its group. Until it is waited for, a child that has ended keeps its number,
// which is that of the group, so no signal can go to another group.
func (p *process) reap() {
	pid := p.cmd.Process.Pid
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.mu.Lock()
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = p.cmd.Wait() // its ProcessState says all
	p.reaped = true
	p.mu.Unlock()
	close(p.ended)
}

// kill ends the child and all processes of its group, and returns when it has ended and all that it wrote is heard.
func (p *process) kill() {
	p.mu.Lock()
	if !p.reaped {
		_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	}
	p.mu.Unlock()
	<-p.ended
	p.drain()
	_ = p.out.Close()
	<-p.read
}

// drain waits for the last lines of a child that has ended, but not for long.
func (p *process) drain() {
	select {
	case <-p.read:
	case <-time.After(drainMax):
	}
}

// activity is what the processes of a child have done so far.
type activity struct {
	ticks   uint64 // of processors
	stopped bool   // the child itself is stopped by a signal
	onDisk  bool   // some process waits for a disk, or a file system in the network
}

// activity reads that of the child and of all processes of its group.
func (p *process) activity() (a activity) {
	group := p.cmd.Process.Pid
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return a
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		s, ok := parseStat(string(text))
		if !ok || s.group != group {
			continue
		}
		a.ticks += s.ticks
		a.onDisk = a.onDisk || s.state == 'D'
		if pid == group {
			a.stopped = s.state == 'T' || s.state == 't'
		}
	}
	return a
}

// stat is a line of /proc/PID/stat.
type stat struct {
	state byte
	group int
	ticks uint64
}

// parseStat reads such a line. The name of the program stands in parentheses, and may itself have some.
func parseStat(text string) (s stat, ok bool) {
	const state, group, user, system = 0, 2, 11, 12 // fields behind the name
	at := strings.LastIndexByte(text, ')')
	if at < 0 {
		return s, false
	}
	f := strings.Fields(text[at+1:])
	if len(f) <= system || len(f[state]) != 1 {
		return s, false
	}
	var err [3]error
	var u, k uint64
	s.group, err[0] = strconv.Atoi(f[group])
	u, err[1] = strconv.ParseUint(f[user], 10, 64)
	k, err[2] = strconv.ParseUint(f[system], 10, 64)
	s.state, s.ticks = f[state][0], u+k
	return s, errors.Join(err[:]...) == nil
}
