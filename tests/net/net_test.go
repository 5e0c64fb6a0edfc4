//go:build mpi

package net

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/comm/mpi/mpitest"
)

const (
	state     = "/run/fluentps-net"
	cannot    = 77               // exit code of hosts.sh if the machine does not permit hosts
	patience  = 15 * time.Second // for events that happen within a second
	othersMax = 300              // seconds to wait for the hosts of another process: tests/slurm may run at the same time
)

const config = `
name: hosts
seed: 3
cluster: {servers: 2}
data: {set: generated, rows: 640, test_rows: 100, features: 30, classes: 5}
model: {name: mlp, layers: [64, 16]}
train:
  batch_per_worker: 8
  optimizer: {name: momentum, lr: 0.05, momentum: 0.9}
  stop: {updates: 30}
sync:
  - {match: "*", scheme: bsp}
`

// hosts runs the script; code is its exit code.
func hosts(args ...string) (code int, said string) {
	out, err := exec.Command("./hosts.sh", args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	} else if err != nil {
		return -1, err.Error()
	}
	return 0, string(out)
}

// up makes hosts for the rest of the test. It skips the test if the machine does not permit hosts.
func up(t *testing.T, args ...string) {
	t.Helper()
	code, said := hosts(append([]string{"up", "--wait", strconv.Itoa(othersMax)}, args...)...)
	if code == cannot {
		t.Skipf("no hosts on this machine: the test over them did not run: %s", said)
	}
	if code != 0 {
		t.Fatalf("hosts.sh up %v: code %d: %s", args, code, said)
	}
	t.Cleanup(func() {
		if !ours(os.Getpid()) {
			return // the hosts belonged to another process
		}
		if code, said := hosts("down"); code != 0 || ours(os.Getpid()) {
			t.Errorf("hosts.sh down: code %d: %s", code, said)
		}
	})
}

// ours says whether the current hosts belong to a process. Other processes may be waiting to make theirs.
func ours(owner int) bool {
	data, err := os.ReadFile(filepath.Join(state, "owner"))
	return err == nil && strings.HasPrefix(string(data), fmt.Sprintf("%d ", owner))
}

// binary builds the program. It lists the folders of the sources, because the cached result of `go test` depends on them.
func binary(t *testing.T) string {
	t.Helper()
	for _, top := range []string{"cmd", "internal", "kernels", "ps"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"hosts.sh", "rsh.sh"} {
		if _, err := os.ReadFile(script); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "fluentps")
	if out, err := exec.Command("go", "build", "-tags", mpitest.Tags, "-o", file, "fluentps/cmd/fluentps").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return file
}

func read[T any](t *testing.T, file string) (v T) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type summary struct {
	ParametersSHA256 string `json:"parameters_sha256"`
	Servers, Workers int
	Finished         string
}

type runInfo struct {
	Ranks []struct {
		Host, Role string
		PID        int
	}
}

// BSP over four hosts gives the bits of BSP in one process. Each rank runs on the host that the map says.
func TestBSPOverHosts(t *testing.T) {
	program := binary(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "hosts.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	up(t, "4", "200mbit")
	local, far := filepath.Join(dir, "local"), filepath.Join(dir, "far")
	if out, err := exec.Command(program, "run", "--local", "4", "--out", local, file).CombinedOutput(); err != nil {
		t.Fatalf("run --local: %v\n%s", err, out)
	}
	order := []string{"h3", "h1", "h4", "h2"}
	args := []string{"mpirun", "--map", strings.Join(order, ",")}
	if mpitest.Built.Name == mpitest.MPICH.Name {
		args = append(args, "--mpich")
	}
	limited := slices.Concat([]string{"120", "./hosts.sh"}, args, []string{program, "run", "--out", far, file})
	if out, err := exec.Command("timeout", limited...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", limited, err, out)
	}
	want, got := read[summary](t, local+"/summary.json"), read[summary](t, far+"/summary.json")
	if got != want || got.Servers != 2 || got.Workers != 2 || got.Finished != "ok" || len(got.ParametersSHA256) != 64 {
		t.Errorf("over hosts %+v, in one process %+v", got, want)
	}
	var on []string
	for _, r := range read[runInfo](t, far+"/run.json").Ranks {
		on = append(on, r.Host)
	}
	if !slices.Equal(on, order) {
		t.Errorf("the ranks ran on %v, the map says %v", on, order)
	}
}

func TestLinksHaveTheirRates(t *testing.T) {
	up(t, "2", "200mbit")
	if code, said := hosts("rate", "h2", "50mbit"); code != 0 {
		t.Fatalf("rate: %s", said)
	}
	for host, rate := range map[string]string{"h1": "rate 200Mbit", "h2": "rate 50Mbit"} {
		_, said := hosts("exec", host, "sh", "-c", "hostname; tc qdisc show dev eth0")
		if !strings.HasPrefix(said, host+"\n") || !strings.Contains(said, rate) {
			t.Errorf("%s has %q, want its name and %s", host, said, rate)
		}
	}
	_, said := hosts("exec", "head", "tc", "qdisc", "show", "dev", "eth0")
	if strings.Contains(said, "rate") {
		t.Errorf("head has %q, want no rate", said)
	}
}

func TestHostsAreOneUsers(t *testing.T) {
	up(t, "1", "none")
	if code, said := hosts("up", "1", "none"); code != 1 || !strings.Contains(said, fmt.Sprintf("up already, of process %d ", os.Getpid())) {
		t.Errorf("second up: code %d: %s", code, said)
	}
	if code, said := hosts("down", "--owner", strconv.Itoa(os.Getppid())); code != 1 || !ours(os.Getpid()) ||
		!strings.Contains(said, "they are the hosts of process") {
		t.Errorf("down by another: code %d: %s", code, said)
	}
	if code, said := hosts("exec", "h2", "true"); code != 1 || !strings.Contains(said, "there is no host h2; there are head h1") {
		t.Errorf("exec on h2: code %d: %s", code, said)
	}
}

// When the owner is killed, the hosts end, and so do the processes on them.
func TestHostsEndWithTheirOwner(t *testing.T) {
	owner := exec.Command("sleep", "1000")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer owner.Wait()
	defer owner.Process.Kill()
	up(t, "--owner", strconv.Itoa(owner.Process.Pid), "2", "none")
	if !ours(owner.Process.Pid) {
		t.Fatal("the hosts are not the owner's")
	}
	on := exec.Command("./hosts.sh", "exec", "h2", "sh", "-c", "echo here; exec sleep 1000")
	out, err := on.StdoutPipe()
	if err == nil {
		err = on.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- on.Wait() }()
	owner.Process.Kill()
	owner.Wait()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the process on h2 ended by itself")
		}
	case <-time.After(patience):
		on.Process.Kill()
		t.Errorf("the process on h2 still runs %v after the owner was killed", patience)
	}
	for start := time.Now(); ours(owner.Process.Pid); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("the hosts are there %v after their owner was killed", patience)
		}
	}
}

func TestOnlyRootMayMakeHosts(t *testing.T) {
	cmd := exec.Command("/proc/self/cwd/hosts.sh", "up", "1", "none")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || cmd.ProcessState.ExitCode() == 126 { // 126: a shell that may not read it
		t.Skip("this folder is closed to other users: the script could not be started as one of them")
	}
	if cmd.ProcessState.ExitCode() != cannot || !strings.Contains(string(out), "only root can") {
		t.Errorf("as a user: %v: %s", err, out)
	}
}
