package verbs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/plan/slurm"
)

// jobFlags are the flags for what a job script requests from Slurm.
func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "nodes", Value: 1, Usage: "in the job script: `N` hosts"},
		&cli.StringFlag{Name: "time", Value: "1h",
			Usage: "in the job script: `LIMIT`, as in 3h50m, or as sbatch takes it: 230 (minutes), 3:50:00, 1-12 (days-hours)"},
		&cli.StringFlag{Name: "partition", Usage: "in the job script: the `QUEUE`"},
		&cli.StringFlag{Name: "account", Usage: "in the job script: the `PROJECT` that Slurm charges the time to"},
		&cli.StringFlag{Name: "qos", Usage: "in the job script: the `NAME` of the quality of service"},
		&cli.StringSliceFlag{Name: "sbatch-arg",
			Usage: "in the job script: another `OPTION` of sbatch, as after #SBATCH: --sbatch-arg=--constraint=a100; may be " +
				"repeated; one such as --mem=16G replaces the memory that the script requests"},
		&cli.IntFlag{Name: "gpus", Usage: "in the job script: `N` GPUs of each host"},
		&cli.IntFlag{Name: "cores", Usage: "in the job script: `N` cores for each rank"},
		&cli.IntFlag{Name: "restarts", Usage: "in the job script: if a process dies, restart the ranks, at most `K` " +
			"times, as run --restarts does"},
		&cli.StringFlag{Name: "launcher", Usage: "in the job script: mpirun, or the `PLUGIN` of srun: pmix, pmi2; " +
			"default: the plugin that fits the MPI of this binary"},
	}
}

// serverFlags are the flags for separate hosts for the servers, in a heterogeneous job.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "server-nodes", Usage: "in the job script: `N` more hosts, without GPUs, for the servers alone"},
		&cli.StringSliceFlag{Name: "server-sbatch-arg",
			Usage: "in the job script: another `OPTION` of sbatch for these hosts, as --sbatch-arg is for the others"},
		&cli.StringFlag{Name: "server-partition", Usage: "in the job script: the `QUEUE` of these hosts; default: that of the others"},
	}
}

// onlyWith refuses the flags of a job script unless the flag writes, which makes the verb write one, is set.
func onlyWith(c *cli.Context, writes string) error {
	for _, f := range append(jobFlags(), serverFlags()...) {
		if name := f.Names()[0]; c.IsSet(name) && !c.Bool(writes) {
			return usagef("%s: --%s is for job scripts: add --%s", c.Command.Name, name, writes)
		}
	}
	return nil
}

// Limits of what a job script requests. A number with a digit too many is a typing mistake.
const (
	nodesMax    = 1 << 16
	perNodeMax  = 1 << 10
	jobTimeMin  = 5 * time.Minute // the warning comes two minutes before the end, and Slurm may send it a minute early
	jobTimeMax  = 366 * 24 * time.Hour
	batchFolder = "batch" // in runs/NAME: the run folder of job scripts is fixed, so that the same script begins and resumes a run
)

// accountName matches the name of a project or a quality of service. Some sites use dots and slashes.
var accountName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@:+-]*$`)

var partitionName = regexp.MustCompile(`^[A-Za-z0-9_.,-]*$`)

// jobScript returns a script that runs a configuration with so many ranks.
func jobScript(c *cli.Context, in *input, ranks int) (*slurm.Script, error) {
	verb := c.Command.Name
	nodes, launcher := c.Int("nodes"), c.String("launcher")
	limit, err := slurm.ParseTime(c.String("time"))
	if err != nil {
		return nil, usagef("%s: --time is %q, must be %s", verb, c.String("time"), slurm.TimeForms)
	}
	for _, n := range []struct {
		name     string
		min, max int
	}{{"nodes", 1, nodesMax}, {"gpus", 0, perNodeMax}, {"cores", 0, perNodeMax}, {"restarts", 0, restartsMax}} {
		if v := c.Int(n.name); v < n.min || v > n.max {
			return nil, usagef("%s: --%s is %d, must be %d to %d", verb, n.name, v, n.min, n.max)
		}
	}
	if launcher == "" {
		launcher = plugin()
	}
	switch {
	case ranks < nodes:
		return nil, usagef("%s: %d ranks cannot fill %d hosts: raise --ranks or lower --nodes", verb, ranks, nodes)
	case limit < jobTimeMin || limit > jobTimeMax:
		return nil, usagef("%s: --time is %v, must be %v to %v: Slurm warns a job some minutes before its end", verb, limit,
			jobTimeMin, jobTimeMax)
	case !partitionName.MatchString(c.String("partition")):
		return nil, usagef("%s: --partition is %q; sinfo lists the queues", verb, c.String("partition"))
	case !slices.Contains(slurm.Launchers, launcher):
		return nil, usagef("%s: %s", verb, unknown("launcher", launcher, slurm.Launchers))
	}
	for _, name := range []string{"account", "qos"} {
		if v := c.String(name); c.IsSet(name) && !accountName.MatchString(v) {
			return nil, usagef("%s: --%s is %q; sacctmgr show associations user=$USER lists yours", verb, name, v)
		}
	}
	options, err := sbatchArgs(c, "sbatch-arg")
	if err != nil {
		return nil, err
	}
	s := &slurm.Script{
		Job: in.cfg.Name, Program: os.Args[0], Config: in.file, Time: limit, Launcher: launcher, Restarts: c.Int("restarts"),
		Account: c.String("account"), QOS: c.String("qos"),
		Out: filepath.Join("runs", in.cfg.Name, batchFolder),
		Parts: []slurm.Part{{
			Nodes: nodes, Ranks: ranks, Cores: c.Int("cores"), GPUs: c.Int("gpus"), Partition: c.String("partition"), Options: options,
		}},
	}
	for _, set := range c.StringSlice("set") {
		s.Flags = append(s.Flags, "--set", set)
	}
	if s.Restarts > 0 {
		warnWithoutCheckpoints(c, in)
	}
	return s, nil
}

// planScript writes the script of plan --sbatch. It fails if the ranks of the job cannot take the roles of the configuration.
func planScript(c *cli.Context, in *input) error {
	if c.IsSet("hosts") {
		return usagef("plan: Slurm chooses the hosts: with --sbatch give --ranks and --nodes instead of --hosts")
	}
	s, err := jobScript(c, in, c.Int("ranks"))
	if err != nil {
		return err
	}
	hosts := spreadHosts(c.Int("ranks"), c.Int("nodes"))
	if c.IsSet("server-nodes") || c.IsSet("server-partition") || c.IsSet("server-sbatch-arg") {
		if hosts, err = serversApart(c, in, s); err != nil {
			return err
		}
	}
	if err := fits(c, in, s, hosts); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return usagef("plan: %v", err)
	}
	_, err = io.WriteString(c.App.Writer, s.Text())
	return err
}

// serversApart turns s into a heterogeneous job: a part for the servers, before the part of the workers. It returns a made-up
// host name for each rank. Slurm numbers the ranks part by part, so placement pack puts the servers into the first part.
func serversApart(c *cli.Context, in *input, s *slurm.Script) (hosts []string, err error) {
	nodes, servers, workers := c.Int("server-nodes"), in.cfg.Cluster.Servers, &s.Parts[0]
	partition := c.String("server-partition")
	if !c.IsSet("server-partition") {
		partition = workers.Partition
	}
	ranks := workers.Ranks - servers
	switch placement := in.cfg.Cluster.Placement; {
	case in.cfg.Baseline == configs.BaselineAllreduce:
		return nil, usagef("plan: --server-nodes: baseline %s has no servers", configs.BaselineAllreduce)
	case placement != "spread" && placement != "pack":
		return nil, usagef("plan: --server-nodes: with cluster.placement %s servers run on the hosts of workers; choose "+
			"spread or pack", placement)
	case nodes < 1 || nodes > servers:
		return nil, usagef("plan: --server-nodes is %d, must be 1 to %d, which is cluster.servers", nodes, servers)
	case ranks < workers.Nodes:
		return nil, usagef("plan: --ranks %d minus %d servers leaves %d workers, which cannot fill %d hosts: raise "+
			"--ranks or lower --nodes", workers.Ranks, servers, ranks, workers.Nodes)
	case !partitionName.MatchString(partition):
		return nil, usagef("plan: --server-partition is %q; sinfo lists the queues", partition)
	case s.Launcher == "mpirun":
		return nil, usagef("plan: --server-nodes makes a job of two parts, and mpirun sees only the first: leave out --launcher mpirun")
	}
	options, err := sbatchArgs(c, "server-sbatch-arg")
	if err != nil {
		return nil, err
	}
	workers.What, workers.Ranks = "Workers: the other ranks.", ranks
	part := slurm.Part{What: "Servers: the first ranks.", Nodes: nodes, Ranks: servers, Cores: workers.Cores,
		Partition: partition, Options: options}
	s.Parts = []slurm.Part{part, *workers}
	s.Flags = append(s.Flags, "--set", "cluster.placement=pack")
	in.cfg.Cluster.Placement = "pack"
	for i, h := range append(spreadHosts(servers, nodes), spreadHosts(ranks, workers.Nodes)...) {
		if i >= servers {
			h = workerHost + h
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// spreadHosts returns a made-up host name for each rank. The ranks fill the hosts evenly, one host after the other.
func spreadHosts(ranks, nodes int) []string {
	hosts := make([]string, ranks)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("node%d", i*nodes/ranks)
	}
	return hosts
}
