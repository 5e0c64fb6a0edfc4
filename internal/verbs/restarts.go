package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/comm/mpi"
	"fluentps/internal/disk/lock"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/supervise"
	"fluentps/internal/show/metrics"
)

const restartsMax = 1000

// runSupervised is the verb run with --restarts.
func runSupervised(c *cli.Context, began time.Time) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, requestSignals()...)
	keepPipes()
	o, err := supervision(c, began, signals)
	if err != nil {
		return err
	}
	end, err := supervise.Run(c.Context, *o)
	if err != nil {
		return err
	}
	return &exitError{end.Code, end.Text}
}

// supervision reads the command line of run --restarts.
func supervision(c *cli.Context, began time.Time, signals chan os.Signal) (*supervise.Options, error) {
	const example = "fluentps run CONFIG --restarts 3 -- mpirun -n 6, or --local 6 in place of a launcher"
	n, local := c.Int("restarts"), c.IsSet("local")
	o := &supervise.Options{
		Program: os.Args[0], File: c.Args().First(), Flags: func(maxTime bool) []string { return childFlags(c, maxTime) },
		Restarts: n, Began: began, Signals: signals, Out: fileOf(c.App.Writer), Err: c.App.ErrWriter,
		Say: func(text string) { printError(c.App.ErrWriter, text) },
	}
	if c.NArg() > 0 {
		o.Launcher = c.Args().Slice()[1:]
	}
	switch {
	case n < 0 || n > restartsMax:
		return nil, usagef("run: --restarts is %d, must be 0 to %d", n, restartsMax)
	case mpi.UnderLauncher(os.Getenv):
		return nil, usagef("run: a launcher started this process, but with --restarts fluentps starts the launcher: %s", example)
	case c.NArg() == 0 || local == (len(o.Launcher) > 0):
		return nil, usagef("run: --restarts needs either a launcher or --local, to start the ranks: %s", example)
	}
	if err := cmp.Or(checkResumeFlags(c), checkStart(c)); err != nil {
		return nil, err
	}
	o.Series = cmp.Or(c.String(startFlag), lock.NewSeries())
	var err error
	if o.Limit, err = timeLimit(c); err != nil {
		return nil, err
	}
	if err := supervise.CheckPlaces(o.Launcher, c.IsSet("hosts")); err != nil {
		return nil, usagef("run: %v", err)
	}
	if c.IsSet("hosts") {
		if o.Hosts, err = hostList("run", c.String("hosts")); err != nil {
			return nil, err
		}
	}
	in := readInput(c, o.File)
	if err := in.problem(); err != nil {
		return nil, err
	}
	if n > 0 {
		warnWithoutCheckpoints(c, in)
	}
	o.Replicas = in.cfg.Checkpoint.Replica > 0
	if !local { // before there is a folder that nobody would write to
		if _, err := exec.LookPath(o.Launcher[0]); err != nil {
			return nil, usagef("run: cannot start %s: %v", o.Launcher[0], err)
		}
	}
	return o, chooseFolder(c, o, in.cfg.Name)
}

// warnWithoutCheckpoints warns that restarts will have no checkpoint to resume from.
func warnWithoutCheckpoints(c *cli.Context, in *input) {
	if q := &in.cfg.Checkpoint; !q.Periodic() || q.Keep == 0 {
		printError(c.App.ErrWriter, "no checkpoint is written during training, so a restart begins at iteration 0: set checkpoint.every")
	}
}

// chooseFolder chooses the run folder, so that all starts use the same one.
func chooseFolder(c *cli.Context, o *supervise.Options, name string) error {
	out, from := c.String("out"), c.String("resume")
	mode := "local"
	if len(o.Launcher) > 0 {
		mode = "mpi"
	}
	id, err := jobID(mode)
	if err != nil {
		return err
	}
	spec := metrics.FolderSpec{Root: "runs", Name: name, Now: o.Began, JobID: id, Out: out}
	if from != "" && from != resume.Auto {
		o.Dir, o.First = from, []string{"--resume=" + from}
		if root, _, one := resume.OneCheckpoint(from); one {
			o.Dir, o.Named = filepath.Dir(root), from
		}
		return nil
	}
	if from == resume.Auto {
		o.First = []string{"--resume=auto"}
	}
	if o.Dir = out; out == "" && from == resume.Auto {
		folders, others := metrics.RunFolders(spec)
		if others > 0 {
			o.Say(metrics.OthersText(spec, others))
		}
		if i := slices.IndexFunc(folders, func(dir string) bool { return supervise.Newest(dir) != "" }); i >= 0 {
			o.Dir = folders[i]
		}
	}
	if o.Dir == "" {
		f, err := metrics.CreateRunFolder(spec)
		if err != nil {
			return err
		}
		o.Dir = f.Dir
		if err := errors.Join(f.Remove("logs"), f.Close()); err != nil { // the run accepts only an empty folder
			return err
		}
	}
	if out != "" { // the supervisor watches it from before the first start; what is wrong with it the run says
		_ = os.MkdirAll(out, 0o777)
	}
	o.First = append(o.First, "--out="+o.Dir)
	return nil
}

// childFlags are the flags of this command line that every start inherits; --max-time only if maxTime is set.
func childFlags(c *cli.Context, maxTime bool) []string {
	words, own := []string{dashes(supervisedFlag)}, []string{"restarts", "hosts", "resume", "out", supervisedFlag, startFlag}
	if !maxTime {
		own = append(own, "max-time")
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(own, name) {
			continue
		}
		if _, many := f.(*cli.StringSliceFlag); many {
			for _, v := range c.StringSlice(name) {
				words = append(words, dashes(name)+"="+v)
			}
			continue
		}
		words = append(words, fmt.Sprintf("%s=%v", dashes(name), c.Value(name)))
	}
	return words
}
