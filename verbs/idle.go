package verbs

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"fluentps/configs"
	"fluentps/kernels/cuda"
	"fluentps/ps/layout"
)

// withoutGPU says why this binary computes on no GPU; "" where it may.
func withoutGPU() string {
	if cuda.Built {
		return ""
	}
	return "this binary is built without CUDA: make build CUDA=1"
}

// warnIdle prints what can never act in a run of which so much is known, beside what was warned of before.
func (in *input) warnIdle(c *cli.Context, f configs.Facts) error {
	return configs.Idle(in.cfg, in.origins, f).Write(c.App.ErrWriter)
}

// checkFacts is what check knows of a run: with --ranks the roles, if there can be some.
func checkFacts(cfg *configs.Config, ranks int) (configs.Facts, error) {
	f := configs.Facts{NoGPU: withoutGPU()}
	if ranks > 0 {
		hosts := spreadHosts(ranks, 1)
		if _, err := layout.Roles(cfg, hosts); err != nil {
			return f, err
		}
		if f = factsOf(cfg, hosts); cfg.Cluster.Hierarchy == configs.HierarchyNode { // which is a worker a host, and nobody has said how many there are
			f.Workers = 0
		}
	}
	if configs.MadeUp(cfg) {
		f.Rows = cfg.Data.Rows
	}
	return f, nil
}

// checkRanks adds what the number of ranks tells of a configuration, and of each run of its sweep.
func checkRanks(c *cli.Context, in *input) configs.Diagnostics {
	if in.diags.Failed() {
		return in.diags
	}
	points, diags := configs.Sweep(in.file, in.src, configs.Options{Set: c.StringSlice("set"), Env: os.Environ()})
	if diags.Failed() { // each run of a sweep is a configuration of its own
		return diags
	}
	all := append(in.diags, diags...)
	for _, p := range append([]configs.Point{{Config: in.cfg, Origins: in.origins}}, points...) {
		f, err := checkFacts(p.Config, c.Int("ranks"))
		if err != nil {
			all = append(all, p.Origins.Refuse("cluster.servers", err))
			continue
		}
		for i, fault := range p.Config.Faults {
			if f.Computes > 0 && fault.Worker >= f.Computes {
				all = append(all, p.Origins.Refuse(fmt.Sprintf("faults[%d].worker", i), fmt.Errorf("there is no worker %d: with %d ranks the workers are 0 to %d; name one of these, or start more ranks", fault.Worker, c.Int("ranks"), f.Computes-1)))
			}
		}
		all = append(all, configs.Idle(p.Config, p.Origins, f)...)
	}
	return all.Once()
}
