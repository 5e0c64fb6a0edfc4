package mpi

import (
	"strings"
	"testing"
)

func env(pairs string) func(string) string {
	vars := make(map[string]string)
	for _, p := range strings.Fields(pairs) {
		name, value, _ := strings.Cut(p, "=")
		vars[name] = value
	}
	return func(name string) string { return vars[name] }
}

func TestLauncher(t *testing.T) {
	for _, c := range []struct {
		name, env string
		under     bool
		n         int
		from      string
	}{
		{"shell", "HOME=/root", false, 0, ""},
		{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0", true, 4, "OMPI_COMM_WORLD_SIZE"},
		{"MPICH's mpiexec", "PMI_SIZE=3 PMI_RANK=2", true, 3, "PMI_SIZE"},
		{"srun with pmix", "SLURM_STEP_ID=0 SLURM_NTASKS=8 SLURM_PROCID=3 PMIX_RANK=3", true, 8, "SLURM_NTASKS"},
		{"srun without a plugin", "SLURM_STEP_ID=5 SLURM_NTASKS=8 SLURM_PROCID=3", true, 8, "SLURM_NTASKS"},
		{"sbatch script", "SLURM_JOB_ID=7 SLURM_NTASKS=8 SLURM_PROCID=0", false, 0, ""},
		{"sbatch script as a step", "SLURM_STEP_ID=4294967291 SLURM_NTASKS=8", false, 0, ""},
		{"salloc's shell as a step", "SLURM_STEP_ID=4294967290 SLURM_NTASKS=8", false, 0, ""},
		{"mpirun in sbatch, through orted's step", "SLURM_STEP_ID=0 SLURM_NTASKS=4 OMPI_COMM_WORLD_SIZE=8", true, 8, "OMPI_COMM_WORLD_SIZE"},
		{"PMIx alone", "PMIX_RANK=0", true, 0, ""},
		{"nonsense", "PMI_SIZE=many", false, 0, ""},
		{"zero", "OMPI_COMM_WORLD_SIZE=0", false, 0, ""},
	} {
		n, from := LauncherSize(env(c.env))
		if n != c.n || from != c.from {
			t.Errorf("%s: LauncherSize is %d from %q, want %d from %q", c.name, n, from, c.n, c.from)
		}
		if got := UnderLauncher(env(c.env)); got != c.under {
			t.Errorf("%s: UnderLauncher is %v", c.name, got)
		}
	}
}

func TestCheckWorld(t *testing.T) {
	for _, c := range []struct {
		size int
		env  string
		want string
	}{
		{1, "", ""},
		{4, "OMPI_COMM_WORLD_SIZE=4", ""},
		{1, "PMI_SIZE=4", "PMI_SIZE says 4 ranks, but MPI sees a world of 1: this binary is linked with Open MPI v4; " +
			"start it with the launcher of that MPI, or with srun --mpi=pmix"},
		{1, "SLURM_NTASKS=4", ""},
		{1, "SLURM_NTASKS=4 SLURM_STEP_ID=0", "srun started 4 tasks (SLURM_NTASKS), but MPI sees a world of 1 in each: " +
			"srun did not connect them; start it with srun --mpi=pmix (srun --mpi=list"},
		{1, "SLURM_NTASKS=1 SLURM_STEP_ID=0", ""},
		{2, "SLURM_NTASKS=4 SLURM_STEP_ID=0", "SLURM_NTASKS says 4 ranks, but MPI sees a world of 2"},
	} {
		err := CheckWorld(c.size, "Open MPI v4", env(c.env))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("size %d, %q: %v, want %q", c.size, c.env, err, c.want)
		}
	}
}

func TestCheckLauncher(t *testing.T) {
	for _, c := range []struct {
		name, compiled, env string
		want                []string // in the error; none: no error
	}{
		{"its own", "Open MPI 4.1.4", "OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=0", nil},
		{"its own", "MPICH 4.0.2", "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=4", nil},
		{"none", "MPICH 4.0.2", "HOME=/root", nil},
		{"Hydra", "Open MPI 4.1.4", "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=4",
			[]string{"built for Open MPI (Open MPI 4.1.4)", "MPICH's mpiexec started it (MPI_LOCALNRANKS",
				"use Open MPI's mpirun", "make build MPI=mpich"}},
		{"Open MPI's mpirun", "MPICH 4.0.2", "OMPI_COMM_WORLD_SIZE=4",
			[]string{"built for MPICH (MPICH 4.0.2)", "Open MPI's mpirun started it (OMPI_COMM_WORLD_SIZE",
				"use MPICH's mpiexec", "for Open MPI: make build"}},
		{"srun --mpi=pmi2, which some builds of Open MPI know", "Open MPI 4.1.4", "PMI_RANK=0 PMI_SIZE=4 SLURM_STEP_ID=0", nil},
		{"one inside the other", "MPICH 4.0.2", "OMPI_COMM_WORLD_SIZE=1 PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=4", nil},
	} {
		err := checkLauncher(c.compiled, env(c.env))
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s of %s: %v", c.compiled, c.name, err)
			continue
		}
		for _, text := range c.want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s under %s: %q lacks %q", c.compiled, c.name, err, text)
			}
		}
	}
}

func TestCheckVendor(t *testing.T) {
	for _, c := range []struct {
		compiled, running string
		ok                bool
	}{
		{"Open MPI 4.1.4", "Open MPI v4.1.4, package: Debian", true},
		{"Open MPI 4.1.4", "Open MPI v5.0.1", true},
		{"Open MPI 4.1.4", "MPICH Version:	4.0.2", false},
		{"MPICH 4.0.2", "Open MPI v4.1.4", false},
		{"MPICH 4.0.2", "Intel(R) MPI Library 2021.8", true}, // one binary interface
	} {
		err := checkVendor(c.compiled, c.running)
		if (err == nil) != c.ok {
			t.Errorf("%q on %q: %v", c.compiled, c.running, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.compiled) || !strings.Contains(err.Error(), c.running)) {
			t.Errorf("error does not name both: %v", err)
		}
	}
}
