//go:build mpi

package net

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/comm/mpi/mpitest"
)

// hang bounds every wait: a wait that takes longer never ends.
const hang = 2 * time.Minute

// await waits until there returns true. It fails the test after hang.
func await(t *testing.T, what string, there func() bool) {
	t.Helper()
	for start := time.Now(); !there(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > hang {
			t.Fatalf("%s: not within %v", what, hang)
		}
	}
}

// endless is a job over h1 to h3 that trains until it gets a signal.
type endless struct {
	dir, said string // its run folder, and the file with its output
	pids      []int  // of its ranks
	ended     chan error
}

// begin starts an endless job, and returns when it has three checkpoints.
func begin(t *testing.T, program, file, limit string) *endless {
	t.Helper()
	dir := t.TempDir()
	j := &endless{dir: filepath.Join(dir, "out"), said: filepath.Join(dir, "said"), ended: make(chan error, 1)}
	out, err := os.Create(j.said)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"mpirun", "--map", "h1,h2,h3"}
	if mpitest.Built.Name == mpitest.MPICH.Name {
		args = append(args, "--mpich")
	}
	args = append(args, program, "run", "--out", j.dir, "--set", "cluster.servers=1", "--set", "train.stop={time: 1h}",
		"--set", "evaluate.every_epochs=0",
		"--set", "checkpoint.every=100ms", "--set", "stall.peer="+limit, file)
	cmd := exec.Command("./hosts.sh", args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	go func() { j.ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() }) // the launcher may wait for a host that is cut off; the processes on the hosts end with the hosts
	await(t, "three checkpoints", func() bool { return len(j.checkpoints(t)) > 2 })
	for _, r := range read[runInfo](t, filepath.Join(j.dir, "run.json")).Ranks {
		j.pids = append(j.pids, r.PID)
	}
	return j
}

func (j *endless) checkpoints(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(j.dir, "checkpoints", "0*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return dirs
}

func cable(t *testing.T, host, state string) {
	t.Helper()
	if code, said := hosts("exec", host, "ip", "link", "set", "eth0", state); code != 0 {
		t.Fatalf("%s %s: %s", host, state, said)
	}
}

// A cable that is out for a while delays a run, but does not end it.
func TestACableThatIsOutForAWhileEndsNothing(t *testing.T) {
	program, file := binary(t), written(t)
	up(t, "3", "none")
	j := begin(t, program, file, "1m")
	cable(t, "h3", "down")
	time.Sleep(time.Second)
	last := j.checkpoints(t)
	cable(t, "h3", "up")
	await(t, "three more checkpoints", func() bool {
		now := j.checkpoints(t)
		return len(now) > 0 && filepath.Base(now[len(now)-1]) >= fmt.Sprintf("%012d", number(t, last)+3)
	})
	if err := syscall.Kill(j.pids[0], syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-j.ended; !errors.As(err, &exit) || exit.ExitCode() != 75 {
		said, _ := os.ReadFile(j.said)
		t.Errorf("%v, want code 75\n%s", err, said)
	}
}

func number(t *testing.T, dirs []string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(strings.TrimLeft(filepath.Base(dirs[len(dirs)-1]), "0"), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A cable that stays out ends all ranks on both sides of it, whatever the launcher does. An error names the silent rank.
func TestACableThatStaysOutEndsAllRanks(t *testing.T) {
	program, file := binary(t), written(t)
	up(t, "3", "none")
	j := begin(t, program, file, "2s")
	cable(t, "h3", "down")
	await(t, "the end of all ranks", func() bool {
		return !slices.ContainsFunc(j.pids, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
	said, err := os.ReadFile(j.said)
	if want := "no sign of life for 2s, the limit of stall.peer, of rank 2, host h3 (w1)"; err != nil ||
		!strings.Contains(string(said), want) {
		t.Errorf("%v; no rank said %q:\n%s", err, want, said)
	}
}

// written writes the configuration to a file and returns its name.
func written(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
