package verbs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/params"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write the parameters of a checkpoint to a file that other programs read",
		ArgsUsage: "DIR|CHECKPOINT OUT.safetensors|OUT.npz",
		Description: "DIR is a run folder, or the folder of an experiment, for its newest run: its newest complete " +
			"checkpoint is exported. CHECKPOINT is one checkpoint of a run, such as\n" +
			"DIR/checkpoints/best or DIR/checkpoints/000000000003. The suffix of OUT selects the format: safetensors, or npz for NumPy.\n" +
			"Every parameter has the name and shape that the model gives it, as float32 in row-major order: fc1.weight is outputs x inputs.\n" +
			"model: {init: OUT} starts another run with these parameters, on any number of servers. See internal/disk/checkpoint/README.md.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "optimizer", Usage: "add the optimizer state of the servers, such as optimizer.velocity.fc1.weight"},
			&cli.BoolFlag{Name: "force", Usage: "replace OUT if it exists"},
		},
		Action: exportVerb,
	}
}

func exportVerb(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("export takes DIR or CHECKPOINT, and OUT, got %d arguments%s; see fluentps export -h", c.NArg(), listed(c.Args().Slice()))
	}
	from, out := c.Args().Get(0), c.Args().Get(1)
	if err := checkOut(out, c.Bool("force")); err != nil {
		return err
	}
	candidates, err := checkpointsOf(from)
	if err != nil {
		return usagef("export: %v", err)
	}
	var bad []string
	for _, dir := range candidates {
		t, err := checkpoint.OpenTensors(dir)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		defer t.Close()
		for _, text := range bad {
			printError(c.App.ErrWriter, "WARNING: "+text)
		}
		return export(c, dir, t, out)
	}
	return usagef("export: no checkpoint can be exported:\n%s", strings.Join(bad, "\n"))
}

// runOf is the run that a folder stands for: itself, or the newest one of an experiment.
func runOf(dir string) string {
	if run, err := metrics.FindRun(dir); err == nil {
		return run
	}
	return dir // whoever reads it says what is missing
}

// export writes the tensors of a checkpoint.
func export(c *cli.Context, dir string, from *checkpoint.Tensors, out string) error {
	m := from.Manifest
	if c.Bool("optimizer") && len(m.Optimizer) == 0 {
		return usagef("export: the servers of %s keep no optimizer state: train.optimizer.name is %s, or the workers "+
			"keep the state; leave --optimizer out", dir, m.Config["train.optimizer.name"])
	}
	n, sum, err := params.Export(from, out, c.Bool("optimizer"))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s of %s, iteration %d, %d samples\nparameters_sha256 %s\n", out,
		metrics.Count(n, "tensor"), dir, m.Iteration, m.Samples, sum)
	return err
}

// checkOut refuses an OUT that cannot be written. It runs before the checkpoint is read, which may take minutes.
func checkOut(out string, force bool) error {
	if out == "-" {
		return usagef("export: OUT is -, but export does not write to standard output; name a file that ends in %s",
			strings.Join(params.Forms(), " or "))
	}
	if _, err := params.FormOf(out); err != nil {
		return usagef("export: OUT %v", err)
	}
	return checkNew("export: OUT", out, force)
}

// checkNew refuses a file that cannot be written, or that is there already. what names it in errors.
func checkNew(what, out string, force bool) error {
	info, err := os.Lstat(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		folder, err := os.Stat(filepath.Dir(out))
		if err == nil && !folder.IsDir() {
			err = fmt.Errorf("%s is not a folder", filepath.Dir(out))
		}
		if err != nil {
			return usagef("%s: %v; make the folder, or name another file", what, err)
		}
		return nil
	case err != nil:
		return usagef("%s: %v; name another file", what, err)
	case !info.Mode().IsRegular():
		return usagef("%s %s exists and is not a regular file; name another file", what, out)
	case !force:
		return usagef("%s %s exists already; name another file, or replace this one with --force", what, out)
	}
	return nil
}

// checkpointsOf returns the folders of the checkpoints that the first argument names: one, or those of a run with the newest first.
func checkpointsOf(from string) ([]string, error) {
	root, name, one := resume.OneCheckpoint(from)
	if !one {
		from = runOf(from)
		dirs, err := checkpoint.List(filepath.Join(from, checkpoint.Folder))
		if err == nil && len(dirs) == 0 {
			if _, err = os.Stat(from); err == nil {
				err = fmt.Errorf("there is no checkpoint in %s; name the folder of a run that has a checkpoint "+
					"(checkpoint.keep: 1 or more), or one checkpoint of a run", filepath.Join(from, checkpoint.Folder))
			}
		}
		return dirs, err
	}
	dir, err := checkpoint.Find(root, name)
	return []string{dir}, err
}
