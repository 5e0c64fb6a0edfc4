package verbs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/plan/layout"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "show all problems of configurations; nothing is run",
		ArgsUsage: "CONFIG...",
		Description: "Each problem is one line, file:line:column: key: what; hint, with the source line and a caret below it.\n" +
			"Exit code 2 with errors; 3 with --strict and warnings; else 0. check reads no data files, except those of csv and parquet\n" +
			"with --strict: plan and run give the warnings that depend on the rows of the data, and without --ranks those that depend on\n" +
			"the number of ranks.\n" + precedence,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "resolved", Usage: "print every value as YAML, with its origin as a comment"},
			&cli.BoolFlag{Name: "strict", Usage: "exit with code 3 if there are warnings"},
			&cli.IntFlag{Name: "ranks", Usage: "also show settings that have no effect, or do not fit, with `N` ranks, " +
				"servers and workers together"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORM` of the report: text or json"},
			setFlag(),
		},
		Action: checkVerb,
	}
}

func checkVerb(c *cli.Context) error {
	files := c.Args().Slice()
	if len(files) == 0 {
		return usagef("check takes one CONFIG or more, got none; see fluentps check -h")
	}
	form := c.String("format")
	if forms := []string{"text", "json"}; !slices.Contains(forms, form) {
		return usagef("check: --format: %s", unknown("form", form, forms))
	}
	if c.Bool("resolved") && form == "json" {
		return usagef("check: --resolved prints YAML; leave out --format json")
	}
	if n := c.Int("ranks"); c.IsSet("ranks") && (n < 1 || n > ranksMax) {
		return usagef("check: --ranks is %d, must be 1 to %d", n, ranksMax)
	}
	var all configs.Diagnostics
	for i, file := range files {
		in := readInput(c, file)
		in.diags = checkRanks(c, in)
		in.diags = append(in.diags, checkShapes(in)...)
		if c.Bool("strict") {
			in.diags = append(in.diags, checkData(in)...)
		}
		if in.diags.Failed() {
			in.cfg = nil
		}
		all = append(all, in.diags...)
		if form == "json" {
			continue
		}
		if err := checkText(c, in, i > 0); err != nil {
			return err
		}
	}
	if form == "json" {
		if _, err := c.App.Writer.Write(all.JSON()); err != nil {
			return err
		}
	}
	switch {
	case all.Failed():
		return &exitError{code: codeUsage}
	case c.Bool("strict") && len(all.Warnings()) > 0:
		return &exitError{code: codeWarnings}
	}
	return nil
}

// checkShapes reads the file of an external model's tensors. One that is not on this machine is a warning: a run needs it.
func checkShapes(in *input) configs.Diagnostics {
	if in.diags.Failed() || !workload.IsExternal(in.cfg.Model.Name) {
		return nil
	}
	_, err := workload.NewArchitecture(in.cfg.ModelSpec(), workload.Samples{Elsewhere: true})
	if err == nil {
		return nil
	}
	d := in.origins.Refuse("model.shapes", errors.New(strings.TrimPrefix(err.Error(), "model.shapes: ")))
	if _, statErr := os.Stat(in.cfg.Model.Shapes); errors.Is(statErr, fs.ErrNotExist) {
		d.Severity = configs.Warning
	}
	return configs.Diagnostics{d}
}

// checkData reads the files of csv and parquet, and warns of what is doubtful in them. It skips files that are not on this machine: a
// configuration may be checked where its data are not.
func checkData(in *input) (warnings configs.Diagnostics) {
	if in.diags.Failed() || !in.cfg.Data.IsTable() {
		return nil
	}
	for _, path := range []string{in.cfg.Data.Path, in.cfg.Data.Test} {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // who reads a pipe empties it
			return nil
		}
	}
	set, err := dataset.Load(layout.DataSpec(in.cfg))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return configs.Diagnostics{in.origins.Refuse("data.path", err)}
	}
	for _, note := range set.Notes {
		d := in.origins.Refuse("data.path", errors.New(note))
		d.Severity = configs.Warning
		warnings = append(warnings, d)
	}
	return warnings
}

// checkText prints the problems of one file. With --resolved it prints the values instead, and the problems go to stderr.
func checkText(c *cli.Context, in *input, further bool) error {
	w := c.App.Writer
	if !c.Bool("resolved") {
		if err := in.diags.Write(w); err != nil || len(in.diags) > len(in.diags.Notes()) {
			return err
		}
		_, err := fmt.Fprintf(w, "%s: ok\n", in.file)
		return err
	}
	if err := in.diags.Write(c.App.ErrWriter); err != nil || in.cfg == nil {
		return err
	}
	if further {
		if _, err := fmt.Fprintln(w, "---"); err != nil {
			return err
		}
	}
	return configs.Resolved(w, in.cfg, in.origins)
}
