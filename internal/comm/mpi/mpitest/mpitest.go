// Package mpitest starts the ranks of tests under the launcher of the MPI that the tests are built for: Open MPI's, or
// MPICH's with the tag mpich.
package mpitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Deadline of one launch: only a hang takes this long.
const Deadline = 2 * time.Minute

// MPI is one of the libraries that tests know.
type MPI struct {
	Name      string           // the beginning of the name in its mpi.h and in mpi.Library
	WorldSize string           // the environment variable in which its launcher gives the number of ranks
	MaxRanks  int              // the most ranks that reliably end if they outnumber the cores
	launchers []string         // the first one that belongs to Name is used
	version   string           // part of the output of its launcher's --version
	options   []string         // for more ranks than cores, which must not be bound to one core each
	overTCP   []string         // options, or environment variables if they have a "="
	end       []syscall.Signal // signals at which its launcher ends ranks that ignore signals
}

var (
	// OpenMPI: Debian's name beside another MPI is tried first, then the usual one.
	OpenMPI = MPI{
		Name: "Open MPI", WorldSize: "OMPI_COMM_WORLD_SIZE", MaxRanks: 64, launchers: []string{"mpirun.openmpi", "mpirun"},
		version: "open", options: []string{"--oversubscribe", "--bind-to", "none"},
		overTCP: []string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"},
		end:     []syscall.Signal{syscall.SIGTERM},
	}
	// MPICH cannot yield the core while it waits, and was seen to hang with more than 4 ranks on 2 cores.
	MPICH = MPI{
		Name: "MPICH", WorldSize: "PMI_SIZE", MaxRanks: 4, launchers: []string{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"},
		version: "hydra", overTCP: []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"},
		end: []syscall.Signal{syscall.SIGINT, syscall.SIGINT},
	}
)

// Ranks returns n, limited to the ranks that reliably end.
func (m MPI) Ranks(n int) int { return min(n, m.MaxRanks) }

// Line returns the command line that starts n ranks of a program.
func (m MPI) Line(n int, program ...string) ([]string, error) {
	for _, name := range m.launchers {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		said, err := exec.Command(path, "--version").CombinedOutput()
		if err == nil && strings.Contains(strings.ToLower(string(said)), m.version) {
			return slices.Concat([]string{path, "-n", strconv.Itoa(n)}, m.options, program), nil
		}
	}
	return nil, fmt.Errorf("no launcher of %s on this machine, looked for %s", m.Name, strings.Join(m.launchers, ", "))
}

// Env lets root start ranks; Open MPI requires it, and the others ignore it.
func Env() []string {
	return []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
}

// Job is one launch.
type Job struct {
	Ranks   int
	OverTCP bool // as between hosts, with other eager limits and another order of completion
	Env     []string
	Program []string
}

// Run starts the job and returns the launcher's exit code and all output. It skips the test if there is no launcher,
// and fails it if ranks still run after Deadline.
func (m MPI) Run(t testing.TB, j Job) (code int, output string) {
	t.Helper()
	var env, options []string
	if j.OverTCP {
		for _, o := range m.overTCP {
			if strings.Contains(o, "=") {
				env = append(env, o)
			} else {
				options = append(options, o)
			}
		}
	}
	line, err := m.Line(j.Ranks, append(options, j.Program...)...)
	if err != nil {
		t.Skipf("%v: the tests over MPI did not run", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	// Simultaneous launches must not share Open MPI's session folder: the first one to end removes it.
	cmd.Env = slices.Concat(os.Environ(), Env(), env, j.Env, []string{"TMPDIR=" + t.TempDir()})
	cmd.Cancel = func() error { return end(cmd.Process, m.end) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s still ran after %v:\n%s", strings.Join(line, " "), Deadline, out.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", line[0], err, out.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// end asks a launcher to end its ranks, which SIGKILL would leave running.
func end(launcher *os.Process, signals []syscall.Signal) (err error) {
	for _, s := range signals {
		err = errors.Join(err, launcher.Signal(s))
		time.Sleep(100 * time.Millisecond) // two signals in quick succession may merge into one
	}
	return err
}

// smallVar names the folder of a test that runs again in a mount namespace of its own, on a file system made for it.
const smallVar = "FLUENTPS_TEST_SMALL"

// OnSmallDisk runs the rest of a test in another process, in a mount namespace of its own, in which a folder is a file
// system of kib KiB: the folder on, or, if on is "", a folder of the test's own. In that process it returns the folder;
// in this one it returns "" when the other has ended.
func OnSmallDisk(t testing.TB, on string, kib int) (dir string) {
	t.Helper()
	if dir := os.Getenv(smallVar); dir != "" {
		return dir
	}
	// A user who is not root becomes root in a user namespace, if the system permits that.
	unshare := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	if dir = on; dir == "" {
		dir = t.TempDir()
	}
	mount := fmt.Sprintf(`mount -t tmpfs -o size=%dk small "$0"`, kib)
	if out, err := exec.Command(unshare[0], append(unshare[1:], "sh", "-c", mount, dir)...).CombinedOutput(); err != nil {
		t.Skipf("no mount namespace on this machine, so the test on a full file system did not run: %v %s", err, out)
	}
	cmd := exec.Command(unshare[0],
		append(unshare[1:], "sh", "-c", mount+` && exec "$@"`, dir, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), smallVar+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("on a file system of %d KiB: %v\n%s", kib, err, out)
	}
	return ""
}
