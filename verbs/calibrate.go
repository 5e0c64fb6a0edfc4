package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"fluentps/configs"
	"fluentps/ps/durable"
	"fluentps/ps/metrics"
	"fluentps/ps/sim"
)

// calibrate fits the models of the simulator to the run whose folder --calibrate names; nil without it.
func calibrate(c *cli.Context) (*sim.Calibration, error) {
	if !c.IsSet("calibrate") {
		if c.Bool("fitted") {
			return nil, usagef("simulate: --fitted says what --calibrate RUN is to draw; add it")
		}
		return nil, nil
	}
	run := c.String("calibrate")
	r, err := readRecording(c, run)
	if err != nil {
		return nil, usagef("simulate: --calibrate %s: %v", run, err)
	}
	cal, err := sim.Calibrate(r)
	if err != nil {
		return nil, usagef("simulate: --calibrate %s: %v", run, err)
	}
	if c.Bool("fitted") {
		cal.Draw()
	}
	return cal, nil
}

// readRecording reads what a run left in its folder. The run's data set may be far away, so the settings of --set that
// stand for data hold for the run as well.
func readRecording(c *cli.Context, run string) (sim.Recording, error) {
	r := sim.Recording{Path: filepath.Join(run, metrics.IterationsName)}
	text, err := durable.ReadFile(filepath.Join(run, "summary.json"), summaryMax)
	if errors.Is(err, fs.ErrNotExist) {
		return r, errors.New("there is no summary.json; name the folder of a run that has ended")
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return r, errors.New("it is a file; name the folder of a run that has ended")
	}
	if err != nil {
		return r, err
	}
	r.Summary = &metrics.Summary{}
	if err := json.Unmarshal(text, r.Summary); err != nil {
		return r, fmt.Errorf("summary.json is damaged: %v", err)
	}
	if err := r.Refuse(); err != nil {
		return r, err
	}
	r.Iterations, err = metrics.ReadIterations(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("there is no %s; make the run again with this version", metrics.IterationsName)
	}
	if err != nil {
		return r, err
	}
	var data []string
	for _, s := range c.StringSlice("set") {
		if strings.HasPrefix(s, "data.") || strings.HasPrefix(s, "data=") {
			data = append(data, s)
		}
	}
	cfg, _, diags := configs.Load(filepath.Join(run, "resolved.yaml"), configs.Options{Set: data})
	if cfg == nil || diags.Failed() {
		var b strings.Builder
		_ = diags.Write(&b) // a strings.Builder never fails
		return r, errors.New("its configuration cannot be used:\n" + strings.TrimRight(b.String(), "\n"))
	}
	r.Options.Config = cfg
	if err := r.Misfit(); err != nil {
		return r, err
	}
	cut, err := cutFor(cfg, r.Summary.Workers, r.Summary.Servers)
	r.Options = sim.Options{Config: cfg, Plan: cut.plan, Rows: cut.rows}
	return r, err
}

// traces reads the computing times that a configuration replays; nil if it replays none.
func traces(cfg *configs.Config) (iterations [][]metrics.Iteration, err error) {
	if n := cfg.Simulate.Noise; n.Kind == "trace" {
		if iterations, err = metrics.ReadIterations(n.Path); err != nil {
			return nil, fmt.Errorf("simulate.noise.path: %w", err)
		}
	}
	return iterations, nil
}
