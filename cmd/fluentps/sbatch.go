package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/comm/mpi"
	ps "fluentps/ps/runtime"
	"fluentps/slurm"
)

// jobFlags say what a job script asks Slurm for.
func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "nodes", Value: 1, Usage: "in the job script: `N` hosts"},
		&cli.DurationFlag{Name: "time", Value: time.Hour, Usage: "in the job script: `LIMIT`, as in 3h50m"},
		&cli.StringFlag{Name: "partition", Usage: "in the job script: the `QUEUE`"},
		&cli.IntFlag{Name: "gpus", Usage: "in the job script: `N` GPUs of each host"},
		&cli.IntFlag{Name: "cores", Usage: "in the job script: `N` cores for each rank"},
		&cli.StringFlag{Name: "launcher", Usage: "in the job script: mpirun, or the `PLUGIN` of srun: pmix, pmi2; default: the plugin that fits the MPI of this binary"},
	}
}

// onlyWith refuses flags of a job script where none is written.
func onlyWith(c *cli.Context, writes string) error {
	for _, f := range jobFlags() {
		if name := f.Names()[0]; c.IsSet(name) && !c.Bool(writes) {
			return usagef("%s: --%s is for job scripts: add --%s", c.Command.Name, name, writes)
		}
	}
	return nil
}

// Limits of what a job script asks for: a number with a digit too many is a mistake of typing.
const (
	nodesMax    = 1 << 16
	perNodeMax  = 1 << 10
	jobTimeMin  = 5 * time.Minute // the warning comes two minutes before the end, and Slurm may send it a minute early
	jobTimeMax  = 366 * 24 * time.Hour
	batchFolder = "batch" // of runs/NAME: the run folder of job scripts, so that the same script begins and goes on
)

var partitionName = regexp.MustCompile(`^[A-Za-z0-9_.,-]*$`)

// jobScript is a script for in, of so many ranks, without its files.
func jobScript(c *cli.Context, in *input, ranks int) (*slurm.Script, error) {
	verb := c.Command.Name
	nodes, limit, launcher := c.Int("nodes"), c.Duration("time"), c.String("launcher")
	for _, n := range []struct {
		name     string
		min, max int
	}{{"nodes", 1, nodesMax}, {"gpus", 0, perNodeMax}, {"cores", 0, perNodeMax}} {
		if v := c.Int(n.name); v < n.min || v > n.max {
			return nil, usagef("%s: --%s is %d, must be %d to %d", verb, n.name, v, n.min, n.max)
		}
	}
	if launcher == "" {
		launcher = "pmix"
		if withMPI() {
			launcher = mpi.Plugin(mpi.Library())
		}
	}
	switch {
	case ranks < nodes:
		return nil, usagef("%s: %d ranks cannot fill %d hosts: raise --ranks or lower --nodes", verb, ranks, nodes)
	case limit < jobTimeMin || limit > jobTimeMax:
		return nil, usagef("%s: --time is %v, must be %v to %v: Slurm needs minutes to warn a job", verb, limit, jobTimeMin, jobTimeMax)
	case !partitionName.MatchString(c.String("partition")):
		return nil, usagef("%s: --partition is %q; sinfo lists the queues", verb, c.String("partition"))
	case !slices.Contains(slurm.Launchers, launcher):
		return nil, usagef("%s: %s", verb, unknown("launcher", launcher, slurm.Launchers))
	}
	s := &slurm.Script{
		Job: in.cfg.Name, Program: os.Args[0], Config: in.file, Time: limit, Launcher: launcher,
		Out: filepath.Join("runs", in.cfg.Name, batchFolder),
		Parts: []slurm.Part{{
			Nodes: nodes, Ranks: ranks, Cores: c.Int("cores"), GPUs: c.Int("gpus"), Partition: c.String("partition"),
		}},
	}
	for _, set := range c.StringSlice("set") {
		s.Flags = append(s.Flags, "--set", set)
	}
	return s, nil
}

// planScript writes the script of plan --sbatch, for a configuration whose roles fit the ranks.
func planScript(c *cli.Context, in *input) error {
	if c.IsSet("hosts") {
		return usagef("plan: Slurm chooses the hosts: with --sbatch give --ranks and --nodes instead of --hosts")
	}
	s, err := jobScript(c, in, c.Int("ranks"))
	if err != nil {
		return err
	}
	if _, err := ps.Roles(in.cfg, spreadHosts(c.Int("ranks"), c.Int("nodes"))); err != nil {
		return usagef("plan: %v", err)
	}
	_, err = io.WriteString(c.App.Writer, s.Text())
	return err
}

// spreadHosts stands in for the host of each rank, where ranks fill hosts evenly, one after the other.
func spreadHosts(ranks, nodes int) []string {
	hosts := make([]string, ranks)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("node%d", i*nodes/ranks)
	}
	return hosts
}
