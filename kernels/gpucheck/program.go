package gpucheck

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program starts each check as a process: this program again, which learns from CheckVar what to do.
type Program struct {
	Path string
	Env  []string // in addition to that of this process
}

// Grace is how long a process that was killed may take to go, and its pipes to empty.
const Grace = 2 * time.Second

// Start runs a check. Its process leads a group, and the group is killed when the budget is spent, and when the process has ended:
// what it started ends with it. A signal that ends this process ends the group first, because no terminal reaches it.
// A process that the system cannot end, because it hangs in a driver, is left behind.
func (p Program) Start(c Check, sizes Sizes, budget time.Duration, emit func(Row)) Ending {
	cmd := exec.Command(p.Path)
	cmd.Env = append(append(os.Environ(), p.Env...), CheckVar+"="+c.Name, budgetVar+"="+budget.String())
	if sizes.Emulated {
		cmd.Env = append(cmd.Env, emulatedVar+"=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // the latter for a SIGKILL of this process
	out, outEnd, err := os.Pipe()
	if err != nil {
		return Ending{Err: err}
	}
	errs, errsEnd, err := os.Pipe()
	if err != nil {
		return Ending{Err: err}
	}
	cmd.Stdout, cmd.Stderr = outEnd, errsEnd
	defer out.Close()
	defer errs.Close()
	spent := time.NewTimer(budget)
	defer spent.Stop()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	err = cmd.Start()
	outEnd.Close()
	errsEnd.Close()
	if err != nil {
		return Ending{Err: err}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	rows := make(chan Row)
	var said tail
	go func() {
		defer close(rows)
		readRows(out, rows, &said)
	}()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(&said, errs)
	}()
	ending := follow(cmd.Process.Pid, until{spent.C, signals}, ended, rows, drained, emit)
	ending.Stderr = said.String()
	return ending
}

// until is what ends a process early.
type until struct {
	spent   <-chan time.Time
	signals <-chan os.Signal
}

// follow passes rows on until the process has ended and its pipes are empty, or it must end.
func follow(pid int, end until, ended <-chan error, rows <-chan Row, drained <-chan struct{}, emit func(Row)) (ending Ending) {
	var grace <-chan time.Time
	last := func() { // nothing of the group runs on
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		grace = time.After(Grace)
	}
	for rows != nil || ended != nil || drained != nil {
		select {
		case row, more := <-rows:
			if !more {
				rows = nil
				continue
			}
			emit(row)
		case <-drained:
			drained = nil
		case err := <-ended:
			ended = nil
			if !ending.Over && ending.Stopped == nil {
				ending.Err = err
			}
			last()
		case ending.Stopped = <-end.signals:
			last()
		case <-end.spent:
			if ended == nil {
				continue // only its pipes are still open
			}
			ending.Over = true
			last()
		case <-grace:
			return ending
		}
	}
	return ending
}

// readRows reads rows, one a line. Lines that are no rows are for the reader of a failure.
func readRows(from io.Reader, rows chan<- Row, said io.Writer) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		var row Row
		if json.Unmarshal([]byte(line), &row) == nil && row.Name != "" && row.Outcome != "" {
			rows <- row
		} else if strings.TrimSpace(line) != "" {
			fmt.Fprintln(said, strings.TrimRight(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

// tail keeps the end of a text.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

const (
	tailBytes = 4000
	tailLines = 30
)

func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
