package slurm

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the templates")

// templates are scripts that users copy, and the golden files of Text.
func templates() map[string]*Script {
	base := func() *Script {
		return &Script{
			Job: "fashion-mlp-mixed", Program: "bin/fluentps", Config: "configs/examples/fashion-mlp-mixed.yaml",
			Out: "runs/fashion-mlp-mixed/batch", Time: 4 * time.Hour, Launcher: "pmix",
			Parts: []Part{{Nodes: 1, Ranks: 6, Partition: "main"}},
		}
	}
	single, many, gpu, array, het := base(), base(), base(), base(), base()
	single.Launcher = "mpirun"
	many.Restarts, many.Flags = 3, []string{"--set", "checkpoint.every=10m"}
	many.Time = 26*time.Hour + 30*time.Minute
	many.Parts = []Part{{Nodes: 4, Ranks: 8, Cores: 2, Partition: "main"}}
	gpu.Job, gpu.Config, gpu.Out = "cifar10-resnet20", "configs/examples/cifar10-resnet20.yaml", "runs/cifar10-resnet20/batch"
	gpu.Parts = []Part{{Nodes: 2, Ranks: 10, GPUs: 4, Partition: "gpu"}}
	gpu.Flags = []string{"--set", "device.kind=cuda"}
	array.Job, array.Config, array.Out = "sweep-learning-rate", "sweeps/sweep-learning-rate", "sweeps/sweep-learning-rate"
	array.Array = &Indices{List: []int{0, 1, 2, 3}, Parallel: 2}
	// The values that plan computes for these examples.
	for s, mib := range map[*Script]int64{single: 1792, many: 640, gpu: 8768, array: 1792} {
		s.Parts[0].Memory = mib << 20
	}
	het.Parts = []Part{
		{What: "Servers: the first ranks, on hosts without GPUs.", Nodes: 2, Ranks: 2, Partition: "main", Memory: 320 << 20},
		{What: "Workers, one for each GPU.", Nodes: 2, Ranks: 8, GPUs: 4, Partition: "gpu", Memory: 5312 << 20},
	}
	het.Flags = []string{"--set", "cluster.placement=pack", "--set", "cluster.servers=2"}
	return map[string]*Script{
		"single-node.sbatch": single, "requeue.sbatch": many, "gpu-nodes.sbatch": gpu,
		"array-sweep.sbatch": array, "servers-on-cpu-nodes.sbatch": het,
	}
}

func TestTemplatesAreWhatTheWriterWrites(t *testing.T) {
	all := templates()
	for name, s := range all {
		path := filepath.Join("../../../slurm/templates", name)
		got := s.Text()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v; the writer says\n%s\nafter checking the difference: go test ./internal/plan/slurm -update", path, err, got)
		}
	}
	files, err := filepath.Glob("../../../slurm/templates/*.sbatch")
	if err != nil || len(files) != len(all) {
		t.Errorf("%d templates, the writer makes %d, %v", len(files), len(all), err)
	}
}

// Every line, or group of lines after a comment, is explained, and all options are before the first command, where
// sbatch stops reading them.
func TestEveryLineIsCommented(t *testing.T) {
	for name, s := range templates() {
		lines := strings.Split(strings.TrimRight(s.Text(), "\n"), "\n")
		command := false
		for i, line := range lines[1:] {
			before := lines[i]
			option := strings.HasPrefix(line, "#SBATCH")
			switch {
			case len(line) > 0 && line[0] != '#':
				command = true
			case option && command:
				t.Errorf("%s: %s stands behind a command, where sbatch does not read it", name, line)
			}
			if option && (!strings.HasPrefix(before, "# ") || strings.HasPrefix(before, "#SBATCH")) {
				t.Errorf("%s: no comment above %s", name, line)
			}
			if line != "" && line[0] != '#' && before == "" {
				t.Errorf("%s: no comment above %s", name, line)
			}
		}
	}
}

// runTemplate runs a script with stand-ins for the launcher and scontrol. program is the shell code of each launch.
func runTemplate(t *testing.T, s *Script, program string, env ...string) (out string, code int) {
	t.Helper()
	return runText(t, s.Text(), program, env...)
}

// runText is runTemplate for the text of a script.
func runText(t *testing.T, script, program string, env ...string) (out string, code int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"srun":     "#!/bin/bash\necho \"srun $*\"\n" + program,
		"scontrol": "#!/bin/bash\necho \"scontrol $*\"\n",
		"job":      strings.NewReplacer("sleep 30", "sleep 0.2", "sleep 5", "sleep 0.1").Replace(script),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "./job")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_JOB_ID=12")...)
	text, _ := cmd.CombinedOutput() // the exit code is returned
	return string(text), cmd.ProcessState.ExitCode()
}

func testScript() *Script {
	return &Script{Job: "j", Program: "fluentps", Config: "a b.yaml", Out: "run", Time: time.Hour, Launcher: "pmix",
		Parts: []Part{{Nodes: 1, Ranks: 2}}}
}

// With several parts srun may hang after the end of the run. The job ends all the same, with the code of the run. A
// launcher is never killed before the run has written its summary.
func TestALauncherThatHangsIsKilled(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	for _, c := range []struct {
		name, program string
		code          int
		says          string
	}{
		{"hangs", "sleep 1.1\n" + writesSummary + "exec sleep 1000 >/dev/null 2>&1\n", 0, "srun "},
		{"takes its time", "sleep 1\n" + writesSummary, 0, "srun "},
		{"fails late", "sleep 1; exit 7", 7, "srun "},
		{"killed", "kill -KILL $$", 137, "srun "},
		{"hangs when it was stopped", "sleep 1.1; mkdir -p run; echo '  \"start\": \"12.0\", \"finished\": \"stopped by " +
			"SIGUSR1\",' >run/summary.json\nexec sleep 1000 >/dev/null 2>&1\n", 0, "scontrol requeue 12"},
		{"hangs when it missed its target", "sleep 1.1; mkdir -p run; echo '  \"start\": \"12.0\", \"finished\": " +
			"\"target 0.9 not reached\",' >run/summary.json\nexec sleep 1000 >/dev/null 2>&1\n", 5, "srun "},
		{"keeps running beside an old summary",
			"mkdir -p run; echo '  \"finished\": \"ok\",' >run/summary.json; touch -d '1 hour ago' run/summary.json; sleep 2; exit 7", 7, "srun "},
	} {
		s := testScript()
		s.Parts = append(s.Parts, Part{Nodes: 1, Ranks: 2})
		if out, code := runTemplate(t, s, c.program); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: code %d, want %d:\n%s", c.name, code, c.code, out)
		}
	}
}

const writesCheckpoint = `mkdir -p run/checkpoints/000000000001; printf '{\n  "start": "12.0.1"\n}\n' >run/checkpoints/000000000001/manifest.json` + "\n"

const writesSummary = `mkdir -p run; printf '  "start": "12.0",\n  "finished": "ok",\n' >run/summary.json` + "\n"

func TestScriptLeavesWithTheCodeOfTheRun(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	for _, c := range []struct {
		name, program string
		code          int
		says          []string
	}{
		{"done", writesSummary, 0, []string{"srun --mpi=pmix --kill-on-bad-exit=1 fluentps run a b.yaml --out run --resume auto"}},
		{"failed", "exit 7", 7, nil},
		{"killed after its end", writesSummary + "exit 137", 0, []string{"WARNING: the launcher left with 137 after the run had finished"}},
		{"killed beside the end of another start",
			"mkdir -p run; printf '  \"start\": \"11.0\",\n  \"finished\": \"ok\",\n' >run/summary.json\nexit 137", 137, nil},
		{"its checkpoint is not whole", "mkdir -p run; printf '  \"start\": \"12.0\",\n  \"finished\": \"ok\",\n  " +
			"\"checkpoint\": \"checkpoints/1\",\n' >run/summary.json\nexit 137", 137, nil},
		{"a zero that is none", "exit 0", 1, []string{"does not say that the run finished"}},
		{"stopped early", "exit 75", 0, []string{"will resume after a requeue", "scontrol requeue 12"}},
		{"killed further than it was", writesCheckpoint + "exit 137", 0,
			[]string{"run failed with code 137, and will resume", "scontrol requeue 12"}},
		{"killed where it was", writesCheckpoint + "sed -i 's/12.0/12.1/' run/checkpoints/0*/manifest.json\nexit 137", 137, nil},
		{"refused beside another job that trains", writesCheckpoint + "sed -i 's/12.0/13.0/' run/checkpoints/0*/manifest.json\nexit 2", 2, nil},
		{"killed beside the end of job 1230", "mkdir -p run; printf '  \"start\": \"1230.0\",\n  \"finished\": " +
			"\"ok\",\n' >run/summary.json\nexit 137", 137, nil},
		{"killed before it trained", "exit 137", 137, nil},
		{"stalled", writesCheckpoint + "exit 4", 0, []string{"scontrol requeue 12"}},
		{"ended by a fatal error further than it was", writesCheckpoint + "exit 2", 0,
			[]string{"run failed with code 2, and will resume", "scontrol requeue 12"}},
		{"refused, or ended before it trained", "exit 2", 2, nil},
		{"a host was lost", writesCheckpoint + "exit 205", 0, []string{"scontrol requeue 12"}},
		{"a launcher with a code of its own", writesCheckpoint + "exit 7", 0, []string{"scontrol requeue 12"}},
		{"its target not reached", writesCheckpoint + "exit 5", 5, nil},
		{"failed after a checkpoint", writesCheckpoint + "exit 1", 1, nil},
		{
			"warned: the launcher hears of it, and its code counts",
			"trap 'echo heard; exit 75' USR1\nkill -USR1 $PPID\nfor ((i = 0; i < 500; i++)); do sleep 0.02; done\nexit 9", 0,
			[]string{"heard", "scontrol requeue 12"},
		},
		{
			"warned, but done before it stopped",
			"trap 'echo heard' USR1\nkill -USR1 $PPID\nsleep 0.3\n" + writesSummary, 0, []string{"heard"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := runTemplate(t, testScript(), c.program)
			if code != c.code || len(c.says) == 0 && strings.Contains(out, "requeue") {
				t.Errorf("left with %d, want %d\n%s", code, c.code, out)
			}
			for _, want := range c.says {
				if !strings.Contains(out, want) {
					t.Errorf("does not say %q:\n%s", want, out)
				}
			}
		})
	}
}

// finishedBy is Summary.Finished for a word of the table in FAULTS.md.
var finishedBy = map[string]string{
	"failed": "diverged: x", "target missed": "target 0.9 not reached", "stopped": "stopped by a signal to rank 1",
	"stopped in evaluation": "stopped by SIGUSR1; it has trained to the end, but the evaluation is not complete",
	"closed output":         "stopped by a closed output, which nobody reads any more", "ok": "ok", "another start's": "ok",
}

// A job script makes of each combination of the table in FAULTS.md what that page says, whether its parts are one or several. In each,
// the start has left an earlier checkpoint that is whole.
func TestEachCombinationIsJudgedAsThePageSays(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	text, err := os.ReadFile("../../../ps/FAULTS.md")
	_, rest, found := strings.Cut(string(text),
		"| summary of this start | its checkpoint | launcher's code | `--restarts` | job script | bare launcher |\n|---|---|---|---|---|---|\n")
	if err != nil || !found {
		t.Fatal("FAULTS.md has no table of combinations", err)
	}
	rows := 0
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimPrefix(strings.TrimSpace(cells[i]), "code ")
		}
		summary, launcher, want := cells[0], cells[2], cells[4]
		program := writesCheckpoint + "mkdir -p run/checkpoints/000000000002\n"
		if cells[1] == "whole" {
			program += "cp run/checkpoints/000000000001/manifest.json run/checkpoints/000000000002\n"
		}
		if start := map[bool]string{true: "11.0", false: "12.0"}[summary == "another start's"]; summary != "none" {
			program += `printf '{\n  "start": "` + start + `",\n  "finished": "` + finishedBy[summary] +
				`",\n  "checkpoint": "checkpoints/000000000002",\n  "mode": "mpi"\n}\n' >run/summary.json` + "\n"
		}
		s := testScript()
		if rows++; rows%2 == 0 {
			s.Parts = append(s.Parts, Part{Nodes: 1, Ranks: 2})
		}
		out, code := runTemplate(t, s, program+"exit "+launcher)
		got := strconv.Itoa(code)
		if strings.Contains(out, "scontrol requeue 12") && code == 0 {
			got = "requeue"
		}
		if strings.Contains(out, "WARNING: ") {
			got += ", warning"
		}
		if got != want || summary != "none" && finishedBy[summary] == "" || cells[5] != launcher {
			t.Errorf("%s: the script gives %s\n%s", strings.TrimSpace(line), got, out)
		}
	}
	if rows < 15 {
		t.Errorf("the table has %d rows only", rows)
	}
}

// A run whose last checkpoint was not whole is no finished one after the requeue. One whose checkpoints were removed later is.
func TestARequeuedJobGoesOnWhereTheCheckpointIsNotWhole(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	s := testScript()
	before := `mkdir -p run; printf '  "start": "12.0",\n  "finished": "ok",\n  "checkpoint": "checkpoints/1",\n' >run/summary.json` + "\n"
	for restarts, want := range map[string]string{"0": "run has finished already", "1": "srun --mpi=pmix"} {
		script := strings.Replace(s.Text(), "set -u\n", "set -u\n"+before, 1)
		if out, _ := runText(t, script, "exit 3", "SLURM_RESTART_COUNT="+restarts); !strings.Contains(out, want) ||
			strings.Contains(out, "already") && restarts == "1" {
			t.Errorf("restart %s: no %q\n%s", restarts, want, out)
		}
	}
}

func TestScriptWithRestartsStartsTheProgramAroundTheLauncher(t *testing.T) {
	s := testScript()
	s.Restarts, s.Flags = 2, []string{"--set", "seed=1"}
	want := `fluentps run "$config" --out "$out" --resume auto --start "$start" --set seed=1 --restarts 2 -- srun --mpi=pmix --kill-on-bad-exit=1 &` + "\n"
	if got := s.Text(); !strings.Contains(got, want) {
		t.Errorf("lacks %q:\n%s", want, got)
	}
}

func TestScriptOfAnArrayTakesItsOwnConfiguration(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	s := testScript()
	s.Array = &Indices{List: []int{3}}
	out, code := runTemplate(t, s, "echo \"seed is ${FLUENTPS_SEED-unset}\"\nexit 75", "SLURM_ARRAY_JOB_ID=11",
		"SLURM_ARRAY_TASK_ID=3", "FLUENTPS_SEED=5")
	for _, want := range []string{"seed is unset", "run a b.yaml/0003.yaml --out run/0003 --resume auto", "scontrol requeue 11_3"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("left with %d, lacks %q:\n%s", code, want, out)
		}
	}
}

func TestArrayList(t *testing.T) {
	for _, c := range []struct {
		list []int
		want string
	}{{[]int{0, 1, 2, 3}, "0-3"}, {[]int{1, 3, 4, 9, 10}, "1,3-4,9-10"}, {[]int{5}, "5"}} {
		if got := arrayList(c.list); got != c.want {
			t.Errorf("%v: %s, want %s", c.list, got, c.want)
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		90 * time.Second: "0-00:01:30", 4 * time.Hour: "0-04:00:00", 50*time.Hour + time.Minute: "2-02:01:00",
	} {
		if got := clock(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"a/b-c_1.yaml": "a/b-c_1.yaml", "x=1": "x=1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
		"sync[0].x=1": "'sync[0].x=1'", "~": "'~'", "é": "'é'",
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// With several hosts Open MPI's launcher probes whether they are alive.
func TestMpirunOverHostsSendsKeepAlives(t *testing.T) {
	s := templates()["single-node.sbatch"]
	if strings.Contains(s.Text(), "keepalive") {
		t.Error("on one host, too")
	}
	s.Parts[0].Nodes = 2
	if want := "mpirun -n 6 --bind-to none --mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 5 --mca " +
		"oob_tcp_keepalive_probes 4 bin/fluentps run "; !strings.Contains(s.Text(), want) {
		t.Errorf("no %q in\n%s", want, s.Text())
	}
}
