package verbs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/configs"
	"fluentps/ps/layout"
	"fluentps/ps/workload"
	"fluentps/slurm"
)

// workerHost begins the names of the hosts of workers, where servers have hosts of their own.
const workerHost = "worker-"

// sbatchArgs are the options of sbatch that a flag has.
func sbatchArgs(c *cli.Context, flag string) ([]string, error) {
	all := c.StringSlice(flag)
	for _, text := range all {
		if err := slurm.CheckOption(text); err != nil {
			return nil, usagef("%s: --%s is %q: %v", c.Command.Name, flag, text, err)
		}
	}
	return all, nil
}

// fits refuses a job that run would refuse on its hosts, and has the script ask for the memory that it needs.
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
	return p.memory(s)
}

// noteMissing tells whoever writes a script where the data are not at hand what the script lacks.
func noteMissing(c *cli.Context, err error) {
	what, _, _ := strings.Cut(err.Error(), "\n") // the rest is for who plans without them
	printError(c.App.ErrWriter, fmt.Sprintf("note: %s; without it nobody knows here whether the run keeps within cluster.memory_max, and the script asks for no memory: where the site gives too little, add --sbatch-arg=--mem=...", what))
}

// factsOf is what the ranks tell of a run whose data are not at hand.
func factsOf(cfg *configs.Config, hosts []string) configs.Facts {
	f := configs.Facts{NoGPU: withoutGPU()}
	if roles, err := layout.Roles(cfg, hosts); err == nil {
		f.Workers, f.Computes, f.Servers = len(roles.Workers), len(roles.Computing()), len(roles.Servers)
	}
	return f
}

// memory raises what each part of a script asks for to what its fullest host takes.
func (p *planned) memory(s *slurm.Script) error {
	all, err := layout.Hosts(p.cfg, p.plan, p.roles, p.hosts, p.set)
	if err != nil {
		return usagef("plan: %v", err)
	}
	for _, h := range all {
		part := &s.Parts[0]
		if len(s.Parts) > 1 && strings.HasPrefix(h.Host, workerHost) {
			part = &s.Parts[1]
		}
		if !slices.ContainsFunc(part.Options, slurm.AsksForMemory) {
			part.Memory = max(part.Memory, h.Total())
		}
	}
	return nil
}

// fitsAll does for the runs of a sweep what fits does for one: the script asks for what the greediest needs.
func (s *sweep) fitsAll(c *cli.Context, script *slurm.Script) error {
	hosts := spreadHosts(c.Int("ranks"), c.Int("nodes"))
	sets := map[workload.DataSpec]*workload.Set{}
	load := func(spec workload.DataSpec) (*workload.Set, error) {
		if set := sets[spec]; set != nil {
			return set, nil
		}
		set, err := workload.Load(spec)
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
		if err := p.memory(script); err != nil {
			return err
		}
	}
	if missing { // what one needs is not what all do
		script.Parts[0].Memory = 0
	}
	return idle.Once().Write(c.App.ErrWriter)
}
