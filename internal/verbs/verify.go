package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/show/verify"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "find the first version and shard at which two runs differ",
		ArgsUsage: "A B",
		Description: "A and B are run folders. What is compared: checksums of the versions of shards, which runs with " +
			"metrics.digests: N keep; the\n" +
			"checkpoints that both made after as many samples; the parameters at the end. bsp, drop with all workers required and all-reduce\n" +
			"give the same bits again with one seed; asynchronous schemes do not. Exit code 0: nothing differs; 1: something does; 2: there\n" +
			"was nothing to compare, or nothing differs but files are damaged. The folder of an experiment stands for its newest run.",
		Action: verifyVerb,
	}
}

func verifyVerb(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("verify takes the folders A and B, got %d arguments%s; see fluentps verify -h", c.NArg(), listed(c.Args().Slice()))
	}
	r, err := verify.Compare(c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return usagef("verify: %v", err)
	}
	if _, err := io.WriteString(c.App.Writer, strings.Join(r.Lines, "\n")+"\n"); err != nil {
		return err
	}
	switch {
	case r.Differ:
		return fmt.Errorf("verify: the runs differ")
	case r.Damaged > 0:
		return usagef("verify: nothing differs in what was compared, but damaged files were left out: %d", r.Damaged)
	case r.Compared == 0:
		return usagef("verify: there was nothing to compare: run both with metrics.digests: 1, or with a checkpoint")
	}
	return nil
}
