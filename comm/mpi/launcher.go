package mpi

import (
	"fmt"
	"strconv"
	"strings"
)

// UnderLauncher tells from the environment whether mpirun, mpiexec or srun started this process as
// a rank. A batch script or a login shell inside a job is not a rank.
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

// LauncherSize is the number of ranks that the launcher says it started, and the variable that says
// so; 0 and "" when none does. SLURM_NTASKS counts only inside a step that srun started: mpirun
// inside a job sets the others, and a batch script has SLURM_NTASKS without being a rank.
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

// inStep tells whether srun started this process as a task. The batch script and an interactive
// shell are steps too, with numbers from 0xfffffff0 up.
func inStep(getenv func(string) string) bool {
	step, err := strconv.ParseUint(getenv("SLURM_STEP_ID"), 10, 32)
	return err == nil && step < 0xfffffff0
}

// CheckWorld compares the world that MPI sees with what the launcher started. They differ when the
// launcher belongs to another MPI than the binary: each process is then a world of its own.
func CheckWorld(size int, library string, getenv func(string) string) error {
	n, from := LauncherSize(getenv)
	if n == 0 || n == size {
		return nil
	}
	return fmt.Errorf("mpi: %s says %d ranks, but MPI sees a world of %d: this binary is linked with %s; start it with the mpirun of that MPI, or with an srun --mpi plugin that fits it",
		from, n, size, library)
}

// checkVendor fails when the MPI loaded at run time has another binary interface than the mpi.h that
// this binary was compiled with.
func checkVendor(compiled, running string) error {
	const openMPI = "Open MPI"
	if strings.Contains(compiled, openMPI) == strings.Contains(running, openMPI) {
		return nil
	}
	return fmt.Errorf("mpi: compiled with the mpi.h of %s, but the library loaded is %s: set LD_LIBRARY_PATH to the former or build again", compiled, running)
}
