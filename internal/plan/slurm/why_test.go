package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shown is what scontrol of Slurm 22.05 showed a step of the job while it had SIGTERM; its name is meant to mislead.
func shown(state, requeue, times string) string {
	return "JobId=7 JobName=a JobState=TIMEOUT Reason=NodeDown\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n   " +
		"Priority=4294901759 Nice=0 Account=(null) QOS=(null)\n   " +
		state + " Dependency=(null)\n   " + requeue + " BatchFlag=1 Reboot=0 ExitCode=0:15\n   " + times +
		" TimeMin=N/A\n   SubmitTime=2026-11-27T18:27:59 EligibleTime=2026-11-27T18:27:59\n   Features=(null) " +
		"DelayBoot=00:00:00\n   Command=/x JobState=NODE_FAIL\n   Power=\n\n"
}

func TestWhySlurmStopsAJob(t *testing.T) {
	now := time.Unix(1000, 0)
	const again, first = "Requeue=1 Restarts=1", "Requeue=1 Restarts=0"
	for _, c := range []struct{ out, want string }{
		{shown("JobState=COMPLETING Reason=None", first, "RunTime=00:00:08 TimeLimit=00:10:00"), "job 7 was cancelled (scancel)"},
		{shown("JobState=CANCELLED Reason=None", first, "RunTime=00:00:08 TimeLimit=UNLIMITED"), "job 7 was cancelled (scancel)"},
		{shown("JobState=COMPLETING Reason=None", again, "RunTime=00:00:00 TimeLimit=00:10:00"), "job 7 was requeued"},
		{shown("JobState=COMPLETING Reason=TimeLimit", first, "RunTime=01:00:27 TimeLimit=01:00:00"),
			"job 7 has reached its time limit of 1h0m0s"},
		{shown("JobState=COMPLETING Reason=None", first, "RunTime=1-00:00:01 TimeLimit=1-00:00:00"),
			"job 7 has reached its time limit of 24h0m0s"},
		{shown("JobState=RUNNING Reason=None", first, "RunTime=00:58:02 TimeLimit=01:00:00"), "job 7 reaches its time limit in 1m58s"},
		{shown("JobState=RUNNING Reason=None", first, "RunTime=00:08:02 TimeLimit=01:00:00"), "Slurm does not end job 7, which has 51m58s left"},
		{shown("JobState=RUNNING Reason=None", first, "RunTime=00:08:02 TimeLimit=UNLIMITED"),
			"Slurm does not end job 7, which has no time limit"},
		{shown("JobState=PREEMPTED Reason=None", first, "RunTime=00:08:02 TimeLimit=UNLIMITED"),
			"job 7 was preempted: another job gets its nodes"},
		{shown("JobState=RUNNING Reason=None", first,
			"RunTime=00:08:02 TimeLimit=UNLIMITED\n   PreemptEligibleTime=2026-11-27T18:27:59 PreemptTime=2026-11-27T18:28:59"),
			"job 7 was preempted: another job gets its nodes"},
		{shown("JobState=RUNNING Reason=None", first,
			"RunTime=00:08:02 TimeLimit=UNLIMITED\n   PreemptEligibleTime=2026-11-27T18:27:59 PreemptTime=None"),
			"Slurm does not end job 7, which has no time limit"},
		{shown("JobState=COMPLETING Reason=NodeDown", first, "RunTime=00:08:02 TimeLimit=01:00:00"), "a node of job 7 has failed"},
		{shown("JobState=COMPLETING Reason=DeadLine", first, "RunTime=00:08:02 TimeLimit=01:00:00"), "Slurm ends job 7: DeadLine"},
		{shown("JobState=COMPLETING Reason=None", again, "") + shown("JobState=RUNNING Reason=None", first, ""), "job 7 was requeued"},
	} {
		job, err := FromEnv(env("SLURM_JOB_ID=7"))
		if err != nil {
			t.Fatal(err)
		}
		got := job.WhyStopped(t.Context(), now, func(_ context.Context, name string, args ...string) (string, error) {
			if name != "scontrol" || !slices.Equal(args, []string{"show", "job", "7"}) {
				t.Errorf("asked %s %q", name, args)
			}
			return c.out, nil
		})
		if got != c.want {
			t.Errorf("%q, want %q, of\n%s", got, c.want, c.out)
		}
	}
}

// Without an answer of scontrol the time of the job's end, which Slurm 23.02 and later tell, is all that is known.
func TestWhyAJobIsStoppedWithoutAnAnswer(t *testing.T) {
	for vars, want := range map[string]string{
		"":                         "Slurm does not say why (job 7)",
		"SLURM_JOB_END_TIME=9000":  "Slurm does not say why (job 7)",
		"SLURM_JOB_END_TIME=1118":  "job 7 reaches its time limit in 1m58s",
		"SLURM_JOB_END_TIME=995":   "job 7 has reached its time limit",
		"SLURM_RESTART_COUNT=2":    "Slurm does not say why (job 7)",
		"SLURM_JOB_NAME=TimeLimit": "Slurm does not say why (job 7)",
	} {
		job, err := FromEnv(env("SLURM_JOB_ID=7 " + vars))
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []Asker{
			func(context.Context, string, ...string) (string, error) { return "", errors.New("not found") },
			func(context.Context, string, ...string) (string, error) { return "slurm_load_jobs error", nil },
		} {
			if got := job.WhyStopped(t.Context(), time.Unix(1000, 0), bad); got != want {
				t.Errorf("%s: %q, want %q", vars, got, want)
			}
		}
	}
}

// A command of Slurm that hangs, with a child that holds its output open, is left behind in time.
func TestACommandThatHangsIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\nsleep 20 &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	got := (&Job{ID: "7"}).WhyStopped(ctx, begun, Ask)
	if took := time.Since(begun); took > 10*time.Second || !strings.Contains(got, "does not say why") {
		t.Errorf("after %s: %q", took, got)
	}
}

// The signal that stops the run may reach the command that asks, too. It is asked again.
func TestACommandThatTheSignalEndsIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ncd " + dir + "\n[ -e asked ] || { touch asked; kill -TERM $$; }\necho 'JobState=COMPLETING Reason=None'\n"
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if got := (&Job{ID: "7"}).WhyStopped(t.Context(), time.Unix(1000, 0), Ask); got != "job 7 was cancelled (scancel)" {
		t.Errorf("it says %q", got)
	}
}
