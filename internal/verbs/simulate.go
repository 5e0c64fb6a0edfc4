package verbs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/params"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/real"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload/dataset"
)

func simulateCommand() *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "run workers and servers in virtual time, on a modelled cluster",
		ArgsUsage: "CONFIG",
		Description: "The times of computing, network and servers come from models (simulate: in the YAML); the code of workers and\n" +
			"servers is that of a run. Nothing is trained without --gradients. With it every worker computes real gradients,\n" +
			"and accuracy is shown against virtual time, up to train.stop.target. The same seed gives the same run. Every\n" +
			"line says \"simulated\".\n" + precedence,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "workers", Usage: "`N` workers; short for --set simulate.workers=N"},
			&cli.IntFlag{Name: "servers", Usage: "`M` servers; short for --set cluster.servers=M"},
			&cli.Uint64Flag{Name: "seed", Usage: "`S`; short for --set seed=S"},
			&cli.BoolFlag{Name: "gradients", Usage: "real gradients in virtual time; short for --set simulate.gradients=true"},
			&cli.StringSliceFlag{Name: "lose", Usage: "a worker dies: `WORKER@TIME`, as in 3@1.5s; may be repeated"},
			&cli.StringSliceFlag{Name: "join", Usage: "a worker that died joins again: `WORKER@TIME`, as in 3@2s; may be repeated"},
			&cli.StringSliceFlag{Name: "pause", Usage: "a worker pauses: `WORKER@TIME+FOR`, as in 0@200ms+1s; may be repeated"},
			&cli.StringSliceFlag{Name: "calibrate",
				Usage: "fit simulate: to the real run in the folder `RUN`, print the fit, and simulate with it; --set " +
					"overrules it; repeated: further runs of the same workers with other batches"},
			&cli.BoolFlag{Name: "fitted", Usage: "with --calibrate: draw computing times from the fitted distribution; default: replay the run's"},
			setFlag(),
			traceFlag(),
			&cli.StringFlag{Name: "out", Usage: "write summary, configuration and, with --gradients, accuracy by time to " +
				"`DIR`, which must be empty or not exist"},
		},
		Action: simulateVerb,
	}
}

func simulateVerb(c *cli.Context) error {
	file, err := one(c, "CONFIG")
	if err != nil {
		return err
	}
	if err := checkOutEmpty(c); err != nil {
		return err
	}
	var o sim.Options
	if err = simulateFaults(c, &o); err != nil {
		return err
	}
	cal, err := calibration(c)
	if err != nil {
		return err
	}
	var fitted []string
	flags := shorthands(c)
	if cal != nil {
		fitted = []string{cal.Setting()}
		if fault := cal.Fault(); fault != nil {
			flags = withFault(c, file, configs.FaultText(fault), fitted, flags...)
		}
	}
	in := readInputOver(c, file, fitted, flags...)
	if err := in.problem(); err != nil {
		return err
	}
	if err := in.diags.Write(c.App.ErrWriter); err != nil { // warnings
		return err
	}
	cut, err := modelled(c, in)
	if err != nil {
		return err
	}
	o.Config, o.Plan, o.Rows, o.CheckEvery, o.Replay = in.cfg, cut.plan, cut.rows, 64*int64(in.cfg.Simulate.Workers), replay(c, file)
	if err := readRecorded(&o); err != nil {
		return err
	}
	if in.cfg.Simulate.Gradients {
		if o.Values, err = realGradients(in.cfg, cut.set, c.App.ErrWriter); err != nil {
			return err
		}
	}
	if c.IsSet("out") {
		o.Iterations, o.Timeline = recorders(in.cfg), in.cfg.Metrics.Trace
	}
	tune()
	start := time.Now()
	res, err := check.Run(o)
	var failed *sim.Failure
	switch took := time.Since(start).Seconds(); {
	case errors.As(err, &failed):
		return err
	case err != nil:
		return usagef("simulate: %v", err)
	case o.Values != nil: // the gradients took the time, not the steps
		fmt.Fprintf(c.App.ErrWriter, "simulated %d node steps with real gradients in %.2f s of real time\n", res.Steps, took)
	default:
		fmt.Fprintf(c.App.ErrWriter, "simulated %d node steps in %.2f s of real time: %.2f million per second\n", res.Steps,
			took, float64(res.Steps)/took/1e6)
	}
	if err := simulateOutput(c, in, cal, res, o.Iterations); err != nil {
		return err
	}
	if res.Summary.Finished != metrics.FinishedOK {
		return &exitError{code: codeFailed} // the summary says why
	}
	return nil
}

// recorders keep the iterations of each worker.
func recorders(cfg *configs.Config) []timings.Recorder {
	all := make([]timings.Recorder, cfg.Simulate.Workers)
	for w := range all {
		all[w].Max = layout.RecordsMax(cfg, len(all))
	}
	return all
}

// modelled cuts the shards of a run and warns of settings without effect. It fails for a run that cannot be simulated.
func modelled(c *cli.Context, in *input) (cut, error) {
	if err := checkTrace(c, in.cfg); err != nil {
		return cut{}, err
	}
	if h := in.cfg.Cluster.Hierarchy; h != configs.HierarchyNone {
		return cut{}, usagef("simulate: cluster.hierarchy: %s is not modelled, because every simulated worker is one "+
			"rank; use run, or --set cluster.hierarchy=none", h)
	}
	n := in.cfg.Simulate.Workers
	q, err := cutFor(in.cfg, n, shard.Serving(in.cfg.Cluster.Servers, n, in.cfg.Cluster.Placement), sim.Link(in.cfg), dataset.Load)
	if err != nil {
		return q, usagef("simulate: %v", err)
	}
	return q, in.warnIdle(c,
		configs.Facts{Workers: n, Computes: n, Servers: in.cfg.Cluster.Servers, Rows: q.rows,
			Lead: int(q.plan.Shards[0].Rule) + 1, Simulated: true})
}

// realGradients lets the simulated workers compute the gradients of a data set in this process.
func realGradients(cfg *configs.Config, set *dataset.Set, warn io.Writer) (func(*sim.Simulation) (sim.Values, error), error) {
	device, err := newCPU(cfg.Device.Threads)
	if err != nil {
		return nil, usagef("simulate: %v", err)
	}
	if weak := cpu.Weak(); weak != "" {
		fmt.Fprintf(warn, "WARNING: %s\n", weak)
	}
	g := &real.Gradients{Set: set, Device: device}
	if path := cfg.Model.Init; path != "" {
		architecture, err := layout.Architecture(cfg, set)
		if err != nil {
			return nil, usagef("simulate: %v", err)
		}
		if g.Initial, err = params.OpenInitial(path, params.Of(architecture.Params())); err != nil { // open until the process ends
			return nil, usagef("simulate: %v", err)
		}
	}
	return g.Values, nil
}

// checkOutEmpty refuses an --out that is not empty before a long simulation starts, not at its end.
func checkOutEmpty(c *cli.Context) error {
	if !c.IsSet("out") {
		return nil
	}
	out := c.String("out")
	if out == "" {
		return usagef("simulate: --out is empty; name a folder")
	}
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usagef("simulate: --out: %v; choose another folder", err)
	case len(entries) > 0:
		return usagef("simulate: --out %s is not empty (it holds %s); nothing is overwritten: choose a new folder", out, entries[0].Name())
	}
	return nil
}

// simulateOutput prints the fitted models, if there are any, and the summary. It also writes both to --out, with the iterations.
func simulateOutput(c *cli.Context, in *input, cal *calibrate.Calibration, res *sim.Result, iterations []timings.Recorder) error {
	models := ""
	if cal != nil {
		models = cal.Text(in.cfg.Faults) + "\n"
	}
	var text strings.Builder
	if err := sim.WriteText(&text, res); err != nil {
		return err
	}
	if c.IsSet("out") {
		folder, err := metrics.CreateRunFolder(metrics.FolderSpec{Out: c.String("out")})
		if err != nil {
			return err
		}
		defer folder.Close()
		for _, w := range folder.Warnings {
			printError(c.App.ErrWriter, "WARNING: "+w)
		}
		var resolved strings.Builder
		if err := configs.Resolved(&resolved, in.cfg, in.origins); err != nil {
			return err
		}
		summary, err := res.Summary.JSON()
		if err != nil {
			return err
		}
		files := []file{{"config.yaml", in.src}, {"resolved.yaml", []byte(resolved.String())},
			{"summary.txt", []byte(text.String())}, {metrics.SummaryName, summary}, {"histograms.csv", res.Summary.HistogramsCSV()}}
		if cal != nil {
			files = append(files, file{"calibrated.yaml", []byte(models)})
		}
		for _, sink := range in.cfg.Metrics.Sinks {
			if in.cfg.Simulate.Gradients {
				f, err := simulatedRecords(sink, in.cfg.Name, res.Records)
				if err != nil {
					return err
				}
				files = append(files, f)
			}
		}
		for _, f := range files {
			if err := folder.Write(f.name, f.data); err != nil {
				return err
			}
		}
		if err := writeIterations(folder, iterations); err != nil {
			return err
		}
		if err := writeTimeline(folder, in.cfg.Name, res); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(c.App.Writer, models, text.String())
	return err
}

// shorthands are the settings of the flags that stand for one setting each. They overrule --set.
func shorthands(c *cli.Context) []string {
	var set []string
	for _, f := range []struct{ flag, key string }{{"workers", "simulate.workers"}, {"servers", "cluster.servers"},
		{"seed", "seed"}, {"gradients", "simulate.gradients"}, {"trace", "metrics.trace"}} {
		if c.IsSet(f.flag) {
			set = append(set, fmt.Sprintf("%s=%v", f.key, c.Value(f.flag)))
		}
	}
	return set
}

// workerAt reads the WORKER@TIME of a flag.
func workerAt(flag, text string) (worker int, at time.Duration, err error) {
	left, right, ok := strings.Cut(text, "@")
	worker, err = strconv.Atoi(left)
	at, err2 := time.ParseDuration(right)
	if !ok || err != nil || err2 != nil {
		return 0, 0, usagef("simulate: --%s is %q; write WORKER@TIME, as in 3@1.5s", flag, text)
	}
	return worker, at, nil
}

// simulateFaults reads --lose, --join and --pause.
func simulateFaults(c *cli.Context, o *sim.Options) error {
	for _, text := range c.StringSlice("lose") {
		w, at, err := workerAt("lose", text)
		if err != nil {
			return err
		}
		o.Losses = append(o.Losses, sim.Loss{Worker: w, At: at})
	}
	for _, text := range c.StringSlice("join") {
		w, at, err := workerAt("join", text)
		if err != nil {
			return err
		}
		o.Joins = append(o.Joins, sim.Join{Worker: w, At: at})
	}
	for _, text := range c.StringSlice("pause") {
		worker, rest, ok := strings.Cut(text, "@")
		when, length, ok2 := strings.Cut(rest, "+")
		w, err := strconv.Atoi(worker)
		at, err2 := time.ParseDuration(when)
		d, err3 := time.ParseDuration(length)
		if !ok || !ok2 || err != nil || err2 != nil || err3 != nil {
			return usagef("simulate: --pause is %q; write WORKER@TIME+FOR, as in 0@200ms+1s", text)
		}
		o.Pauses = append(o.Pauses, sim.Pause{Worker: w, At: at, For: d})
	}
	return nil
}

// replay is the command that repeats this run.
func replay(c *cli.Context, file string) string {
	words := []string{"fluentps", "simulate", quoted(file)}
	for _, name := range []string{"seed", "workers", "servers"} {
		if c.IsSet(name) {
			words = append(words, fmt.Sprintf("--%s %v", name, c.Value(name)))
		}
	}
	for _, run := range c.StringSlice("calibrate") {
		words = append(words, "--calibrate", quoted(run))
	}
	if c.Bool("fitted") {
		words = append(words, "--fitted")
	}
	if c.Bool("gradients") {
		words = append(words, "--gradients")
	}
	for _, name := range []string{"set", "lose", "join", "pause"} {
		for _, v := range c.StringSlice(name) {
			words = append(words, "--"+name, quoted(v))
		}
	}
	return strings.Join(words, " ")
}

// quoted quotes a text, if necessary, so that a shell reads it as one word.
func quoted(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=@+:,") == "" && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// readRecorded reads what a simulation replays of real runs.
func readRecorded(o *sim.Options) (err error) {
	workers := o.Config.Simulate.Workers
	if o.Traces, err = o.Config.ReadTraces(workers); err == nil {
		o.Record, err = o.Config.ReadReplay(workers)
	}
	if err != nil {
		return usagef("simulate: %v", err)
	}
	return nil
}
