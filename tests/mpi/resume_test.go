//go:build mpi

package mpi

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/disk/checkpoint"
)

// interruptAfter requests a stop when a run has written so many checkpoints.
func interruptAfter(dir string, checkpoints int) <-chan string {
	signals := make(chan string, 1)
	go func() {
		for {
			if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) >= checkpoints {
				signals <- "SIGTERM"
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return signals
}

// A run that resumes from its checkpoint over MPI ends with the bits of an uninterrupted run in one process.
func TestAResumedRunIsBitEqualOverMPI(t *testing.T) {
	ranks := mpitest.Built.Ranks(6)
	for _, set := range [][]string{
		{"train.optimizer={name: adam, lr: 0.01}"},
		{"payload={push: topk, ratio: 0.1}", "shards.slice=layer"},
	} {
		want := inProcess(t, ranks, set...)
		dir := filepath.Join(t.TempDir(), "out")
		partOverMPI(t, ranks, dir, "", 0, append(set, "train.stop={updates: 13}")...)
		got, _ := partOverMPI(t, ranks, dir, dir, 0, set...)
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Iterations != 40 || got.Resumed == nil || got.Resumed.Iteration != 13 {
			t.Errorf("%v: sha256 %s after %d iterations, resumed %+v; want %s", set, got.ParametersSHA256, got.Iterations,
				got.Resumed, want.ParametersSHA256)
		}
	}
}

// The same holds for a checkpoint that was written during training, and whose successors are lost. It also holds for a checkpoint for
// which all workers paused, as under drop, which with the pushes of all workers is bsp.
func TestAVersionSavedOnTheWayOverMPI(t *testing.T) {
	ranks := mpitest.Built.Ranks(6)
	for _, set := range [][]string{
		{"train.optimizer={name: adam, lr: 0.01}", "model={name: mlp, layers: [600]}"},
		{"payload={push: topk, ratio: 0.1}", "shards.slice=layer", "cluster.shared_memory=off"},
		{`sync=[{match: "*", scheme: drop}]`, "train.optimizer={name: adam, lr: 0.01}", "model={name: mlp, layers: [600]}"},
		{`sync=[{match: "*.bias", scheme: bsp}, {match: "*", scheme: drop}]`, "cluster.shared_memory=off", "shards.max_bytes=128B"},
	} {
		set = append(set, "checkpoint={every_updates: 20, keep: 100}", "evaluate.every_epochs=0")
		dir := filepath.Join(t.TempDir(), "out")
		partOverMPI(t, ranks, dir, "", 2, append(set, "train.stop={time: 1h}")...)
		dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
		if err != nil || len(dirs) < 3 {
			t.Fatalf("%v, %v", dirs, err)
		}
		for _, d := range dirs[:len(dirs)-2] {
			if err := os.RemoveAll(d); err != nil {
				t.Fatal(err)
			}
		}
		m, err := checkpoint.Open(dirs[len(dirs)-2])
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, fmt.Sprintf("train.stop={updates: %d}", m.Iteration+25))
		want := inProcess(t, ranks, set...)
		got, _ := partOverMPI(t, ranks, dir, dir, 0, set...)
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Resumed == nil || got.Resumed.Iteration != m.Iteration {
			t.Errorf("%v: sha256 %s, resumed %+v at %d; want %s", set, got.ParametersSHA256, got.Resumed, m.Iteration, want.ParametersSHA256)
		}
	}
}
