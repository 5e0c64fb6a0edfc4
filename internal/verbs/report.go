package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	reports "fluentps/internal/show/report"
	"fluentps/internal/show/report/folder"
)

// reportName is the page in a run folder, and reportParts the folder of its figures and tables.
const (
	reportName  = "report.html"
	reportParts = "report"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "show what happened in a run, or which of several runs won and why, as one page with figures and tables",
		ArgsUsage: "DIR...",
		Description: "DIR is a run folder, or a folder with run folders below it. One run is explained; several are compared, and those\n" +
			"that differ in their seed only become one line, with mean and deviation. The page report.html holds everything: it\n" +
			"loads nothing and has no script. The folder report beside it has each figure as SVG and PNG, and each table as\n" +
			"CSV and LaTeX. Damaged and unfinished runs are shown as far as they go. In the folder of a sweep it also writes\n" +
			"sweep.csv and sweep-means.csv.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write to the folder `DIR`; default: the folder of the run, or with several runs the folder report"},
			&cli.StringFlag{Name: "target", Usage: "compare the time to `WHAT=VALUE`, on the test set: accuracy=0.88 or " +
				"loss=0.4; default: train.stop.target, or else what all runs reached"},
		},
		Action: reportVerb,
	}
}

func reportVerb(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return usagef("report takes one run folder or more, got none; see fluentps report -h")
	}
	target, err := targetFlag(c)
	if err != nil {
		return err
	}
	dirs, err := runFolders(args)
	if err != nil {
		return usagef("report: %v", err)
	}
	var runs []*reports.Run
	for _, dir := range dirs {
		run, err := folder.Read(dir)
		if err != nil {
			return usagef("report: %v", err)
		}
		runs = append(runs, run)
	}
	out := c.String("out")
	switch {
	case c.IsSet("out") && out == "":
		return usagef("report: --out is empty; name a folder")
	case out == "" && len(dirs) == 1:
		out = dirs[0]
	case out == "":
		out = reportParts
	}
	doc, err := reports.Make(runs, reports.Options{Target: target, Build: buildText()})
	if err != nil {
		return err
	}
	if err := writeReport(out, doc); err != nil {
		return usagef("report: %v", err)
	}
	if err := reportText(c.App.Writer, doc, runs, filepath.Join(out, reportName)); err != nil {
		return err
	}
	reportSweeps(c, args)
	return nil
}

// targetFlag reads --target.
func targetFlag(c *cli.Context) (*reports.Target, error) {
	text := c.String("target")
	if !c.IsSet("target") {
		return nil, nil
	}
	what, number, named := strings.Cut(text, "=")
	if !named {
		what, number = reports.WhatAccuracy, text
	}
	what = strings.ToLower(what)
	whats := []string{reports.WhatAccuracy, reports.WhatLoss, reports.WhatR2}
	if !slices.Contains(whats, what) {
		return nil, usagef("report: --target: %s", unknown("measure", what, whats))
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) || what != reports.WhatLoss && v > 1 {
		return nil, usagef("report: --target is %s, must be accuracy= or r2= with a number from 0 to 1, or loss= with a "+
			"number above 0", foreign.Word(text))
	}
	return &reports.Target{What: what, Value: v, Given: reports.GivenFlag}, nil
}

// runFolders are the run folders that arguments name: each is one, or has some below it.
func runFolders(args []string) (dirs []string, err error) {
	for _, arg := range args {
		found := []string{arg}
		if !folder.Is(arg) {
			if found, err = folder.Below(arg); err != nil {
				return nil, err
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s is no run folder, and there is none below it; name what `fluentps run` printed as "+
				"its run folder", foreign.Word(arg))
		}
		for _, dir := range found {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

// writeReport writes the page, and the figures and tables beside it.
func writeReport(out string, doc *reports.Document) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("%w; choose another folder with --out", err)
	}
	f := durable.Below(out)
	defer f.Close()
	if err := f.Make(reportParts, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; choose another folder with --out", err)
	}
	parts := f.In(reportParts)
	defer parts.Close()
	if err := claimParts(parts); err != nil {
		return err
	}
	if err := writePage(f, reportName, doc.Page); err != nil {
		return err
	}
	for _, figure := range doc.Figures {
		png, err := figure.PNG()
		if err == nil {
			err = errors.Join(parts.Write(figure.ID+".svg", figure.File()), parts.Write(figure.ID+".png", png))
		}
		if err != nil {
			return err
		}
	}
	for _, t := range doc.Tables {
		if err := errors.Join(parts.Write(t.ID+".csv", t.CSV()), parts.Write(t.ID+".tex", t.LaTeX())); err != nil {
			return err
		}
	}
	return nil
}

// partsMark is the file that says of a folder of figures and tables that it is ours: the next report replaces what is in it.
const partsMark = "made-by-fluentps-report.txt"

// claimParts takes a folder for figures and tables: an empty one, or one that an earlier report made.
func claimParts(parts *durable.Folder) error {
	if _, err := parts.Lstat(partsMark); err == nil {
		return nil
	}
	all, err := parts.List()
	if err != nil {
		return fmt.Errorf("%w; choose another folder with --out", err)
	}
	if len(all) > 0 {
		return fmt.Errorf("%s exists, and its files were not written by fluentps; move it away, or choose another folder "+
			"with --out", parts.Path(""))
	}
	return parts.Write(partsMark, []byte("fluentps report made the figures and tables of this folder, and replaces them.\n"))
}

// writePage writes a page of reports. It replaces only such a page.
func writePage(f *durable.Folder, name string, page []byte) error {
	return writePageOf(f, name, page, reports.Mark, "choose another folder with --out")
}

// writePageOf writes a page that has a mark. It replaces only such a page; other is what else to do.
func writePageOf(f *durable.Folder, name string, page []byte, mark, other string) error {
	old, err := f.ReadFile(name, pageMax)
	switch {
	case err == nil && !bytes.Contains(old, []byte(mark)):
		return fmt.Errorf("%s exists and was not written by fluentps; move it away, or %s", f.Path(name), other)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; %s", err, other)
	}
	return f.Write(name, page)
}

// pageMax is the size of the largest page that is read again.
const pageMax = 1 << 30

// reportText prints what the page says at its top, and where it is.
func reportText(w io.Writer, doc *reports.Document, runs []*reports.Run, path string) error {
	var b strings.Builder
	for _, sentence := range doc.Verdict {
		b.WriteString(metrics.Wrap(foreign.Visible(sentence), metrics.TextWidth, 2) + "\n")
	}
	for _, r := range runs {
		for _, what := range r.Damage {
			b.WriteString(metrics.Wrap(foreign.Text(r.Folder)+": "+foreign.Visible(what), metrics.TextWidth, 2) + "\n")
		}
	}
	fmt.Fprintf(&b, "Report: %s\n", foreign.Text(path))
	_, err := io.WriteString(w, b.String())
	return err
}

// report writes the page of a run that has ended, on rank 0. The run is over and its result stands: what goes wrong here is a warning.
func (j *job) report(dir, start string) {
	if dir == "" || j.c.Bool("no-report") {
		return
	}
	path := filepath.Join(dir, reportName)
	if err := pageOf(dir, start); err != nil {
		printError(j.warn, fmt.Sprintf("WARNING: %s was not written, and nothing else is missing: %v", path, err))
		return
	}
	fmt.Fprintf(j.out, "Report: %s\n", path) // best effort, as all output of a run
}

// pageOf writes the page of one run into its folder, unless a newer start has taken that. A bug in it must not make a run fail.
func pageOf(dir, start string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("bug in fluentps: %v", p)
		}
	}()
	run, err := folder.Read(dir)
	if err != nil {
		return err
	}
	doc, err := reports.Make([]*reports.Run{run}, reports.Options{Build: buildText()})
	if err != nil {
		return err
	}
	f := metrics.At(dir)
	defer f.Close()
	return writePage(f.Guarded(func() error { return f.CheckStart(start) }), reportName, doc.Page)
}
