package verbs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/plan/layout"
	"fluentps/kernels/cuda"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// withoutGPU says why this binary cannot compute on a GPU. It returns "" if the binary can.
func withoutGPU() string {
	if cuda.Built {
		return ""
	}
	return "this binary is built without CUDA: make build CUDA=1"
}

// warnIdle warns of settings that can never have an effect in a run with these facts.
func (in *input) warnIdle(c *cli.Context, f configs.Facts) error {
	return configs.Idle(in.cfg, in.origins, f).Write(c.App.ErrWriter)
}

// checkFacts returns what check knows of a run: the roles if the number of ranks is given, the rows if the data are generated.
// It fails if the ranks cannot take the roles.
func checkFacts(cfg *configs.Config, ranks int) (configs.Facts, error) {
	f := configs.Facts{NoGPU: withoutGPU()}
	if ranks > 0 {
		hosts := spreadHosts(ranks, 1)
		if _, err := layout.Roles(cfg, hosts); err != nil {
			return f, err
		}
		if f = factsOf(cfg, hosts); cfg.Cluster.Hierarchy == configs.HierarchyNode { // each host is one worker, and check does not know the hosts
			f.Workers = 0
		}
	}
	if configs.MadeUp(cfg) {
		f.Rows = cfg.Data.Rows
	}
	return f, nil
}

// checkRanks adds the diagnostics of a configuration, and of each run of its sweep, that depend on the number of ranks.
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
				all = append(all, p.Origins.Refuse(fmt.Sprintf("faults[%d].worker", i),
					fmt.Errorf("there is no worker %d: with %d ranks the workers are 0 to %d; name one of these, or start more ranks", fault.Worker,
						c.Int("ranks"), f.Computes-1)))
			}
		}
		if err := matricesOf(p.Config, c.Int("ranks")); err != nil {
			all = append(all, p.Origins.Refuse("train.optimizer.name", err))
		}
		if err := memoryOf(p.Config, c.Int("ranks")); err != nil {
			all = append(all, p.Origins.Refuse("cluster.memory_max", err))
		}
		all = append(all, configs.Misfit(p.Config, p.Origins, f)...)
		all = append(all, configs.Idle(p.Config, p.Origins, f)...)
	}
	return all.Once()
}

// memoryOf fails if so many ranks on one host may need more than cluster.memory_max. It knows that where no files are read: of generated
// data. Everything else that is wrong with the configuration is reported elsewhere.
func memoryOf(cfg *configs.Config, ranks int) error {
	if ranks == 0 || !strings.HasPrefix(cfg.Data.Set, "generated") {
		return nil
	}
	hosts := slices.Repeat([]string{"localhost"}, ranks)
	roles, err := layout.Roles(cfg, hosts)
	if err != nil {
		return nil
	}
	set, err := dataset.Load(layout.DataSpec(cfg))
	if err != nil {
		return nil
	}
	q, err := layout.Prepare(cfg, roles, hosts, set, layout.Link{})
	if q.Ledger == nil { // it fails before memory is counted
		return nil
	}
	return err
}

// matricesOf fails if a matrix is cut whose step needs all of it. It knows that where no data are read, and where the number of servers
// does not depend on that of ranks, or that is given.
func matricesOf(cfg *configs.Config, ranks int) error {
	if cfg.Train.Optimizer.Name != "muon" || cfg.Cluster.Placement == "mixed" && ranks == 0 {
		return nil
	}
	samples := workload.Samples{Elsewhere: true}
	if !workload.IsExternal(cfg.Model.Name) {
		if !strings.HasPrefix(cfg.Data.Set, "generated") {
			return nil
		}
		set, err := dataset.Load(layout.DataSpec(cfg))
		if err != nil {
			return nil
		}
		samples = set.Samples()
	}
	servers := cfg.Cluster.Servers
	if ranks > 0 {
		roles, err := layout.Roles(cfg, slices.Repeat([]string{"localhost"}, ranks))
		if err != nil {
			return nil
		}
		servers = len(roles.Servers)
	}
	architecture, err := workload.NewArchitecture(cfg.ModelSpec(), samples)
	if err != nil {
		return nil
	}
	var cut *layout.CutMatrix
	if _, err := layout.Plan(cfg, architecture.Params(), servers, layout.Link{}); errors.As(err, &cut) {
		return errors.New(cut.Why)
	}
	return nil
}
