package verbs

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/internal/sim/whatif"
	"fluentps/ps/workload/dataset"
)

// whatIfPushesMax bounds the pushes of one simulated run of what-if.
const whatIfPushesMax = 100_000

func whatIfCommand() *cli.Command {
	return &cli.Command{
		Name:      "what-if",
		Usage:     "tell what a run would have been with other schemes, and what its slow workers cost",
		ArgsUsage: "DIR",
		Description: "DIR is the folder of a run that has ended, or of an experiment: then its newest run. The simulator " +
			"replays its computing times with models fitted to it, under bsp, ssp, asp,\n" +
			"drop, r2sp, dbs, flexrr and epsp, and with each slow worker as fast as the median one. A ratio is of samples per second, and says\n" +
			"nothing of the accuracy: staleness has a price. With --gradients real gradients are computed in virtual time, and what reaches the\n" +
			"target first comes first.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "gradients", Usage: "compute real gradients; takes as long as training that often"},
			&cli.Float64Flag{Name: "target", Usage: "with --gradients: the test `ACCURACY` to reach; default: " +
				"train.stop.target of the run, or half a point below its result"},
			&cli.BoolFlag{Name: "json", Usage: "as JSON"},
			setFlag(),
		},
		Action: whatIfVerb,
	}
}

func whatIfVerb(c *cli.Context) error {
	run, err := one(c, "DIR")
	if err != nil {
		return err
	}
	if c.IsSet("target") && !c.Bool("gradients") {
		return usagef("what-if: --target is reached with real gradients only: add --gradients")
	}
	run, err = metrics.FindRun(run)
	if err != nil {
		return usagef("what-if: %v", err)
	}
	a, err := askWhatIf(c, run, c.StringSlice("set"), whatIfPushesMax, dataset.Load)
	if err != nil {
		return usagef("what-if: %v", err)
	}
	a.Crowded = competed(run)
	if c.Bool("json") {
		e := json.NewEncoder(c.App.Writer)
		e.SetIndent("", "  ")
		return e.Encode(a)
	}
	_, err = io.WriteString(c.App.Writer, foreign.Visible(a.Text()))
	return err
}

// askWhatIf asks about a run, with settings.
func askWhatIf(c *cli.Context, run string, settings []string, pushesMax int, load loader) (*whatif.Answer, error) {
	load = load.once()
	r, err := readRecording(c, run, load)
	if err != nil {
		return nil, err
	}
	cal, err := calibrate.Fit(r)
	if err != nil {
		return nil, err
	}
	q := whatif.Question{Recording: r, Calibration: cal, Gradients: c.Bool("gradients"), PushesMax: pushesMax,
		Load: func(more []string) (sim.Options, error) {
			return loadChanged(c, run, &r, slices.Concat(settings, more), load)
		}}
	if q.Gradients {
		q.Target = c.Float64("target")
		if q.Target == 0 {
			q.Target = r.Options.Config.Train.Stop.Target
		}
		if s := cmp.Or(r.Summary.TestR2, r.Summary.TestAccuracy); q.Target == 0 && s != nil {
			q.Target = float64(*s) - 0.005
		}
		if !(q.Target > 0) {
			return nil, errors.New("the run has no test accuracy or R2 above 0 to reach: give --target, or leave --gradients out")
		}
	}
	tune()
	return whatif.Ask(q)
}

// loadChanged returns the options of the simulator for a run with settings.
func loadChanged(c *cli.Context, run string, r *calibrate.Recording, settings []string, load loader) (sim.Options, error) {
	if c.Bool("gradients") {
		settings = append(settings, "simulate.gradients=true", "evaluate.where=online")
	}
	cfg, _, diags := configs.Load(filepath.Join(run, "resolved.yaml"), configs.Options{Set: settings})
	if cfg == nil || diags.Failed() {
		var b strings.Builder
		_ = diags.Write(&b) // a strings.Builder never fails
		return sim.Options{}, errors.New(firstLine(b.String()))
	}
	link := layout.Link{Given: cfg.Cluster.Link != ""}
	if w := r.Summary.Wire; w != nil {
		link.Rate = float64(w.LinkBytesPerS)
	}
	cut, err := cutFor(cfg, r.Summary.Workers, r.Summary.Servers, link, load)
	if err != nil {
		return sim.Options{}, errors.New(firstLine(err.Error()))
	}
	o := sim.Options{Config: cfg, Plan: cut.plan, Rows: cut.rows}
	if c.Bool("gradients") {
		o.Values, err = realGradients(cfg, cut.set, io.Discard)
	}
	return o, err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
