package verbs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/term"

	"fluentps/internal/plan/slurm"
	"fluentps/kernels/cpu"
)

// echo prints the head of a run's output: the build, the command, the place. A failed write does not stop a run.
func (j *job) echo(hash, mpiText string) {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "  %-10s %s\n", label, text) }
	fmt.Fprintf(&b, "fluentps %s\n", buildText())
	line("command", commandLine(os.Args))
	line("folder", workingDir())
	line("MPI", mpiText)
	line("kernels", cpu.Backend())
	line("seed", fmt.Sprint(j.cfg.Seed))
	line("config", fmt.Sprintf("%s, sha256 %.12s of the resolved values", j.file, hash))
	if j.limit > 0 {
		line("max time", j.limit.String())
	}
	fmt.Fprint(j.out, b.String())
}

// warnings prints the warnings and notes that check prints. A failed write does not stop a run.
func (j *job) warnings() {
	if !j.diags.Failed() {
		_ = j.diags.Write(j.warn)
	}
}

// runInfo is the content of run.json, except for the rank map.
func (j *job) runInfo(host, mpiText string, crowded bool) map[string]any {
	b := readBuild()
	return map[string]any{
		"command": os.Args, "folder": workingDir(), "host": host, "started": j.start.UTC().Format(time.RFC3339),
		"version": b.version, "commit": b.commit, "dirty": b.dirty, "tags": strings.Fields(b.tags),
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "gomaxprocs": runtime.GOMAXPROCS(0), "crowded": crowded,
		"mpi": mpiText, "kernels": cpu.Backend(), "config": j.file, "environment": environment(os.Environ()),
	}
}

// environment keeps the variables that describe where a run took place. SLURM_JWT is a password, of Slurm's REST interface.
func environment(all []string) map[string]string {
	kept := map[string]string{}
	for _, pair := range all {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == "SLURM_JWT":
		case strings.HasPrefix(name, "SLURM_"), strings.HasPrefix(name, "FLUENTPS_"), name == "OMPI_COMM_WORLD_SIZE", name == "PMI_SIZE",
			name == "OMP_NUM_THREADS", name == "OPENBLAS_CORETYPE", name == "ONEDNN_MAX_CPU_ISA", name == "DNNL_MAX_CPU_ISA",
			name == "OPENBLAS_NUM_THREADS", name == "GOGC", name == "GOMAXPROCS", name == "GODEBUG":
			kept[name] = value
		}
	}
	return kept
}

func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return "unknown: " + err.Error()
	}
	return dir
}

// commandLine is the line to paste into a shell. Words that a shell would split or expand are quoted.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = slurm.Quote(w)
	}
	return strings.Join(quoted, " ")
}

// terminal says whether a file is a terminal that a person reads, and how many columns it has. mpirun gives its ranks a
// terminal of zero columns, wherever its own output goes.
func terminal(f *os.File) (ok bool, width int) {
	if !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return false, 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0, width
}
