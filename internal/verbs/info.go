package verbs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/comm/mpi"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/slurm"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/kernels/cpu"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("version takes no argument, got %q", c.Args().First())
			}
			cli.VersionPrinter(c)
			return nil
		},
	}
}

func infoCommand() *cli.Command {
	return &cli.Command{Name: "info", Usage: "show what is built into this binary, and the Slurm job it is in", Action: infoVerb}
}

func infoVerb(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	b := readBuild()
	transports := []string{"inproc"}
	if withMPI() {
		transports = append(transports, "mpi")
	}
	rows := [][2]string{
		{"version", b.version},
		{"commit", cmp.Or(b.commit, "unknown") + map[bool]string{true: ", with uncommitted changes"}[b.dirty]},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"build tags", cmp.Or(b.tags, "none")},
		{"MPI", cmp.Or(mpi.Library(), "not built in: make build")},
		{"CUDA-aware", mpi.CUDA()},
		{"processor", cpu.Processor().String()},
		{"kernels", cpu.Backend()},
		{"devices", devices()},
		{"transports", words(transports)},
		{"", ""},
		{"schemes", words(scheme.All.Names()) + "   (fluentps explain NAME)"},
		{"send", words(send.All.Names())},
		{"payloads", words(payload.All.Names())},
		{"placements", words(shard.Placements())},
		{"slices", words(shard.Slices())},
		{"", ""},
		{"models", words(workload.ModelNames())},
		{"data sets", words(dataset.SetNames())},
		{"partitions", words(dataset.PartitionNames())},
		{"optimizers", words(optim.Names())},
		{"schedules", words(optim.ScheduleNames())},
	}
	if job := jobText(); job != "" {
		rows = append(rows, [2]string{"", ""}, [2]string{"Slurm", job})
	}
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(strings.TrimRight(fmt.Sprintf("%-11s %s", r[0], r[1]), " ") + "\n")
	}
	_, err := fmt.Fprint(c.App.Writer, text.String())
	return err
}

// squeueTime bounds how long info waits for the controller of Slurm, which may be busy or down.
const squeueTime = 5 * time.Second

// jobText describes the Slurm job of this process, without the facts that are unknown. It returns "" outside a job.
func jobText() string {
	job, err := slurm.FromEnv(os.Getenv)
	if job == nil && err != nil {
		return err.Error()
	}
	if job == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), squeueTime)
	defer cancel()
	now := time.Now()
	if left, limited, unknown := job.Remaining(ctx, now, slurm.Ask); unknown == nil && limited {
		job.End = now.Add(left)
	}
	text := job.Text(now)
	if err != nil {
		text += "\n" + err.Error()
	}
	return text
}

func words(names []string) string { return strings.Join(names, " ") }
