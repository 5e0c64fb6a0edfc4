//go:build mpi

package mpi

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/rank/runtime"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// breaking is a table that panics at the nth read, as a bug would.
type breaking struct {
	dataset.Table
	reads *atomic.Int32
	nth   int32
}

func (b breaking) Fill(x []float32, y []int32, rows []int32) {
	if b.reads.Add(1) == b.nth {
		panic("boom")
	}
	b.Table.Fill(x, y, rows)
}

// breakIn makes the data of this rank panic where the job says: "load", "train" or "evaluate".
func breakIn(where string) func(workload.DataSpec) (*dataset.Set, error) {
	return func(spec workload.DataSpec) (*dataset.Set, error) {
		if where == "load" {
			panic("boom")
		}
		set, err := dataset.Load(spec)
		if err != nil {
			return nil, err
		}
		mine := *set
		if where == "train" {
			mine.Train = breaking{set.Train, new(atomic.Int32), 3}
		} else {
			mine.Test = breaking{set.Test, new(atomic.Int32), 1}
		}
		return &mine, nil
	}
}

// A bug on any rank, in any activity, ends all ranks with the code of a failure and one report of the bug. No rank waits for the one
// that is gone.
func TestAPanicOnOneRankEndsAllOverMPI(t *testing.T) {
	ranks := mpitest.Built.Ranks(4)
	set := []string{"cluster.servers=1", fmt.Sprintf("data.test_rows=%d", 256*ranks)} // a batch of evaluation for each rank
	for _, where := range []string{"load", "train", "evaluate"} {
		for _, rank := range []int{0, ranks - 1} {
			if where == "train" && rank == 0 {
				continue // rank 0 serves, and reads no data
			}
			job, err := json.Marshal(map[string]any{"BreakIn": where, "Breaks": rank, "Sets": [][]string{set}})
			if err != nil {
				t.Fatal(err)
			}
			code, said := mpitest.Built.Run(t, mpitest.Job{Ranks: ranks, Env: []string{childVar + "=" + string(job)}, Program: []string{os.Args[0]}})
			if code != runtime.CodeFailed || strings.Count(said, "bug in fluentps: boom") != 1 {
				t.Errorf("%s on rank %d: code %d, want %d and one report of the bug:\n%s", where, rank, code, runtime.CodeFailed, said)
			}
		}
	}
}
