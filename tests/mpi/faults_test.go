//go:build mpi

package mpi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/comm/shm"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/runtime"
)

// faulty runs a job that would train for an hour. When the run folder has so many checkpoints, it calls fault with the processes of
// the ranks. It returns the exit code of the launcher, and the output.
func faulty(t *testing.T, ranks int, dir string, checkpoints int64, fault func(pids []int), set ...string) (code int, said string) {
	t.Helper()
	job, err := json.Marshal(map[string]any{"Out": filepath.Join(t.TempDir(), "summary.json"),
		"Sets": [][]string{append([]string{"train.stop={time: 1h}"}, set...)}, "Dir": dir})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
			if last := fmt.Sprintf("%012d", checkpoints); err != nil || len(dirs) > 0 && filepath.Base(dirs[0]) >= last {
				fault(processes(dir))
				return
			}
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return mpitest.Built.Run(t, mpitest.Job{Ranks: ranks, Env: []string{childVar + "=" + string(job)}, Program: []string{os.Args[0]}})
}

// interruptAtSignal requests a stop when the process gets a signal.
func interruptAtSignal() <-chan string {
	signals, names := make(chan os.Signal, 1), make(chan string, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		<-signals
		names <- "SIGUSR1"
	}()
	return names
}

// processes returns the processes of the ranks of a run, from the rank map in run.json.
func processes(dir string) (pids []int) {
	var info struct {
		Ranks []struct{ PID int }
	}
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err != nil {
		panic(err) // run.json exists before the first checkpoint
	}
	for _, r := range info.Ranks {
		pids = append(pids, r.PID)
	}
	return pids
}

// resumes fails the test unless the run in a folder resumes from its newest checkpoint, and ends with the bits of a run without
// faults.
func resumes(t *testing.T, ranks int, dir string, set ...string) {
	t.Helper()
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("checkpoints %v, %v", dirs, err)
	}
	m, err := checkpoint.Open(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	set = append(set, fmt.Sprintf("train.stop={updates: %d}", m.Iteration+25))
	want := inProcess(t, ranks, set...)
	got, _ := partOverMPI(t, ranks, dir, dir, 0, set...)
	if got.ParametersSHA256 != want.ParametersSHA256 || got.Resumed == nil || got.Resumed.Checkpoint != dirs[0] {
		t.Errorf("sha256 %s, resumed %+v from %s; want %s", got.ParametersSHA256, got.Resumed, dirs[0], want.ParametersSHA256)
	}
}

// A killed rank ends the job with a code that no script takes for success, and the run resumes from the newest checkpoint.
func TestAKilledRankEndsTheJobAndTheRunGoesOn(t *testing.T) {
	ranks := mpitest.Built.Ranks(6)
	set := []string{"checkpoint={every: 50ms}", "evaluate.every_epochs=0"}
	for _, victim := range []int{0, 1, ranks - 1} { // the server that leads, another, a worker
		t.Run(fmt.Sprint("rank ", victim), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			code, said := faulty(t, ranks, dir, 3, func(pids []int) { syscall.Kill(pids[victim], syscall.SIGKILL) }, set...)
			if slices.Contains([]int{runtime.CodeOK, runtime.CodeStall, runtime.CodeAgain}, code) {
				t.Errorf("code %d\n%s", code, said)
			}
			resumes(t, ranks, dir, set...)
		})
	}
}

// A rank that is stopped for good, and that MPI itself waits for, ends the job by its silence, and the run resumes. If the machine
// lets no rank run for as long as stall.peer, other ranks are silent, too. Then the test tries again with a longer limit.
func TestAStoppedRankEndsTheJobAndTheRunGoesOn(t *testing.T) {
	ranks := mpitest.Built.Ranks(5)
	for _, limit := range []string{"2s", "10s", "50s"} {
		set := []string{"checkpoint={every: 50ms}", "evaluate.every_epochs=0", "stall.peer=" + limit}
		dir := filepath.Join(t.TempDir(), "out")
		code, said := faulty(t, ranks, dir, 3, func(pids []int) { syscall.Kill(pids[ranks-1], syscall.SIGSTOP) }, set...)
		silent := fmt.Sprintf("no sign of life for %s, the limit of stall.peer, of rank ", limit)
		if code == runtime.CodeStall && !strings.Contains(said, silent+fmt.Sprintf("%d, host here", ranks-1)) &&
			strings.Contains(said, silent) && limit != "50s" {
			t.Logf("other ranks were silent for %s:\n%s", limit, said)
			continue
		}
		if want := silent + fmt.Sprintf("%d, host here", ranks-1); code != runtime.CodeStall || !strings.Contains(said, want) {
			t.Errorf("code %d, want %d, and %q in\n%s", code, runtime.CodeStall, want, said)
		}
		resumes(t, ranks, dir, set...)
		return
	}
}

// fullFor is how long the disk is full. Records every 0.1 s fill the last page of the file, 4 KiB, in less time.
const fullFor = 3 * time.Second

// On a full disk training continues with a warning. Data that could not be saved are nowhere taken for saved: a run that is stopped
// exits with code 1, and no line of the metrics is torn. When there is room again, the run resumes from the last checkpoint that was
// written.
func TestAFullDiskCostsNothingThatWasSaved(t *testing.T) {
	disk := mpitest.OnSmallDisk(t, "", 2048)
	if disk == "" {
		return
	}
	ranks := mpitest.Built.Ranks(5)
	set := []string{"checkpoint={every: 50ms}", "evaluate.every_epochs=0", "metrics.interval=0.1s"}
	dir := filepath.Join(disk, "out")
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	code, said := faulty(t, ranks, dir, 3, func(pids []int) {
		for from := time.Now(); time.Since(from) < fullFor; time.Sleep(time.Millisecond) {
			for full := false; !full; { // also fills the space that the run frees
				_, err := filler.Write(make([]byte, 100))
				full = err != nil
			}
		}
		syscall.Kill(pids[0], syscall.SIGUSR1)
	}, set...)
	if code != runtime.CodeFailed {
		t.Errorf("code %d, want %d", code, runtime.CodeFailed)
	}
	for _, want := range []string{
		"WARN: no checkpoint: no space or quota left; free some, or set checkpoint.keep: 0",
		"; the newest is " + dir + "/checkpoints/0",
		"WARN: left out, and training goes on: metrics: write record: write " + dir + "/metrics.",
		"no checkpoint to resume from, so exit code 1 in place of 75: it could not be written; the newest is",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	records, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	for line := range strings.Lines(string(records)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a record is torn: %q", line)
		}
	}
	if err != nil || len(records) == 0 {
		t.Errorf("records %q, %v", records, err)
	}
	resumes(t, ranks, dir, set...)
}

// Two jobs that start at the same time, on a host with shared memory for only one of them, both end with the bits of a run without
// shared memory: ranks that find no room send messages.
func TestTwoJobsWithSharedMemoryForOne(t *testing.T) {
	const pairs = 3
	set := []string{"cluster.servers=1", "model.layers=[40000]", "train.stop={updates: 3}", "evaluate.every_epochs=0"}
	ranks, mib := 3, 80 // a window takes 35 MiB, with 2 ranks 23; MPI takes 4 MiB per rank and job, and 4 MiB per rank stay free
	if mpitest.Built.Ranks(2*ranks) < 2*ranks {
		ranks, mib = 2, 56
	}
	if mpitest.OnSmallDisk(t, shm.Dir, mib<<10) == "" {
		return
	}
	want := inProcess(t, ranks, set...)
	for range pairs {
		t.Run("pair", func(t *testing.T) {
			for range 2 {
				t.Run("job", func(t *testing.T) {
					t.Parallel()
					if got := overMPI(t, ranks, set...); got.ParametersSHA256 != want.ParametersSHA256 {
						t.Errorf("sha256 %s, want %s", got.ParametersSHA256, want.ParametersSHA256)
					}
				})
			}
		})
	}
}
