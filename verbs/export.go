package verbs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/ps/checkpoint"
	"fluentps/ps/metrics"
	"fluentps/ps/params"
	"fluentps/ps/resume"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write the parameters of a checkpoint to a file that other programs read",
		ArgsUsage: "DIR|CHECKPOINT OUT.safetensors|OUT.npz",
		Description: "DIR is a run folder, whose newest whole checkpoint is taken; CHECKPOINT is one of it, as DIR/checkpoints/best\n" +
			"or DIR/checkpoints/000000000003. The suffix of OUT says the form: safetensors, or the npz of NumPy. Every\n" +
			"parameter has the name and shape that the model gives it, float32, row major: fc1.weight is outputs x inputs.\n" +
			"model: {init: OUT} begins another run with the file, on any number of servers. ps/checkpoint/README.md tells more.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "optimizer", Usage: "add what the servers keep of their optimizer, as in optimizer.velocity.fc1.weight"},
			&cli.BoolFlag{Name: "force", Usage: "replace OUT if it is there"},
		},
		Action: exportVerb,
	}
}

func exportVerb(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("export takes DIR or CHECKPOINT, and OUT, got %d arguments%s; see fluentps export -h", c.NArg(), listed(c.Args().Slice()))
	}
	from, out := c.Args().Get(0), c.Args().Get(1)
	if err := freeFile(out, c.Bool("force")); err != nil {
		return err
	}
	candidates, err := exported(from)
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

// export writes the tensors of a checkpoint.
func export(c *cli.Context, dir string, from *checkpoint.Tensors, out string) error {
	m := from.Manifest
	if c.Bool("optimizer") && len(m.Optimizer) == 0 {
		return usagef("export: the servers of %s keep nothing of an optimizer: train.optimizer.name is %s, or the workers have its state; leave --optimizer out", dir, m.Config["train.optimizer.name"])
	}
	n, sum, err := params.Export(from, out, c.Bool("optimizer"))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s of %s, iteration %d, %d samples\nparameters_sha256 %s\n", out, metrics.Count(n, "tensor"), dir, m.Iteration, m.Samples, sum)
	return err
}

// freeFile refuses an OUT that cannot be written, before anything is read.
func freeFile(out string, force bool) error {
	if out == "-" {
		return usagef("export: OUT is -, and a file of parameters does not go to standard output; name a file that ends in %s", strings.Join(params.Forms(), " or "))
	}
	if _, err := params.FormOf(out); err != nil {
		return usagef("export: OUT %v", err)
	}
	info, err := os.Lstat(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		folder, err := os.Stat(filepath.Dir(out))
		if err == nil && !folder.IsDir() {
			err = fmt.Errorf("%s is no folder", filepath.Dir(out))
		}
		if err != nil {
			return usagef("export: OUT: %v; make the folder, or name another file", err)
		}
		return nil
	case err != nil:
		return usagef("export: OUT: %v; name another file", err)
	case !info.Mode().IsRegular():
		return usagef("export: OUT %s is there, and no regular file; name another", out)
	case !force:
		return usagef("export: OUT %s is there already; name another file, or replace it with --force", out)
	}
	return nil
}

// exported are the folders of the checkpoints that a word means: one, or those of a run, the newest first.
func exported(from string) ([]string, error) {
	root, name, one := resume.OneCheckpoint(from)
	if !one {
		dirs, err := checkpoint.List(filepath.Join(from, checkpoint.Folder))
		if err == nil && len(dirs) == 0 {
			if _, err = os.Stat(from); err == nil {
				err = fmt.Errorf("there is no checkpoint in %s; name the folder of a run that has one (checkpoint.keep: 1 or more), or one checkpoint of it", filepath.Join(from, checkpoint.Folder))
			}
		}
		return dirs, err
	}
	dir, err := checkpoint.Find(root, name)
	return []string{dir}, err
}
