package verbs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/external"
	"fluentps/ps/workload/shapes"
)

// shapesSuffix ends the name of a file that holds the architecture of a model.
const shapesSuffix = ".shapes"

func probeCommand() *cli.Command {
	return &cli.Command{
		Name:      "probe",
		Usage:     "show what a model consists of: layers, parameters, shapes",
		ArgsUsage: "CONFIG | FILE" + shapesSuffix,
		Description: "With a CONFIG it shows the architecture of the configured model for the rows of the configured " +
			"data; --out writes it to a file.\n" +
			"With model external it starts the program once, without training.\n" +
			"With such a file it shows what that holds. Nothing computes, and the file is small whatever the model is.\n" + precedence,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write the architecture to `FILE" + shapesSuffix + "`"},
			&cli.BoolFlag{Name: "force", Usage: "replace the file of --out if it exists"},
			setFlag(),
		},
		Action: probeVerb,
	}
}

func probeVerb(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("probe takes CONFIG, or FILE%s, got %d arguments%s; see fluentps probe -h", shapesSuffix, c.NArg(),
			listed(c.Args().Slice()))
	}
	from, out := c.Args().First(), c.String("out")
	isFile := strings.HasSuffix(from, shapesSuffix)
	switch {
	case isFile && (c.IsSet("out") || c.IsSet("set")):
		return usagef("probe: --out and --set go with a CONFIG, not with FILE%s", shapesSuffix)
	case c.Bool("force") && !c.IsSet("out"):
		return usagef("probe: --force goes with --out FILE%s", shapesSuffix)
	case c.IsSet("out") && !strings.HasSuffix(out, shapesSuffix):
		return usagef("probe: --out is %s, must end in %s, such as net%s", foreign.Text(out), shapesSuffix, shapesSuffix)
	case c.IsSet("out"):
		if err := checkNew("probe: --out", out, c.Bool("force")); err != nil {
			return err
		}
	}
	a, err := probed(c, from, isFile)
	if err != nil {
		return err
	}
	hash, err := a.Hash()
	if err != nil {
		return usagef("probe: %v", err)
	}
	if c.IsSet("out") {
		var text bytes.Buffer
		if err := a.Write(&text); err != nil {
			return usagef("probe: %v", err)
		}
		if err := durable.WriteFile(out, text.Bytes()); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
	}
	_, err = io.WriteString(c.App.Writer, probeText(a, hash))
	return err
}

// probed is the architecture of a configured model, or that in a file.
func probed(c *cli.Context, from string, isFile bool) (*workload.Architecture, error) {
	if isFile {
		f, err := durable.Open(from)
		if err != nil {
			return nil, usagef("probe: %v", err)
		}
		defer f.Close()
		a, err := shapes.Read(foreign.Text(from), f)
		if err != nil {
			return nil, usagef("probe: %v", err)
		}
		return a, nil
	}
	in := readInput(c, from)
	if err := in.problem(); err != nil {
		return nil, err
	}
	if workload.IsExternal(in.cfg.Model.Name) {
		return programShapes(c, in.cfg)
	}
	return architectureOf(in.cfg)
}

// programShapes starts the program of an external model once, and asks it.
func programShapes(c *cli.Context, cfg *configs.Config) (*workload.Architecture, error) {
	o := external.Options{Command: cfg.Model.Command, Threads: cfg.Device.Threads, Silence: cfg.Stall.Peer,
		Log: func(line string) { fmt.Fprintln(c.App.ErrWriter, foreign.Text(line)) },
		Welcome: external.Welcome{Workers: 1, BatchMax: max(cfg.Train.BatchPerWorker, cfg.Train.BatchGlobal, 1), EvalMax: 1,
			Rows: cfg.Data.Rows, TestRows: cfg.Data.TestRows, Accuracy: cfg.Data.External.Accuracy,
			Sampler: cfg.Data.Deal.Sampler, Seed: cfg.Seed}}
	a, err := external.Probe(o)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return a, nil
}

func architectureOf(cfg *configs.Config) (*workload.Architecture, error) {
	set, err := dataset.Load(layout.DataSpec(cfg))
	if err != nil {
		return nil, usagef("probe: %v\n  %s", err, withoutFiles(cfg))
	}
	a, err := layout.Architecture(cfg, set)
	if err != nil {
		return nil, usagef("probe: %v", err)
	}
	return a, nil
}

// probeText is the table of an architecture.
func probeText(a *workload.Architecture, hash string) string {
	var b strings.Builder
	elements := 0
	for _, p := range a.Params() {
		elements += p.N()
	}
	fmt.Fprintf(&b, "%s: %d layers, %d parameters of %d elements, sha256 %s\n\n", foreign.Text(a.Model), len(a.Layers),
		len(a.Params()), elements, hash)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "layer\tparameter\tshape\telements\tshare\t")
	for _, l := range a.Layers {
		for i, p := range l.Params {
			name, note := "", ""
			if i == 0 {
				name = foreign.Text(l.Name)
			}
			if p.Stat {
				note = "statistic"
			}
			shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Shape), "[]"), " ", " x ")
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.1f %%\t%s\n", name, foreign.Text(p.Name), shape, p.N(), 100*float64(p.N())/float64(elements), note)
		}
	}
	_ = t.Flush() // a strings.Builder never fails
	if s := a.Scratch; s != (workload.Scratch{}) {
		fmt.Fprintf(&b, "\nmemory beside parameters and gradients: %d bytes, and %d for each sample of a batch\n", s.Fixed, s.PerSample)
	}
	return b.String()
}
