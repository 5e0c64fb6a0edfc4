package verbs

import (
	"fmt"
	"os"
	"strconv"

	"fluentps/comm/mpi"
	"fluentps/configs"
	"fluentps/slurm"
)

// launcherRank is this process's rank by the launcher's own account, -1 if it does not say.
func launcherRank(getenv func(string) string) int {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// exampleWorkers is how many workers the launch lines show.
const exampleWorkers = 4

// noLauncher tells how to start ranks, for a run that was started as one process.
func noLauncher(in *input, getenv func(string) string) error {
	servers := in.cfg.Cluster.Servers
	ranks, roles := servers+exampleWorkers, fmt.Sprintf("%d servers and %d workers", servers, exampleWorkers)
	if in.cfg.Cluster.Placement == "colocate" {
		ranks = max(servers, exampleWorkers)
		roles = fmt.Sprintf("%d workers, %d of them serve too", ranks, servers)
	}
	if in.cfg.Baseline == configs.BaselineAllreduce {
		ranks, roles = exampleWorkers, fmt.Sprintf("%d workers", exampleWorkers)
	}
	launch := "mpirun"
	if getenv("SLURM_JOB_ID") != "" {
		launch = "srun --mpi=" + plugin() // a batch script that forgot it; without the plugin each task may be a world of its own
	}
	note := "one process per rank"
	if !withMPI() {
		note += "; first make build: this binary has no MPI"
	}
	self, file := slurm.Quote(os.Args[0]), slurm.Quote(slurm.File(in.file))
	return usagef("run: started neither by mpirun nor by srun, and without --local; for %s type one of\n"+
		"  %s -n %d %s run %s\n      %s\n"+
		"  %s run --local %d %s\n      ranks as goroutines of one process",
		roles, launch, ranks, self, file, note, self, ranks, file)
}

// localUnderLauncher refuses N copies of a run of goroutines.
func localUnderLauncher(ranks int, getenv func(string) string) error {
	n, from := mpi.LauncherSize(getenv)
	if n < 2 {
		return nil
	}
	return usagef("run: --local %d is one process, but the launcher started %d of them (%s): leave out --local, or the launcher", ranks, n, from)
}

// notBuilt is for ranks of a launch whose binary cannot speak MPI.
func notBuilt(in *input, getenv func(string) string) error {
	n, from := mpi.LauncherSize(getenv)
	by := "a launcher"
	if n > 0 {
		by = fmt.Sprintf("a launcher (%s is %d)", from, n)
	}
	return usagef("run: started by %s, but this binary is built without MPI: make build; or without the launcher: %s run --local %d %s", by, slurm.Quote(os.Args[0]), max(n, 2), slurm.Quote(slurm.File(in.file)))
}

// withoutPMI is a hint for tasks of srun that are offered no way to find each other; "" if there is no sign of that. MPI
// may end such a process by itself, with a long text and no word of the option that was forgotten.
func withoutPMI(getenv func(string) string) string {
	n, from := mpi.LauncherSize(getenv)
	if n < 2 || from != "SLURM_NTASKS" {
		return ""
	}
	for _, name := range []string{"PMIX_NAMESPACE", "PMI_FD", "PMI_PORT"} {
		if getenv(name) != "" {
			return ""
		}
	}
	return fmt.Sprintf("note: srun started %d tasks without PMIx or PMI; if MPI does not start now, use srun --mpi=%s (srun --mpi=list shows what there is)",
		n, plugin())
}

// plugin is srun's option --mpi for this binary; one without MPI will be built for Open MPI, unless somebody says otherwise.
func plugin() string {
	if !withMPI() {
		return "pmix"
	}
	return mpi.Plugin(mpi.Library())
}

// withMPI says whether this binary has the transport.
func withMPI() bool { return mpi.Library() != "" }
