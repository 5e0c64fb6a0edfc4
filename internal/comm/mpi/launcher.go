package mpi

import (
	"fmt"
	"strconv"
	"strings"
)

// UnderLauncher returns, from the environment, whether mpirun, mpiexec or srun started this process as a rank. A batch
// script or a login shell inside a job is not a rank.
func UnderLauncher(getenv func(string) string) bool {
	if n, _ := LauncherSize(getenv); n > 0 {
		return true
	}
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"} {
		if getenv(name) != "" {
			return true
		}
	}
	return false
}

// LauncherSize returns the number of ranks that the launcher says it started, and the variable that says so; 0 and ""
// if none does. SLURM_NTASKS counts only inside a step that srun started: mpirun inside a job sets the others, and a
// batch script has SLURM_NTASKS without being a rank.
func LauncherSize(getenv func(string) string) (n int, from string) {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"} {
		if name == "SLURM_NTASKS" && !inStep(getenv) {
			continue
		}
		if n, err := strconv.Atoi(getenv(name)); err == nil && n > 0 {
			return n, name
		}
	}
	return 0, ""
}

// inStep returns whether srun started this process as a task. The batch script and an interactive shell are steps too,
// with numbers from 0xfffffff0 up.
func inStep(getenv func(string) string) bool {
	step, err := strconv.ParseUint(getenv("SLURM_STEP_ID"), 10, 32)
	return err == nil && step < 0xfffffff0
}

// The two families of MPI libraries. A binary compiled for one cannot run on the other. Intel MPI, MVAPICH and Cray
// MPICH share MPICH's binary interface.
const (
	openMPI = "Open MPI"
	mpich   = "MPICH"
)

// family returns the family of a library, from the library's own description.
func family(library string) string {
	if strings.Contains(library, openMPI) {
		return openMPI
	}
	return mpich
}

// launcherFamily returns the family of the mpirun or mpiexec that started this process, and the variable that says so.
// It returns "" and "" if that is open: srun serves both families through its plugins, and with one launcher inside the
// other either may be meant. PMI_RANK alone may also come from srun --mpi=pmi2; only MPICH's launcher sets
// MPI_LOCALNRANKS.
func launcherFamily(getenv func(string) string) (starter, from string) {
	const ompi, hydra = "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"
	byHydra := getenv(hydra) != "" && getenv("PMI_RANK") != ""
	switch byOMPI := getenv(ompi) != ""; {
	case byOMPI && !byHydra:
		return openMPI, ompi
	case byHydra && !byOMPI:
		return mpich, hydra
	}
	return "", ""
}

// checkLauncher fails if the launcher of another MPI than the compiled one started this process. It must run before MPI
// is initialised: MPI itself would make each process a world of its own, or die for lack of daemons.
func checkLauncher(compiled string, getenv func(string) string) error {
	mine := family(compiled)
	starter, from := launcherFamily(getenv)
	if starter == "" || starter == mine {
		return nil
	}
	launcher, started, rebuild := "mpirun", "mpiexec", "make build MPI=mpich"
	if mine == mpich {
		launcher, started, rebuild = "mpiexec", "mpirun", "make build"
	}
	return fmt.Errorf("mpi: this binary is built for %s (%s), but %s's %s started it (%s is set): use %s's %s, or a binary for %s: %s",
		mine, compiled, starter, started, from, mine, launcher, starter, rebuild)
}

// CheckWorld compares the world that MPI sees with the ranks that the launcher started. They differ if the binary's MPI
// understands no interface that the launcher offers: each process is then a world of its own.
func CheckWorld(size int, library string, getenv func(string) string) error {
	n, from := LauncherSize(getenv)
	if n == 0 || n == size {
		return nil
	}
	if size == 1 && from == "SLURM_NTASKS" {
		return fmt.Errorf(
			"mpi: srun started %d tasks (%s), but MPI sees a world of 1 in each: srun did not connect them; start it with "+
				"srun --mpi=%s (srun --mpi=list shows what there is); this binary is linked with %s",
			n, from, Plugin(library), library)
	}
	return fmt.Errorf("mpi: %s says %d ranks, but MPI sees a world of %d: this binary is linked with %s; start it "+
		"with the launcher of that MPI, or with srun --mpi=%s",
		from, n, size, library, Plugin(library))
}

// Plugin returns the value of srun's option --mpi that suits a library: Open MPI is built with PMIx, MPICH with PMI.
func Plugin(library string) string {
	if family(library) == openMPI {
		return "pmix"
	}
	return "pmi2"
}

// checkVendor fails if the MPI loaded at run time has another binary interface than the mpi.h that this binary was
// compiled with.
func checkVendor(compiled, running string) error {
	if family(compiled) == family(running) {
		return nil
	}
	return fmt.Errorf("mpi: compiled with the mpi.h of %s, but the library loaded is %s: set LD_LIBRARY_PATH to the "+
		"former or build again", compiled, running)
}
