package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/ps/foreign"
)

// Script is a batch script that trains: it goes on from the newest checkpoint whenever it starts, and gives itself back to
// the queue when its time runs out.
type Script struct {
	Job      string   // name in the queue
	Program  string   // fluentps, as it is to be called on the nodes
	Config   string   // the YAML file, relative to the folder of submission or absolute
	Flags    []string // more flags of run
	Account  string   // whom the time is charged to; "": as the site has it
	QOS      string   // quality of service; the same
	Out      string   // the run folder
	Time     time.Duration
	Parts    []Part   // more than one: a heterogeneous job, all in one MPI world, whose ranks come in this order
	Launcher string   // mpirun, or the plugin of srun: pmix, pmi2
	Restarts int      // how many times a job that died is started again inside the same allocation
	Array    *Indices // a job array; then Config and Out are folders, with one configuration and one run folder per index
}

// Part is a set of nodes of one kind.
type Part struct {
	What      string // says in a comment what runs there; "" needs no word
	Nodes     int
	Ranks     int
	Cores     int // per rank, the same in all parts; 0: as the site has it
	GPUs      int // per node; 0: none
	Partition string
	Memory    int64    // bytes per node; 0: as the site has it
	Options   []string // more options of sbatch, which CheckOption takes
}

// Indices are the tasks of an array.
type Indices struct {
	List     []int
	Parallel int // how many run at a time; 0: as many as fit
}

// Launchers are the values of Script.Launcher.
var Launchers = []string{"pmix", "pmi2", "mpirun"}

// Check says which word of the script cannot stand in one. Quotes keep a shell from reading it otherwise; but sbatch, which
// reads the lines before any shell does, knows none.
func (s *Script) Check() error {
	for _, w := range slices.Concat([]string{s.Program, s.Config, s.Out}, s.Flags) {
		if hasControls(w) {
			return fmt.Errorf("%s holds a line break or another control character, which cannot stand in a job script; rename the file, or write the setting into it", foreign.Text(w))
		}
	}
	if strings.HasPrefix(s.Program, "-") {
		return fmt.Errorf("the program is called %s, which a launcher takes for an option; call it with its folder", Quote(s.Program))
	}
	return nil
}

// warning is how long before its end a job is told to checkpoint. Slurm may send it a minute earlier, and looks every half
// minute.
const warning = 2 * time.Minute

// Text is the script. Every line that does something has a comment above it.
func (s *Script) Text() string {
	w := &writer{}
	w.raw("#!/usr/bin/env bash")
	w.comment("Submit from the folder in which " + s.Program + " and the files below are found: sbatch THIS-FILE. Submitted again, it goes on.")
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

func (w *writer) says(comment string, lines ...string) {
	w.comment(comment)
	for _, l := range lines {
		w.raw(l)
	}
}

// head writes what sbatch reads. Options of the first part hold for it alone, the others for the whole job.
func (s *Script) head(w *writer) {
	w.raw("")
	w.sbatch("The name in squeue, and of the files of output.", "--job-name="+s.Job)
	output := "%x-%j.out"
	if s.Array != nil {
		output = "%x-%A_%a.out"
	}
	w.sbatch("What is printed: "+output+" is the name with the number of the job.", "--output="+output)
	w.sbatch("After a requeue it is written behind what stands there.", "--open-mode=append")
	w.sbatch("After a failure of a node, or when the script asks, the job waits in the queue again.", "--requeue")
	w.sbatch(fmt.Sprintf("%d seconds before the end this script, not the ranks, gets a signal.", int(warning.Seconds())), fmt.Sprintf("--signal=B:USR1@%d", int(warning.Seconds())))
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
			w.sbatch("Here begins the next part of the job; all parts start together.", "hetjob")
		}
		if p.What != "" {
			w.comment(p.What)
		}
		s.part(w, p)
	}
}

func (s *Script) part(w *writer, p Part) {
	w.sbatch("Hosts.", fmt.Sprintf("--nodes=%d", p.Nodes))
	who := ", servers and workers together."
	if p.What != "" {
		who = "."
	}
	if p.Ranks%p.Nodes == 0 {
		w.sbatch("Ranks on each of them"+who, fmt.Sprintf("--ntasks-per-node=%d", p.Ranks/p.Nodes))
	} else {
		w.sbatch("Ranks over all of them"+who, fmt.Sprintf("--ntasks=%d", p.Ranks))
	}
	if p.Cores > 0 {
		w.sbatch("Cores for each rank.", fmt.Sprintf("--cpus-per-task=%d", p.Cores))
	}
	if p.GPUs > 0 {
		w.sbatch("GPUs of each host; the ranks that compute there take them in turn.", fmt.Sprintf("--gpus-per-node=%d", p.GPUs))
	}
	if p.Partition != "" {
		w.sbatch("The queue; sinfo lists them.", "--partition="+p.Partition)
	}
	if s.Account != "" {
		w.sbatch("Whom the time is charged to.", "--account="+s.Account)
	}
	if s.QOS != "" {
		w.sbatch("The quality of service.", "--qos="+s.QOS)
	}
	if p.Memory > 0 {
		w.sbatch("Memory of each host: the most that its ranks take, each with its copy of the data, and room for MPI and other libraries.", fmt.Sprintf("--mem=%dM", mebibytes(p.Memory)))
	}
	for _, o := range p.Options {
		w.sbatch("Asked for with --sbatch-arg.", o)
	}
	w.sbatch("Time limit, as days-hours:minutes:seconds. What is not done by then is done after a requeue.", "--time="+clock(s.Time))
}

// mebibytes rounds a size up to what sbatch calls M, in steps of 64.
func mebibytes(bytes int64) int64 {
	const step = 64 << 20
	return (bytes + step - 1) / step * (step >> 20)
}

// folders names the configuration and the run folder, and leaves where nothing is left to do.
func (s *Script) folders(w *writer) {
	w.raw("")
	w.says("A name that is not set is a mistake; exit codes are looked at below.", "set -u")
	config, out := Quote(File(s.Config)), Quote(File(s.Out))
	if s.Array != nil {
		w.says("Settings in the environment of the shell that submitted would overrule the configurations, which are complete. Those of kernels are the host's.", `for name in "${!FLUENTPS_@}"; do [[ $name == FLUENTPS_KERNELS_* ]] || unset "$name"; done`)
		w.says("The numbered configuration of this task, and the run folder beside it.", `number=$(printf '%04d' "$SLURM_ARRAY_TASK_ID")`)
		config, out = config+`"/$number.yaml"`, out+`"/$number"`
	}
	w.says("What to train. Another experiment is another file and another run folder.", "config="+config)
	w.says("All files of the run, on a file system that all hosts share. It goes on from the checkpoints there.", "out="+out)
	w.raw("")
	w.says("The program writes this line last: that a launcher leaves with 0 is no proof.",
		`finished() { grep -qs '"finished": "ok"' "$out/summary.json"; }`)
	w.says("Submitted once more after the end, there is nothing to do. To train on with a larger budget, remove these lines.",
		`if finished; then`, `	echo "$out has finished already"`, "	exit 0", "fi")
}

// launch starts the ranks in the background: a shell runs its traps only when what runs in front has ended.
func (s *Script) launch(w *writer) {
	w.raw("")
	w.says("Slurm's warning is handed on to the launcher, and by it to the ranks: they write a checkpoint and leave with 75.",
		`launcher="" warned="" early=""`,
		`trap 'if [ -n "$launcher" ]; then warned=yes; kill -USR1 "$launcher"; else early=yes; fi' USR1`)
	w.raw("")
	w.says("Whether this part of the job comes any further shows in what is newer than now.", "started=$(date +%s)")
	if s.Launcher == "pmix" {
		w.says("How the ranks wait for each other at the start. By Slurm's own choice some were seen to go on before all were there (22.05), and Open MPI then crashed.",
			"export SLURM_PMIX_FENCE=ring")
	}
	line, about := s.launcher()
	run := []string{Quote(s.Program), "run", `"$config"`, "--out", `"$out"`, "--resume", "auto"}
	for _, f := range s.Flags {
		run = append(run, Quote(f))
	}
	if s.Restarts > 0 {
		line = slices.Concat(run, []string{"--restarts", strconv.Itoa(s.Restarts), "--"}, line)
		about += fmt.Sprintf(" The program starts it, and where a process dies, starts it again, at most %d times, without another wait in the queue; what was trained since the newest checkpoint, which checkpoint.every asks for, is lost.", s.Restarts)
	} else {
		line = append(line, run...)
	}
	w.says(about+" Where the run folder has a checkpoint, the run goes on from it, else it begins.", strings.Join(line, " ")+" &")
	w.says("A warning that came before the launcher had a name is handed on when that can hear it. A later one ends wait early; the launcher is waited for again then.",
		"launcher=$!",
		`if [ -n "$early" ]; then`,
		"	sleep 1",
		`	kill -USR1 "$launcher"`,
		"fi")
	if s.mayStay() {
		w.says("With several parts, srun was seen to stay for good though all ranks had left (22.05). The run writes its summary last; half a minute after that, srun is ended.",
			`summed() { [ -n "$(find "$out/summary.json" -newermt "@$started" 2>/dev/null)" ]; }`,
			"(",
			`	until summed || ! kill -0 "$launcher"; do sleep 5; done`,
			"	sleep 30",
			`	! summed || kill -KILL "$launcher"`,
			") >/dev/null 2>&1 &",
			"guard=$!")
	}
	w.says("Until the launcher has left, and not only a warning has come.",
		"while :; do",
		`	warned=""`,
		`	wait "$launcher"`,
		"	code=$?",
		`	[ -n "$warned" ] || break`,
		"done")
	if s.mayStay() {
		w.says("The code of one that was ended says nothing: the summary tells which it was.",
			`kill "$guard" 2>/dev/null`,
			`if [ "$code" -eq 137 ] && summed; then`,
			"	if finished; then code=0; fi",
			`	if grep -qs '"finished": "stopped by ' "$out/summary.json"; then code=75; fi`,
			`	if grep -qs '"finished": "target .* not reached"' "$out/summary.json"; then code=5; fi`,
			"fi")
	}
}

// mayStay says whether the launcher was seen to stay when its ranks had left.
func (s *Script) mayStay() bool { return len(s.Parts) > 1 && s.Launcher != "mpirun" }

// launcher is how the ranks are started, and why so.
func (s *Script) launcher() (line []string, about string) {
	ranks, nodes, cores := 0, 0, s.Parts[0].Cores
	for _, p := range s.Parts {
		ranks += p.Ranks
		nodes += p.Nodes
	}
	line = []string{fmt.Sprintf("mpirun -n %d --bind-to none", ranks)}
	about = "Open MPI's launcher learns the hosts from Slurm."
	if nodes > 1 {
		line = append(line, keepAlive)
		about += " By itself it waits a quarter of an hour for a host that is cut off; with keep-alive messages it gives up after half a minute, which must be less than stall.peer."
	}
	if s.Launcher != "mpirun" {
		line = []string{"srun --mpi=" + s.Launcher}
		about = "srun --mpi=list shows which plugins there are: pmix for Open MPI, pmi2 for MPICH."
		if len(s.Parts) > 1 {
			line = append(line, "--het-group=0"+strings.Join(groupNumbers(len(s.Parts)), ""))
			about += " All parts make one MPI world."
		}
		if cores > 0 {
			number := `"$SLURM_CPUS_PER_TASK"`
			if len(s.Parts) > 1 { // which have a variable each
				number = strconv.Itoa(cores)
			}
			line = append(line, "--cpus-per-task="+number)
			about += " srun does not take the cores from sbatch by itself."
		}
		line = append(line, "--kill-on-bad-exit=1")
		about += " When one rank fails, all end."
	}
	return line, about
}

// keepAlive are options of Open MPI's mpirun, in seconds: after how long a silence it asks, how often, and how many times.
const keepAlive = "--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 4"

// groupNumbers are the parts behind the first.
func groupNumbers(n int) (numbers []string) {
	for i := 1; i < n; i++ {
		numbers = append(numbers, fmt.Sprintf(",%d", i))
	}
	return numbers
}

// end tells what became of the run by its exit code and its last line.
func (s *Script) end(w *writer) {
	w.raw("")
	id := `"$SLURM_JOB_ID"`
	if s.Array != nil { // the job number of the last task is that of all tasks, too
		id = `"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"`
	}
	w.says("75: stopped early with a checkpoint. The job keeps its number and waits in the queue again; this script ends here then.",
		`if [ "$code" -eq 75 ]; then`,
		`	echo "$out goes on after a requeue"`,
		"	scontrol requeue "+id+" && exit 0",
		"	exit 75",
		"fi")
	w.says("0, 1 and 5 are said of a run that is over. With any other code a rank died or does not answer any more, perhaps with its node, of which Slurm may know only minutes later: 4, more than 128, and 2, with which processes leave after a fatal error such as SIGBUS or want of memory. A run itself says 2 only before it trains. What came further than before is tried again.",
		`case $code in 0 | 1 | 5) again="" ;; *) again=$(find "$out/checkpoints" -maxdepth 1 -name '0*' -newermt "@$started" 2>/dev/null) ;; esac`,
		`if [ -n "$again" ]; then`,
		`	echo "$out failed with code $code, and goes on from its newest checkpoint after a requeue"`,
		"	scontrol requeue "+id+" && exit 0",
		"fi")
	w.says("A launcher that says 0 for a run that did not finish was seen after the failure of a node.",
		`if [ "$code" -eq 0 ] && ! finished; then`,
		`	echo "the launcher left with 0, but $out/summary.json does not say that the run finished" >&2`,
		"	code=1",
		"fi")
	w.says("The job fails if the run did.", `exit "$code"`)
}

// arrayList writes indices as sbatch reads them: 0-3,7.
func arrayList(indices []int) string {
	names := make([]string, len(indices))
	for i, n := range indices {
		names[i] = fmt.Sprint(n)
	}
	return ranges(names, 0)
}

// clock writes a time limit. Slurm's limits are whole minutes; seconds are rounded up by it.
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

// Quote writes a word so that a shell reads it as it is.
func Quote(word string) string {
	plain := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%") == ""
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
