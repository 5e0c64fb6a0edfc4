package main

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/comm/mpi"
	"fluentps/comm/payload"
	"fluentps/kernels/cpu"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

func infoCommand() *cli.Command {
	return &cli.Command{Name: "info", Usage: "show what is built into this binary", Action: infoVerb}
}

func infoVerb(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("info takes no arguments, got%s", listed(c.Args().Slice()))
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
		{"kernels", cpu.Backend()},
		{"devices", devices()},
		{"transports", words(transports)},
		{"", ""},
		{"schemes", words(scheme.Names()) + "   (fluentps explain NAME)"},
		{"send", words(send.Names())},
		{"payloads", words(payload.Names())},
		{"placements", words(shard.Placements())},
		{"slices", words(shard.Slices())},
		{"", ""},
		{"models", words(workload.ModelNames())},
		{"data sets", words(workload.SetNames())},
		{"partitions", words(workload.PartitionNames())},
		{"optimizers", words(optim.Names())},
		{"schedules", words(optim.ScheduleNames())},
	}
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(strings.TrimRight(fmt.Sprintf("%-11s %s", r[0], r[1]), " ") + "\n")
	}
	_, err := fmt.Fprint(c.App.Writer, text.String())
	return err
}

func words(names []string) string { return strings.Join(names, " ") }
