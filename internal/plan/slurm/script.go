package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/foreign"
)

// Script is a batch script that trains. Each time it starts, it resumes from the newest checkpoint. It requeues itself
// when its time runs out.
type Script struct {
	Job      string   // name in the queue
	Program  string   // the command fluentps on the nodes
	Config   string   // the YAML file, relative to the folder of submission or absolute
	Flags    []string // more flags of run
	Account  string   // account that is charged; "": the site's default
	QOS      string   // quality of service; "": the site's default
	Out      string   // the run folder
	Time     time.Duration
	Parts    []Part   // more than one: a heterogeneous job with one MPI world, whose ranks are in this order
	Launcher string   // mpirun, or the plugin of srun: pmix, pmi2
	Restarts int      // how many times a job that died is restarted within one allocation
	Array    *Indices // a job array: Config and Out are then folders, with one configuration and one run folder per index
}

// Part is a set of nodes of one kind.
type Part struct {
	What      string // what runs there, for a comment; "": no comment
	Nodes     int
	Ranks     int
	Cores     int // per rank, the same in all parts; 0: the site's default
	GPUs      int // per node; 0: none
	Partition string
	Memory    int64    // bytes per node; 0: the site's default
	Options   []string // further options of sbatch, which CheckOption accepts
}

// Indices are the tasks of an array.
type Indices struct {
	List     []int
	Parallel int // tasks that run at a time; 0: as many as fit
}

// Launchers are the values of Script.Launcher.
var Launchers = []string{"pmix", "pmi2", "mpirun"}

// Check returns an error if a word of the script cannot be written into one. Quotes protect a word from a shell; but
// sbatch reads the lines before any shell does, and knows no quotes.
func (s *Script) Check() error {
	for _, w := range slices.Concat([]string{s.Program, s.Config, s.Out}, s.Flags) {
		if hasControls(w) {
			return fmt.Errorf("%s holds a line break or another control character, which a job script cannot have; rename "+
				"the file, or write the setting into it", foreign.Text(w))
		}
	}
	if strings.HasPrefix(s.Program, "-") {
		return fmt.Errorf("the program is called %s, which a launcher takes for an option; call it by a path with a folder", Quote(s.Program))
	}
	return nil
}

// warningTime is how long before its end a job is told to write a checkpoint. Slurm may send the signal a minute
// earlier, and checks every half minute.
const warningTime = 2 * time.Minute

// Text returns the script. Every command has a comment above it.
func (s *Script) Text() string {
	w := &writer{}
	w.raw("#!/usr/bin/env bash")
	w.comment("Submit from the folder that contains " + s.Program + " and the files below: sbatch THIS-FILE. Submitted again, it resumes.")
	s.head(w)
	s.folders(w)
	s.launch(w)
	s.end(w)
	return w.String()
}

type writer struct{ strings.Builder }

func (w *writer) raw(line string) { w.WriteString(line + "\n") }

// comment breaks a text into lines.
func (w *writer) comment(text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 110 {
			w.raw(line)
			line = "#"
		}
		line += " " + word
	}
	w.raw(line)
}

func (w *writer) sbatch(comment, option string) {
	w.comment(comment)
	w.raw("#SBATCH " + option)
}

func (w *writer) block(comment string, lines ...string) {
	w.comment(comment)
	for _, l := range lines {
		w.raw(l)
	}
}

// head writes the options of sbatch. Options of the first part hold for that part alone, the others for the whole job.
func (s *Script) head(w *writer) {
	w.raw("")
	w.sbatch("The name in squeue and of the output files.", "--job-name="+s.Job)
	output := "%x-%j.out"
	if s.Array != nil {
		output = "%x-%A_%a.out"
	}
	w.sbatch("The output: "+output+" is the name with the job number.", "--output="+output)
	w.sbatch("After a requeue the output is appended.", "--open-mode=append")
	w.sbatch("After a node failure, or at the script's request, the job goes back to the queue.", "--requeue")
	w.sbatch(fmt.Sprintf("%d seconds before the end this script, not its ranks, receives a signal.",
		int(warningTime.Seconds())), fmt.Sprintf("--signal=B:USR1@%d", int(warningTime.Seconds())))
	if s.Array != nil {
		list := arrayList(s.Array.List)
		about := "One task per configuration that has not finished yet."
		if s.Array.Parallel > 0 {
			list += fmt.Sprintf("%%%d", s.Array.Parallel)
			about += fmt.Sprintf(" At most %d run at a time.", s.Array.Parallel)
		}
		w.sbatch(about, "--array="+list)
	}
	for i, p := range s.Parts {
		w.raw("")
		if i > 0 {
			w.sbatch("The next part of the job begins here; all parts start together.", "hetjob")
		}
		if p.What != "" {
			w.comment(p.What)
		}
		s.part(w, p)
	}
}

func (s *Script) part(w *writer, p Part) {
	w.sbatch("Hosts.", fmt.Sprintf("--nodes=%d", p.Nodes))
	roles := ", servers and workers together."
	if p.What != "" {
		roles = "."
	}
	if p.Ranks%p.Nodes == 0 {
		w.sbatch("Ranks on each of them"+roles, fmt.Sprintf("--ntasks-per-node=%d", p.Ranks/p.Nodes))
	} else {
		w.sbatch("Ranks over all of them"+roles, fmt.Sprintf("--ntasks=%d", p.Ranks))
	}
	if p.Cores > 0 {
		w.sbatch("Cores for each rank.", fmt.Sprintf("--cpus-per-task=%d", p.Cores))
	}
	if p.GPUs > 0 {
		w.sbatch("GPUs of each host; the computing ranks there take them in turn.", fmt.Sprintf("--gpus-per-node=%d", p.GPUs))
	}
	if p.Partition != "" {
		w.sbatch("The queue; sinfo lists them.", "--partition="+p.Partition)
	}
	if s.Account != "" {
		w.sbatch("The account that is charged.", "--account="+s.Account)
	}
	if s.QOS != "" {
		w.sbatch("The quality of service.", "--qos="+s.QOS)
	}
	if p.Memory > 0 {
		w.sbatch("Memory of each host: the peak of its ranks, each with its copy of the data, and a reserve for MPI and "+
			"other libraries.", fmt.Sprintf("--mem=%dM", mebibytes(p.Memory)))
	}
	for _, o := range p.Options {
		w.sbatch("Set with --sbatch-arg.", o)
	}
	w.sbatch("Time limit, as days-hours:minutes:seconds. The rest of the work is done after a requeue.", "--time="+clock(s.Time))
}

// mebibytes rounds a size up to a multiple of 64 MiB and returns it in MiB, which sbatch calls M.
func mebibytes(bytes int64) int64 {
	const step = 64 << 20
	return (bytes + step - 1) / step * (step >> 20)
}

// folders sets the configuration and the run folder, and exits if the run has finished.
func (s *Script) folders(w *writer) {
	w.raw("")
	w.block("An unset variable is an error; exit codes are handled below.", "set -u")
	config, out := Quote(File(s.Config)), Quote(File(s.Out))
	if s.Array != nil {
		w.block("Settings in the environment of the submitting shell would override the configurations, which are "+
			"complete. Those of kernels belong to the host.",
			`for name in "${!FLUENTPS_@}"; do [[ $name == FLUENTPS_KERNELS_* ]] || unset "$name"; done`)
		w.block("The numbered configuration of this task, and the run folder beside it.", `number=$(printf '%04d' "$SLURM_ARRAY_TASK_ID")`)
		config, out = config+`"/$number.yaml"`, out+`"/$number"`
	}
	w.block("What to train. Another experiment is another file and another run folder.", "config="+config)
	w.block("All files of the run, on a file system that all hosts share. The run resumes from the checkpoints there.", "out="+out)
	w.raw("")
	w.block("The program writes this line last: exit code 0 of a launcher proves nothing.",
		`finished() { grep -qs '"finished": "ok"' "$out/summary.json"; }`)
	w.block("Whether the checkpoint that the summary names is whole, if it names one.",
		`whole() { local at; at=$(sed -n 's/^  "checkpoint": "\(.*\)",$/\1/p' "$out/summary.json"); [ -z "$at" ] || [ -s "$out/$at/manifest.json" ]; }`)
	w.block("Submitted again after the end, the script has nothing to do. To continue with a larger budget, remove "+
		"these lines. A job that was requeued because its last checkpoint was not whole goes on.",
		`if finished && { [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || whole; }; then`, `	echo "$out has finished already"`, "	exit 0", "fi")
}

// launch starts the ranks in the background, because a shell runs its traps only between foreground commands.
func (s *Script) launch(w *writer) {
	w.raw("")
	w.block("Forward Slurm's warning to the launcher, which forwards it to the ranks: they write a checkpoint and exit with 75.",
		`launcher="" warned="" early=""`,
		`trap 'if [ -n "$launcher" ]; then warned=yes; kill -USR1 "$launcher"; else early=yes; fi' USR1`)
	w.raw("")
	w.block("The run writes this token into its files: what another start has left there is no evidence of this one.",
		`start="${SLURM_JOB_ID:-$$$RANDOM}.${SLURM_RESTART_COUNT:-0}"`)
	w.block("Which of some files this start has written; with restarts each has a number behind the token.",
		`ours() { grep -lsF -e "\"start\": \"$start\"" -e "\"start\": \"$start." "$@"; }`)
	w.block("Whether the summary is of this start.", `summed() { [ -n "$(ours "$out/summary.json")" ]; }`)
	if s.Launcher == "pmix" {
		w.block("The barrier of the ranks at the start. With Slurm's default some ranks were seen to pass it before all "+
			"had entered (22.05), and Open MPI then crashed.",
			"export SLURM_PMIX_FENCE=ring")
	}
	line, about := s.launcher()
	run := []string{Quote(s.Program), "run", `"$config"`, "--out", `"$out"`, "--resume", "auto", "--start", `"$start"`}
	for _, f := range s.Flags {
		run = append(run, Quote(f))
	}
	if s.Restarts > 0 {
		line = slices.Concat(run, []string{"--restarts", strconv.Itoa(s.Restarts), "--"}, line)
		about += fmt.Sprintf(" The program starts it, and if a process dies, restarts it at most %d times, without "+
			"another wait in the queue; training since the newest checkpoint (see checkpoint.every) is lost.", s.Restarts)
	} else {
		line = append(line, run...)
	}
	w.block(about+" If the run folder has a checkpoint, the run resumes from it; otherwise it starts from scratch.",
		strings.Join(line, " ")+" &")
	w.block("A warning that arrived before the launcher was known is forwarded once the launcher can handle it. A "+
		"later warning interrupts wait, which is then repeated.",
		"launcher=$!",
		`if [ -n "$early" ]; then`,
		"	sleep 1",
		`	kill -USR1 "$launcher"`,
		"fi")
	if s.mayHang() {
		w.block("With several parts, srun was seen to hang after all ranks had ended (22.05). The run writes its summary "+
			"last; half a minute after that, srun is killed.",
			"(",
			`	until summed || ! kill -0 "$launcher"; do sleep 5; done`,
			"	sleep 30",
			`	! summed || kill -KILL "$launcher"`,
			") >/dev/null 2>&1 &",
			"guard=$!")
	}
	w.block("Wait until the launcher has ended; a warning only interrupts wait.",
		"while :; do",
		`	warned=""`,
		`	wait "$launcher"`,
		"	code=$?",
		`	[ -n "$warned" ] || break`,
		"done")
	if s.mayHang() {
		w.block("The exit code of a killed srun says nothing; the summary tells below how the run ended.", `kill "$guard" 2>/dev/null`)
	}
}

// mayHang returns whether the launcher was seen to hang after its ranks had ended.
func (s *Script) mayHang() bool { return len(s.Parts) > 1 && s.Launcher != "mpirun" }

// launcher returns the command that starts the ranks, and its explanation.
func (s *Script) launcher() (line []string, about string) {
	ranks, nodes, cores := 0, 0, s.Parts[0].Cores
	for _, p := range s.Parts {
		ranks += p.Ranks
		nodes += p.Nodes
	}
	line = []string{fmt.Sprintf("mpirun -n %d --bind-to none", ranks)}
	about = "Open MPI's launcher gets the hosts from Slurm."
	if nodes > 1 {
		line = append(line, keepAlive)
		about += " By default it waits a quarter of an hour for a host that is cut off; with keep-alive messages it " +
			"gives up after half a minute, which must be less than stall.peer."
	}
	if s.Launcher != "mpirun" {
		line = []string{"srun --mpi=" + s.Launcher}
		about = "srun --mpi=list shows the plugins: pmix for Open MPI, pmi2 for MPICH."
		if len(s.Parts) > 1 {
			line = append(line, "--het-group=0"+strings.Join(groupNumbers(len(s.Parts)), ""))
			about += " All parts form one MPI world."
		}
		if cores > 0 {
			number := `"$SLURM_CPUS_PER_TASK"`
			if len(s.Parts) > 1 { // each part has a variable of its own
				number = strconv.Itoa(cores)
			}
			line = append(line, "--cpus-per-task="+number)
			about += " srun does not inherit the cores from sbatch."
		}
		line = append(line, "--kill-on-bad-exit=1")
		about += " If one rank fails, all end."
	}
	return line, about
}

// keepAlive are options of Open MPI's mpirun, in seconds: the silence before the first probe, the time between probes,
// and their number.
const keepAlive = "--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 4"

// groupNumbers returns the numbers of the parts after the first.
func groupNumbers(n int) (numbers []string) {
	for i := 1; i < n; i++ {
		numbers = append(numbers, fmt.Sprintf(",%d", i))
	}
	return numbers
}

// end handles the exit code of the run, together with its summary.
func (s *Script) end(w *writer) {
	w.raw("")
	id := `"$SLURM_JOB_ID"`
	if s.Array != nil { // the job number of the last task is also that of the whole array
		id = `"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"`
	}
	w.block("The run's own word counts for more than how its processes ended after that.",
		`if [ "$code" -ne 0 ] && summed; then`,
		`	if finished && whole; then`,
		`		echo "WARNING: the launcher left with $code after the run had finished" >&2`,
		"		code=0",
		"	fi",
		`	if [ "$code" -ne 1 ] && whole && grep -qs '"finished": "stopped by ' "$out/summary.json"; then code=75; fi`,
		`	if grep -qs '"finished": "target .* not reached"' "$out/summary.json"; then code=5; fi`,
		`	if [ "$code" -gt 5 ] && [ "$code" -ne 75 ] && ! grep -qs '"finished": "\(ok\|stopped by \)' "$out/summary.json"; then code=1; fi`,
		"fi")
	w.block("75: stopped early with a checkpoint. The job keeps its number and goes back to the queue, which ends this script.",
		`if [ "$code" -eq 75 ]; then`,
		`	echo "$out will resume after a requeue"`,
		"	scontrol requeue "+id+" && exit 0",
		"	exit 75",
		"fi")
	w.block("0, 1 and 5: the run has ended. Any other code: a rank died or does not answer, perhaps because of its "+
		"node, which Slurm may report only minutes later. Examples are 4, codes above 128, and 2, the code of a process "+
		"after a fatal error such as SIGBUS or a lack of memory; the run itself exits with 2 only before it trains. If "+
		"this start has left a checkpoint, the run is tried again.",
		`case $code in 0 | 1 | 5) again="" ;; *) again=$(ours "$out"/checkpoints/0*/manifest.json) ;; esac`,
		`if [ -n "$again" ]; then`,
		`	echo "$out failed with code $code, and will resume from its newest checkpoint after a requeue"`,
		"	scontrol requeue "+id+" && exit 0",
		"fi")
	w.block("After a node failure a launcher was seen to exit with 0 although the run had not finished.",
		`if [ "$code" -eq 0 ] && ! { summed && finished && whole; }; then`,
		`	echo "the launcher left with 0, but $out/summary.json does not say that the run finished" >&2`,
		"	code=1",
		"fi")
	w.block("The job fails if the run did.", `exit "$code"`)
}

// arrayList writes indices in the form of sbatch: 0-3,7.
func arrayList(indices []int) string {
	names := make([]string, len(indices))
	for i, n := range indices {
		names[i] = fmt.Sprint(n)
	}
	return ranges(names, 0)
}

// clock writes a time limit. Slurm rounds up to whole minutes.
func clock(d time.Duration) string {
	seconds := int64(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d-%02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
}

// File writes the name of a file so that no command takes it for a flag.
func File(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

// Quote writes a word so that a shell reads it unchanged.
func Quote(word string) string {
	plain := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%") == ""
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
