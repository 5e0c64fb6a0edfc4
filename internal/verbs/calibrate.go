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

	"fluentps/internal/configs"
	"fluentps/internal/disk/durable"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/ps/workload/dataset"
)

// calibration fits the models of the simulator to the run in the folder that --calibrate names. It returns nil without that flag.
func calibration(c *cli.Context) (*calibrate.Calibration, error) {
	if !c.IsSet("calibrate") {
		if c.Bool("fitted") {
			return nil, usagef("simulate: --fitted changes what --calibrate RUN does: add --calibrate RUN")
		}
		return nil, nil
	}
	var all []calibrate.Recording
	names := c.StringSlice("calibrate")
	for _, run := range names {
		r, err := readRecording(c, run, dataset.Load)
		if err != nil {
			return nil, usagef("simulate: --calibrate %s: %v", run, err)
		}
		all = append(all, r)
	}
	cal, err := calibrate.Fit(all[0], all[1:]...)
	if err != nil {
		return nil, usagef("simulate: --calibrate %s: %v", strings.Join(names, " --calibrate "), err)
	}
	if c.Bool("fitted") {
		cal.Draw()
	}
	return cal, nil
}

// readRecording reads the files of a finished run. The data set of that run may not be on this machine, so the settings of
// --set for data also apply to the run.
func readRecording(c *cli.Context, run string, load loader) (calibrate.Recording, error) {
	run = runOf(run)
	r := calibrate.Recording{Path: filepath.Join(run, timings.FileName)}
	text, err := durable.ReadFile(filepath.Join(run, metrics.SummaryName), metrics.SummaryMax)
	if errors.Is(err, fs.ErrNotExist) {
		return r, errors.New("there is no summary.json: the run was killed, or is still running; fluentps status DIR " +
			"tells; name the folder of a run that has ended")
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
	if err := r.CheckSummary(); err != nil {
		return r, err
	}
	r.Iterations, err = timings.Read(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("there is no %s; make the run again with this version", timings.FileName)
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
	if err := r.CheckConsistency(); err != nil {
		return r, err
	}
	link := layout.Link{Given: cfg.Cluster.Link != ""}
	if w := r.Summary.Wire; w != nil {
		link.Rate = float64(w.LinkBytesPerS)
	}
	cut, err := cutFor(cfg, r.Summary.Workers, r.Summary.Servers, link, load)
	r.Options = sim.Options{Config: cfg, Plan: cut.plan, Rows: cut.rows}
	return r, err
}

// withFault adds a fault to those of the configuration that the settings of this command make.
func withFault(c *cli.Context, file, fault string, settings []string, flags ...string) []string {
	in := readInputOver(c, file, settings, flags...)
	if in.cfg == nil {
		return flags // the problems are reported when the configuration is read again
	}
	return append(flags, fmt.Sprintf("faults[%d]=%s", len(in.cfg.Faults), fault))
}
