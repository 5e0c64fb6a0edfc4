package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/foreign"
)

// Job is Slurm's description of this process's job, from the environment.
type Job struct {
	ID        string // of this job or array task
	Name      string
	Partition string
	Step      string   // number of the step that srun started; "" in the batch script and in a shell of salloc
	Nodes     []string // of the job; of a heterogeneous job: of all its parts, in their order
	Tasks     []int    // per node as scheduled, of the same length as Nodes; nil if Slurm does not say
	Groups    []Group  // parts of a heterogeneous job; nil for other jobs
	Restarts  int      // how often the job was requeued
	End       time.Time
	Array     *Array   // nil unless this is a task of an array
	GPUs      []string // indices on this node that Slurm has given to the step, or else to the job
	LocalID   int      // index among the tasks of this node, from 0; -1 if the launcher does not say
}

// Group is a part of a heterogeneous job.
type Group struct {
	Nodes []string
	Tasks []int // like Job.Tasks
}

// Array is the place of a task in its job array.
type Array struct {
	JobID string // of the whole array
	Index int
	Count int // of tasks; 0 if Slurm does not say
}

// name returns the text by which squeue finds exactly this job: the number of an array's last task is also that of the
// whole array.
func (j *Job) name() string {
	if j.Array != nil {
		return fmt.Sprintf("%s_%d", j.Array.JobID, j.Array.Index)
	}
	return j.ID
}

// FromEnv reads the job from the environment; it returns nil outside of a job. Missing variables leave their fields
// zero. The error names each variable that cannot be read. Without a valid job number FromEnv returns no job, because
// that number becomes part of proposed commands and of folder names.
func FromEnv(getenv func(string) string) (*Job, error) {
	e := &environment{getenv: getenv}
	id := e.jobNumber("SLURM_JOB_ID")
	if id == "" {
		return nil, errors.Join(e.errs...)
	}
	j := &Job{ID: id, Name: getenv("SLURM_JOB_NAME"), Partition: getenv("SLURM_JOB_PARTITION"), LocalID: -1}
	j.Restarts = e.number("SLURM_RESTART_COUNT", 0)
	if seconds := e.number("SLURM_JOB_END_TIME", 0); seconds > 0 {
		j.End = time.Unix(int64(seconds), 0)
	}
	if n := e.number("SLURM_STEP_ID", pseudoSteps); n < pseudoSteps {
		j.Step = strconv.Itoa(n)
	}
	if n := e.number("SLURM_HET_SIZE", 0); n > 0 {
		e.groups(j, n)
	} else {
		j.Nodes, j.Tasks = e.nodes("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE")
	}
	if id := e.jobNumber("SLURM_ARRAY_JOB_ID"); id != "" {
		j.Array = &Array{JobID: id, Index: e.number("SLURM_ARRAY_TASK_ID", 0), Count: e.number("SLURM_ARRAY_TASK_COUNT", 0)}
	}
	j.GPUs = e.gpus()
	j.LocalID = e.localID(j.Step != "")
	return j, errors.Join(e.errs...)
}

// pseudoSteps is the first of the numbers that Slurm gives to batch scripts, shells and the like instead of a step's.
const pseudoSteps = 0xfffffff0

// groupsMax exceeds the number of parts that Slurm allows a heterogeneous job.
const groupsMax = 128

type environment struct {
	getenv func(string) string
	errs   []error
}

func (e *environment) refuse(name string, err error) {
	e.errs = append(e.errs, fmt.Errorf("slurm: %s is %s: %w; unset it if it is left over from another job", name, clip(e.getenv(name)), err))
}

// jobNumber reads the number of a job, "" if the variable is not set or not valid.
func (e *environment) jobNumber(name string) string {
	text := e.getenv(name)
	if text != "" && !foreign.IsJob(text) {
		e.refuse(name, errors.New("not the number of a job, which is digits, as in 12, 12_3 or 12+1"))
		return ""
	}
	return text
}

// number reads a variable that holds an integer >= 0.
func (e *environment) number(name string, otherwise int) int {
	text := e.getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := number(text)
	if err != nil {
		e.refuse(name, err)
		return otherwise
	}
	return int(n)
}

// nodes reads a host list and the tasks of each of its nodes.
func (e *environment) nodes(list, counts string) (hosts []string, tasks []int) {
	hosts, err := Expand(e.getenv(list))
	if err != nil {
		e.refuse(list, err)
	}
	if tasks, err = Counts(e.getenv(counts)); err != nil {
		e.refuse(counts, err)
	}
	if len(tasks) != len(hosts) { // in a step on fewer nodes the counts are the step's
		tasks = nil
	}
	return hosts, tasks
}

// groups reads the parts of a heterogeneous job. The variables without a part's number describe the first part in its
// batch script, and all parts in a step over them.
func (e *environment) groups(j *Job, n int) {
	if n > groupsMax {
		e.refuse("SLURM_HET_SIZE", fmt.Errorf("more than %d parts", groupsMax))
		return
	}
	for i := range n {
		suffix := "_HET_GROUP_" + strconv.Itoa(i)
		var g Group
		g.Nodes, g.Tasks = e.nodes("SLURM_JOB_NODELIST"+suffix, "SLURM_TASKS_PER_NODE"+suffix)
		j.Groups = append(j.Groups, g)
		j.Nodes, j.Tasks = append(j.Nodes, g.Nodes...), append(j.Tasks, g.Tasks...)
	}
	if len(j.Tasks) != len(j.Nodes) {
		j.Tasks = nil
	}
}

// gpus returns the GPUs of this node that were given to the step, or else to the job.
func (e *environment) gpus() []string {
	for _, name := range []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"} {
		text := e.getenv(name)
		if text == "" {
			continue
		}
		gpus, err := expandRanges(text)
		if err != nil {
			e.refuse(name, err)
		}
		return gpus
	}
	gpus := make([]string, 0, min(e.number("SLURM_GPUS_ON_NODE", 0), hostsMax))
	for i := range cap(gpus) {
		gpus = append(gpus, strconv.Itoa(i))
	}
	return gpus
}

// localID asks the innermost launcher: under mpirun SLURM_LOCALID is the daemon's.
func (e *environment) localID(step bool) int {
	for _, name := range []string{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"} {
		if e.getenv(name) != "" {
			return e.number(name, -1)
		}
	}
	if !step {
		return -1
	}
	return e.number("SLURM_LOCALID", -1)
}

// Text describes the job in one line.
func (j *Job) Text(now time.Time) string {
	parts := []string{"job " + j.ID}
	if j.Name != "" {
		parts[0] += " (" + foreign.Text(j.Name) + ")"
	}
	if j.Array != nil {
		task := fmt.Sprintf("task %d of array %s", j.Array.Index, j.Array.JobID)
		if j.Array.Count > 0 {
			task += fmt.Sprintf(", %d tasks", j.Array.Count)
		}
		parts = append(parts, task)
	}
	if j.Partition != "" {
		parts = append(parts, "partition "+foreign.Text(j.Partition))
	}
	if j.Step != "" {
		parts = append(parts, "step "+j.Step)
	}
	for i, g := range j.Groups {
		parts = append(parts, fmt.Sprintf("part %d on %s", i, place(g.Nodes, g.Tasks)))
	}
	if j.Groups == nil && j.Nodes != nil {
		parts = append(parts, place(j.Nodes, j.Tasks))
	}
	if len(j.GPUs) > 0 {
		parts = append(parts, "GPUs "+foreign.Text(strings.Join(j.GPUs, ","))+" of this node")
	}
	if j.Restarts > 0 {
		parts = append(parts, fmt.Sprintf("requeued %d times", j.Restarts))
	}
	if !j.End.IsZero() {
		parts = append(parts, "ends in "+j.End.Sub(now).Round(time.Second).String())
	}
	return strings.Join(parts, "; ")
}

func place(nodes []string, tasks []int) string {
	text := foreign.Text(Compress(nodes))
	if tasks == nil {
		return text
	}
	sum := 0
	for _, n := range tasks {
		sum += n
	}
	return fmt.Sprintf("%s, %d tasks", text, sum)
}
