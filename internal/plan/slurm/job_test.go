package slurm

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func env(pairs string) func(string) string {
	set := map[string]string{}
	for _, p := range strings.Fields(pairs) {
		name, value, _ := strings.Cut(p, "=")
		set[name] = value
	}
	return func(name string) string { return set[name] }
}

// The environments were set by Slurm 22.05, except for SLURM_JOB_END_TIME, which 23.02 introduced.
func TestJobFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, env string
		want      *Job
	}{
		{"no job", "SLURM_CONF=/etc/slurm.conf SLURM_PROCID=1", nil},
		{
			"batch script", "SLURM_JOB_ID=1 SLURM_JOB_NAME=j.sh SLURM_JOB_PARTITION=main SLURM_JOB_NODELIST=h[1-2] " +
				"SLURM_TASKS_PER_NODE=2(x2) SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4",
			&Job{ID: "1", Name: "j.sh", Partition: "main", Nodes: []string{"h1", "h2"}, Tasks: []int{2, 2}, LocalID: -1},
		},
		{
			"task of srun", "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=h[1-2] SLURM_STEP_NODELIST=h[1-2] " +
				"SLURM_TASKS_PER_NODE=2,1 SLURM_PROCID=1 SLURM_LOCALID=1",
			&Job{ID: "1", Step: "0", Nodes: []string{"h1", "h2"}, Tasks: []int{2, 1}, LocalID: 1},
		},
		{
			"step on fewer nodes", "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=h[1-2] SLURM_STEP_NODELIST=h1 " +
				"SLURM_TASKS_PER_NODE=1 SLURM_LOCALID=0",
			&Job{ID: "1", Step: "0", Nodes: []string{"h1", "h2"}, LocalID: 0},
		},
		{
			"rank of mpirun, through the step of its daemon",
			"SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=h[1-4] SLURM_TASKS_PER_NODE=2(x4) SLURM_PROCID=1 " +
				"SLURM_LOCALID=0 OMPI_COMM_WORLD_LOCAL_RANK=1",
			&Job{ID: "1", Step: "0", Nodes: []string{"h1", "h2", "h3", "h4"}, Tasks: []int{2, 2, 2, 2}, LocalID: 1},
		},
		{
			"batch script as a step", "SLURM_JOB_ID=7 SLURM_STEP_ID=4294967291 SLURM_RESTART_COUNT=1 SLURM_LOCALID=0",
			&Job{ID: "7", Restarts: 1, LocalID: -1},
		},
		{
			"last task of an array", "SLURM_JOB_ID=2 SLURM_ARRAY_JOB_ID=2 SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=2 " +
				"SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_STEP=2 SLURM_JOB_NODELIST=h1",
			&Job{ID: "2", Nodes: []string{"h1"}, Array: &Array{JobID: "2", Index: 2, Count: 2}, LocalID: -1},
		},
		{
			"batch script of a heterogeneous job",
			"SLURM_JOB_ID=4 SLURM_HET_SIZE=2 SLURM_JOB_NODELIST=h1 SLURM_JOB_NODELIST_HET_GROUP_0=h1 " +
				"SLURM_JOB_NODELIST_HET_GROUP_1=h[2-3] SLURM_TASKS_PER_NODE=1 SLURM_TASKS_PER_NODE_HET_GROUP_0=1 " +
				"SLURM_TASKS_PER_NODE_HET_GROUP_1=2(x2)",
			&Job{
				ID: "4", Nodes: []string{"h1", "h2", "h3"}, Tasks: []int{1, 2, 2}, LocalID: -1,
				Groups: []Group{{[]string{"h1"}, []int{1}}, {[]string{"h2", "h3"}, []int{2, 2}}},
			},
		},
		{
			"end and GPUs of a batch script", "SLURM_JOB_ID=9 SLURM_JOB_END_TIME=1700000000 SLURM_JOB_GPUS=0,1 SLURM_GPUS_ON_NODE=2",
			&Job{ID: "9", End: time.Unix(1700000000, 0), GPUs: []string{"0", "1"}, LocalID: -1},
		},
		{
			"GPUs of a step", "SLURM_JOB_ID=9 SLURM_STEP_ID=1 SLURM_STEP_GPUS=1-3 SLURM_LOCALID=2",
			&Job{ID: "9", Step: "1", GPUs: []string{"1", "2", "3"}, LocalID: 2},
		},
		{"a number of GPUs only", "SLURM_JOB_ID=9 SLURM_GPUS_ON_NODE=2", &Job{ID: "9", GPUs: []string{"0", "1"}, LocalID: -1}},
	} {
		got, err := FromEnv(env(c.env))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got != nil && len(got.GPUs) == 0 {
			got.GPUs = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

func TestJobNamesTheVariableThatItCannotRead(t *testing.T) {
	j, err := FromEnv(env("SLURM_JOB_ID=1 SLURM_JOB_NODELIST=h[2-1] SLURM_TASKS_PER_NODE=x SLURM_RESTART_COUNT=-1 " +
		"SLURM_JOB_GPUS=a SLURM_HET_SIZE=0"))
	if j == nil || j.ID != "1" {
		t.Fatalf("%+v", j)
	}
	for _, want := range []string{`SLURM_JOB_NODELIST is "h[2-1]"`, `SLURM_TASKS_PER_NODE is "x"`,
		`SLURM_RESTART_COUNT is "-1"`, `SLURM_JOB_GPUS is "a"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}

func TestJobText(t *testing.T) {
	j, err := FromEnv(env("SLURM_JOB_ID=2 SLURM_JOB_NAME=lr SLURM_JOB_PARTITION=main SLURM_ARRAY_JOB_ID=2 " +
		"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=4 SLURM_JOB_NODELIST=h[1-2] SLURM_TASKS_PER_NODE=2(x2) " +
		"SLURM_JOB_GPUS=0,1 SLURM_RESTART_COUNT=1 SLURM_JOB_END_TIME=5400"))
	want := "job 2 (lr); task 3 of array 2, 4 tasks; partition main; h[1-2], 4 tasks; GPUs 0,1 of this node; requeued 1 times; ends in 1h20m0s"
	if got := j.Text(time.Unix(600, 0)); err != nil || got != want {
		t.Errorf("%s, %v, want\n%s", got, err, want)
	}
	j, err = FromEnv(env("SLURM_JOB_ID=4 SLURM_HET_SIZE=2 SLURM_JOB_NODELIST_HET_GROUP_0=cpu1 " +
		"SLURM_JOB_NODELIST_HET_GROUP_1=gpu[1-2] SLURM_TASKS_PER_NODE_HET_GROUP_0=2 SLURM_TASKS_PER_NODE_HET_GROUP_1=4(x2)"))
	if got := j.Text(time.Unix(0, 0)); err != nil || got != "job 4; part 0 on cpu1, 2 tasks; part 1 on gpu[1-2], 8 tasks" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestRemaining(t *testing.T) {
	now := time.Unix(1000, 0)
	refuse := func(context.Context, string, ...string) (string, error) { return "", errors.New("not found") }
	left, limited, err := (&Job{ID: "1", End: time.Unix(1090, 0)}).Remaining(t.Context(), now, refuse)
	if err != nil || !limited || left != 90*time.Second {
		t.Errorf("from the environment: %v, %v, %v", left, limited, err)
	}
	if _, _, err := (&Job{ID: "1"}).Remaining(t.Context(), now, refuse); err == nil ||
		!strings.Contains(err.Error(), "job 1") || !strings.Contains(err.Error(), "not found") {
		t.Errorf("neither knows the time: %v", err)
	}
	for _, c := range []struct {
		says    string
		left    time.Duration
		limited bool
	}{
		{"5:00\n", 5 * time.Minute, true},
		{"0:07\n", 7 * time.Second, true},
		{"0:00\n", 0, true},
		{"3:59:59\n", 4*time.Hour - time.Second, true},
		{"1-02:03:04\n", 26*time.Hour + 3*time.Minute + 4*time.Second, true},
		{"2-00:00:00\n2-00:00:00\n", 48 * time.Hour, true},
		{"UNLIMITED\n", 0, false},
		{"NOT_SET\n", 0, false},
	} {
		ask := func(_ context.Context, name string, args ...string) (string, error) {
			if want := []string{"--noheader", "--jobs=2_3", "--format=%L"}; name != "squeue" || !slices.Equal(args, want) {
				t.Errorf("asked %s %v, want %v", name, args, want)
			}
			return c.says, nil
		}
		j := &Job{ID: "2", Array: &Array{JobID: "2", Index: 3}}
		if left, limited, err := j.Remaining(t.Context(), now, ask); err != nil || left != c.left || limited != c.limited {
			t.Errorf("%q: %v, %v, %v, want %v, %v", c.says, left, limited, err, c.left, c.limited)
		}
	}
	for _, says := range []string{"", "INVALID", "5", "1-5", "a:b", "1:2:3:4", "-1:00"} {
		ask := func(context.Context, string, ...string) (string, error) { return says, nil }
		if left, _, err := (&Job{ID: "1"}).Remaining(t.Context(), now, ask); err == nil {
			t.Errorf("%q: %v, want an error", says, left)
		}
	}
}

func TestMaxTimeLeavesRoomForACheckpoint(t *testing.T) {
	for _, c := range []struct{ left, checkpoint, want time.Duration }{
		{4 * time.Hour, 30 * time.Second, 4*time.Hour - 90*time.Second},
		{5 * time.Minute, 0, 270 * time.Second},
		{time.Minute, 2 * time.Minute, 0},
		{-time.Minute, 0, 0},
	} {
		if got := MaxTime(c.left, c.checkpoint); got != c.want {
			t.Errorf("%v left, checkpoints take %v: %v, want %v", c.left, c.checkpoint, got, c.want)
		}
	}
}
