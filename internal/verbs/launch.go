package verbs

import (
	"fmt"
	"os"
	"strconv"

	"fluentps/internal/comm/mpi"
	"fluentps/internal/configs"
	"fluentps/internal/plan/slurm"
)

// launcherRank is the rank that the launcher gave this process, -1 if the launcher does not say.
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

// noLauncher is the error of a run that was started as one process without --local. It shows how to start ranks.
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
		launch = "srun --mpi=" + plugin() // inside a batch script; without the plugin each task may be a world of its own
	}
	note := "one process per rank"
	if !withMPI() {
		note += "; first run make build: this binary has no MPI"
	}
	self, file := slurm.Quote(os.Args[0]), slurm.Quote(slurm.File(in.file))
	return usagef("run: neither mpirun nor srun started this process, and there is no --local; for %s type one of\n"+
		"  %s -n %d %s run %s\n      %s\n"+
		"  %s run --local %d %s\n      ranks as goroutines of one process",
		roles, launch, ranks, self, file, note, self, ranks, file)
}

// localUnderLauncher refuses --local under a launcher, which would start N copies of the same run.
func localUnderLauncher(ranks int, getenv func(string) string) error {
	n, from := mpi.LauncherSize(getenv)
	if n < 2 {
		return nil
	}
	return usagef("run: --local %d needs one process only, but the launcher started %d (%s): leave out --local, or "+
		"the launcher", ranks, n, from)
}

// notBuilt is the error of a rank that a launcher started from a binary without MPI.
func notBuilt(in *input, getenv func(string) string) error {
	n, from := mpi.LauncherSize(getenv)
	by := "a launcher"
	if n > 0 {
		by = fmt.Sprintf("a launcher (%s is %d)", from, n)
	}
	return usagef("run: started by %s, but this binary is built without MPI: run make build; or run without the "+
		"launcher: %s run --local %d %s", by, slurm.Quote(os.Args[0]), max(n, 2), slurm.Quote(slurm.File(in.file)))
}

// withoutPMI returns a hint for tasks of srun that have neither PMIx nor PMI to find each other, otherwise "". MPI may end
// such a process by itself, with a long text that does not name the missing option.
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
	return fmt.Sprintf("note: srun started %d tasks without PMIx or PMI; if MPI does not start now, use srun --mpi=%s "+
		"(srun --mpi=list shows the plugins)",
		n, plugin())
}

// plugin is the value of srun's option --mpi for this binary. For a binary without MPI it assumes Open MPI, the default build.
func plugin() string {
	if !withMPI() {
		return "pmix"
	}
	return mpi.Plugin(mpi.Library())
}

// withMPI says whether this binary has the MPI transport.
func withMPI() bool { return mpi.Library() != "" }
