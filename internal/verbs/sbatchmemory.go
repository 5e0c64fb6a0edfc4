package verbs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/slurm"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// workerHost is the prefix of the host names of workers if the servers have separate hosts.
const workerHost = "worker-"

// sbatchArgs returns the options of sbatch that a flag lists. It fails for an option that the script must set itself.
func sbatchArgs(c *cli.Context, flag string) ([]string, error) {
	all := c.StringSlice(flag)
	for _, text := range all {
		if err := slurm.CheckOption(text); err != nil {
			return nil, usagef("%s: --%s is %q: %v", c.Command.Name, flag, text, err)
		}
	}
	return all, nil
}

// fits fails for a job that run would refuse on its hosts, and sets the memory that the script requests.
func fits(c *cli.Context, in *input, s *slurm.Script, hosts []string) error {
	p, err := prepare(in.cfg, hosts)
	if errors.Is(err, fs.ErrNotExist) {
		noteMissing(c, err)
		return in.warnIdle(c, factsOf(in.cfg, hosts))
	}
	if err != nil {
		return usagef("plan: %v", err)
	}
	if err := in.warnIdle(c, p.facts()); err != nil {
		return err
	}
	p.memory(s)
	return nil
}

// noteMissing notes that the data are missing, and so what the script lacks.
func noteMissing(c *cli.Context, err error) {
	what, _, _ := strings.Cut(err.Error(), "\n") // the further lines are about a plan without the data
	printError(c.App.ErrWriter, fmt.Sprintf("note: %s; without the data the run cannot be checked against "+
		"cluster.memory_max, and the script requests no memory: if the default of the site is too little, add --sbatch-arg=--mem=...", what))
}

// factsOf returns what the hosts of the ranks determine of a run whose data are missing.
func factsOf(cfg *configs.Config, hosts []string) configs.Facts {
	f := configs.Facts{NoGPU: withoutGPU()}
	if roles, err := layout.Roles(cfg, hosts); err == nil {
		f.Workers, f.Computes, f.Servers = len(roles.Workers), roles.Computes(), len(roles.Servers)
	}
	return f
}

// memory raises the memory that each part of a script requests to the need of its fullest host. A part keeps a memory that the
// user has set with --sbatch-arg.
func (p *planned) memory(s *slurm.Script) {
	for _, h := range p.ledger.Hosts() {
		part := &s.Parts[0]
		if len(s.Parts) > 1 && strings.HasPrefix(h.Host, workerHost) {
			part = &s.Parts[1]
		}
		if !slices.ContainsFunc(part.Options, slurm.AsksForMemory) {
			part.Memory = max(part.Memory, h.Total())
		}
	}
}

// fitsAll is fits for all runs of a sweep: the script requests the memory of the run that needs the most.
func (s *sweep) fitsAll(c *cli.Context, script *slurm.Script) error {
	hosts := spreadHosts(c.Int("ranks"), c.Int("nodes"))
	sets := map[workload.DataSpec]*dataset.Set{}
	load := func(spec workload.DataSpec) (*dataset.Set, error) {
		if set := sets[spec]; set != nil {
			return set, nil
		}
		set, err := dataset.Load(spec)
		if err == nil {
			sets[spec] = set
		}
		return set, err
	}
	var idle configs.Diagnostics
	missing := false
	for i, point := range s.points {
		p, err := prepareWith(point.Config, hosts, load)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if !missing {
				noteMissing(c, err)
			}
			missing = true
			idle = append(idle, configs.Idle(point.Config, point.Origins, factsOf(point.Config, hosts))...)
			continue
		case err != nil:
			return usagef("sweep: run %d (%s): %v", i, strings.Join(point.Set, " "), err)
		}
		idle = append(idle, configs.Idle(point.Config, point.Origins, p.facts())...)
		p.memory(script)
	}
	if missing { // the need of the other runs may not be enough for all
		script.Parts[0].Memory = 0
	}
	return idle.Once().Write(c.App.ErrWriter)
}
