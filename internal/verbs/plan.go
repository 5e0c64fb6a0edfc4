package verbs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/params"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "show roles, shards, memory and traffic of a run before it is queued",
		ArgsUsage: "CONFIG",
		Description: "plan reads the data set for its number of features and classes. Without the files, give the numbers:\n" +
			"  --set 'data={set: generated, features: 784, classes: 10, rows: 60000}'\n" + precedence,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "ranks", Usage: "`N` ranks, servers and workers together"},
			&cli.StringFlag{Name: "hosts", Usage: "the hosts of the ranks: `HOST:RANKS,...`, as in node1:3,node2:3; default: all on localhost"},
			setFlag(),
			&cli.BoolFlag{Name: "sbatch", Usage: "write a job script for Slurm instead: plan FILE --ranks 8 --nodes 4 " +
				"--time 4h --sbatch >job.sbatch"},
		}, append(jobFlags(), serverFlags()...)...),
		Action: planVerb,
	}
}

// ranksMax bounds --ranks, because the plan lists every rank.
const ranksMax = 1 << 20

func planVerb(c *cli.Context) error {
	file, err := one(c, "CONFIG")
	if err != nil {
		return err
	}
	if err := onlyWith(c, "sbatch"); err != nil {
		return err
	}
	hosts, err := planHosts(c)
	if err != nil {
		return err
	}
	in := readInput(c, file)
	if err := in.problem(); err != nil {
		return err
	}
	if err := in.diags.Write(c.App.ErrWriter); err != nil { // warnings
		return err
	}
	if c.Bool("sbatch") {
		return planScript(c, in)
	}
	p, err := prepare(in.cfg, hosts)
	if err != nil {
		return usagef("plan: %v", err)
	}
	noteData(c, p.set.Notes)
	if err := in.warnIdle(c, p.facts()); err != nil {
		return err
	}
	_, err = fmt.Fprint(c.App.Writer, layout.Text(in.cfg, p.plan, p.roles, hosts, p.set, p.link))
	return err
}

// planned is a run, prepared as its ranks would prepare it.
type planned struct {
	cfg    *configs.Config
	hosts  []string // of each rank
	roles  shard.Roles
	set    *dataset.Set
	plan   *shard.Plan
	link   layout.Link
	ledger *layout.Ledger
}

// prepare does what the ranks of a run do before they train. It fails for every configuration that they would refuse.
func prepare(cfg *configs.Config, hosts []string) (*planned, error) {
	return prepareWith(cfg, hosts, dataset.Load)
}

func prepareWith(cfg *configs.Config, hosts []string, load func(workload.DataSpec) (*dataset.Set, error)) (*planned, error) {
	p := &planned{cfg: cfg, hosts: hosts}
	var err error
	if p.roles, err = layout.Roles(cfg, hosts); err != nil {
		return nil, err
	}
	if p.link, err = layout.LinkOf(cfg, hosts); err != nil {
		return nil, err
	}
	if p.set, err = load(layout.DataSpec(cfg)); err != nil {
		return nil, fmt.Errorf("%w\n  %s", err, withoutFiles(cfg))
	}
	q, err := layout.Prepare(cfg, p.roles, hosts, p.set, p.link)
	if err != nil {
		return nil, err
	}
	p.plan, p.ledger = q.Plan, q.Ledger
	if path := cfg.Model.Init; path != "" {
		initial, err := params.OpenInitial(path, params.Of(q.Architecture.Params()))
		if err != nil {
			return nil, err
		}
		_ = initial.Close() // it was only read
	}
	return p, nil
}

// facts returns what is known of the run, for the warnings of settings without effect.
func (p *planned) facts() configs.Facts {
	f := layout.FactsOf(p.plan, p.roles, p.set.Train.Rows())
	f.NoGPU = withoutGPU()
	return f
}

// cut is the shard map of a configuration and its data.
type cut struct {
	plan *shard.Plan
	set  *dataset.Set
	rows int // of the training set
}

// loader reads a data set, as dataset.Load does.
type loader func(workload.DataSpec) (*dataset.Set, error)

// once keeps the set that was read last: a set may be large, and what-if asks for the same one again and again.
func (load loader) once() loader {
	var last workload.DataSpec
	var set *dataset.Set
	return func(s workload.DataSpec) (*dataset.Set, error) {
		if set != nil && s == last {
			return set, nil
		}
		var err error
		set, err = load(s)
		last = s
		return set, err
	}
}

// cutFor reads the data set for its shape, and cuts the parameters of the model into shards for hosts with this link.
func cutFor(cfg *configs.Config, workers, servers int, link layout.Link, load loader) (cut, error) {
	set, err := load(layout.DataSpec(cfg))
	if err != nil {
		return cut{}, fmt.Errorf("%w\n  %s", err, withoutFiles(cfg))
	}
	if err := layout.Check(cfg, set, workers); err != nil {
		return cut{}, err
	}
	architecture, err := layout.Architecture(cfg, set)
	if err != nil {
		return cut{}, err
	}
	plan, err := layout.Plan(cfg, architecture.Params(), servers, link)
	return cut{plan: plan, set: set, rows: set.Train.Rows()}, err
}

// withoutFiles says how to plan without the data files: with a generated set that the model accepts, in the shape of a
// well-known set.
func withoutFiles(cfg *configs.Config) string {
	model := cfg.Model.Name
	if workload.TakesRatings(model) {
		return "only the size of the matrix is needed; to plan without the files, give the size:\n" +
			"  --set 'data={set: generated_ratings, matrix: {rows: 6040, columns: 3952}, rows: 1000000}'"
	}
	shape := "features: 784, classes: 10, rows: 60000"
	switch {
	case strings.HasSuffix(model, "logistic"):
		shape = "features: 123, classes: 2, rows: 32561"
	case workload.NeedsImages(model) && cfg.Data.Set == "cifar10":
		shape = "image: [3, 32, 32], classes: 10, rows: 50000"
	case workload.NeedsImages(model):
		shape = "image: [1, 28, 28], classes: 10, rows: 60000"
	}
	return "only the shape of rows and the number of classes are needed; to plan without the files, give these:\n" +
		"  --set 'data={set: generated, " + shape + "}'"
}

// planHosts returns the host of each rank, from --hosts or --ranks.
func planHosts(c *cli.Context) ([]string, error) {
	n := c.Int("ranks")
	if c.IsSet("ranks") && (n < 1 || n > ranksMax) {
		return nil, usagef("plan: --ranks is %d, must be 1 to %d", n, ranksMax)
	}
	if !c.IsSet("hosts") {
		if n == 0 {
			return nil, usagef("plan: how many ranks? Add --ranks N, as in fluentps plan FILE --ranks 6, or --hosts node1:3,node2:3")
		}
		hosts := make([]string, n)
		for i := range hosts {
			hosts[i] = "localhost"
		}
		return hosts, nil
	}
	hosts, err := hostList("plan", c.String("hosts"))
	if err != nil {
		return nil, err
	}
	if n > 0 && n != len(hosts) {
		return nil, usagef("plan: --hosts %s makes %d ranks, but --ranks is %d; leave out one of the flags or change it",
			c.String("hosts"), len(hosts), n)
	}
	return hosts, nil
}

// hostName matches a host name that launchers accept: without a user, blanks, stars or the brackets of Slurm's lists.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// hostList reads --hosts and returns the host of each rank.
func hostList(verb, text string) ([]string, error) {
	var hosts []string
	for _, item := range strings.Split(text, ",") {
		name, count, given := strings.Cut(strings.TrimSpace(item), ":")
		ranks := 1
		if given {
			var err error
			if ranks, err = strconv.Atoi(count); err != nil || ranks < 1 || ranks > ranksMax {
				return nil, usagef(verb+": --hosts: %q has no number of ranks after the colon; write node1:3,node2:3", item)
			}
		}
		switch {
		case name == "":
			return nil, usagef(verb+": --hosts: %q names no host; write node1:3,node2:3", item)
		case !hostName.MatchString(name):
			return nil, usagef(verb+": --hosts: %q is not a host name; write each host with its ranks, as in node1:3,node2:3", name)
		}
		for range ranks {
			hosts = append(hosts, name)
		}
		if len(hosts) > ranksMax {
			return nil, usagef(verb+": --hosts names more than %d ranks", ranksMax)
		}
	}
	return hosts, nil
}
