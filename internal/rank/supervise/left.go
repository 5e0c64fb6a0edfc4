package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"fluentps/internal/comm/shm"
)

// A launcher that is killed leaves its ranks behind. They stop when they next print something, which may take long, and until
// then they use the processors, the ports and the run folder of the next start.

const (
	// saveTime is how long the processes of a start may go on after their launcher: long enough for a checkpoint of a small run.
	saveTime = 3 * time.Second
	// killTime is how long a killed process may take to end.
	killTime = 2 * time.Second
	lookTime = 20 * time.Millisecond
)

// endLeft ends the processes of a start that its launcher has left behind on this host. It asks them for a checkpoint first.
// Those on other hosts find by themselves that a newer start has the run folder. It returns whether there were some.
func (s *supervisor) endLeft(token string) (some bool) {
	defer func() { // what Open MPI's killed ranks have left in memory
		if err := shm.RemoveScratch(shm.Dir, func(start string) bool { return start == token }); err != nil {
			s.Say(fmt.Sprintf("WARNING: Open MPI has left files in %s: %v", shm.Dir, err))
		}
	}()
	left := processesOf(token)
	if len(left) == 0 {
		return false
	}
	signalAll(left, syscall.SIGUSR1)
	if left = waitFor(token, saveTime); len(left) > 0 {
		signalAll(left, syscall.SIGKILL)
		left = waitFor(token, killTime)
	}
	if len(left) > 0 {
		s.Say(fmt.Sprintf("the job that died has left process %d behind, which does not end", left[0]))
	}
	return true
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended, or belong to another user
	}
}

// waitFor waits until no process of a start is left, and returns those that are after a time.
func waitFor(token string, most time.Duration) (left []int) {
	for end := time.Now().Add(most); ; time.Sleep(lookTime) {
		if left = processesOf(token); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// processesOf lists the processes on this host with the token of a start on their command lines: its ranks, and what started
// them. A killed process has no command line any more.
func processesOf(token string) (pids []int) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, name := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if line, err := os.ReadFile(name); err == nil && hasToken(line, token) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasToken says whether a command line has the flag with a token, as a word or in the text of a shell's -c.
func hasToken(line []byte, token string) bool {
	for {
		_, rest, found := bytes.Cut(line, []byte(tokenFlag+token))
		if !found || len(rest) == 0 {
			return found
		}
		if c := rest[0]; c == 0 || bytes.IndexByte([]byte(" \t\n'\";&|"), c) >= 0 { // else it is a longer token
			return true
		}
		line = rest
	}
}
