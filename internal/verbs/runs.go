package verbs

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	reports "fluentps/internal/show/report"
	"fluentps/internal/show/report/folder"
)

// indexName is the page that lists the runs below a folder.
const indexName = "index.html"

func runsCommand() *cli.Command {
	return &cli.Command{
		Name:      "runs",
		Usage:     "list the runs below a folder, as a table and as a page",
		ArgsUsage: "[DIR]",
		Description: "DIR is runs if it is not named. The page is DIR/index.html, with links to the reports of the runs. Runs that\n" +
			"were killed or are still running are listed too.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-index", Usage: "print the table and write no page"},
		},
		Action: runsVerb,
	}
}

func runsVerb(c *cli.Context) error {
	dir := "runs"
	if c.NArg() > 0 {
		var err error
		if dir, err = one(c, "DIR"); err != nil {
			return err
		}
	}
	found, err := folder.Below(dir)
	if err != nil {
		return usagef("runs: %v", err)
	}
	if len(found) == 0 {
		return usagef("runs: there is no run below %s; name the folder that holds run folders, such as runs", foreign.Word(dir))
	}
	var runs []*reports.Run
	var links []string
	for _, path := range found {
		run, err := folder.Totals(path)
		if err != nil {
			return usagef("runs: %v", err)
		}
		if rel, err := filepath.Rel(dir, path); err == nil {
			run.Folder = rel
		}
		links = append(links, "")
		if info, err := os.Lstat(filepath.Join(path, reportName)); err == nil && info.Mode().IsRegular() {
			links[len(links)-1] = linkTo(run.Folder)
		}
		runs = append(runs, run)
	}
	if err := runsText(c.App.Writer, reports.RunsTable(runs)); err != nil || c.Bool("no-index") {
		return err
	}
	page, err := reports.Index("Runs below "+foreign.Text(dir), runs, links, buildText())
	if err != nil {
		return err
	}
	f := durable.Below(dir)
	defer f.Close()
	if err := writePage(f, indexName, page); err != nil {
		return usagef("runs: %v; --no-index writes no page", err)
	}
	_, err = fmt.Fprintf(c.App.Writer, "Page: %s\n", foreign.Text(filepath.Join(dir, indexName)))
	return err
}

// linkTo is the address of the report of a run, from the page.
func linkTo(rel string) string {
	parts := strings.Split(filepath.ToSlash(filepath.Join(rel, reportName)), "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "./" + strings.Join(parts, "/") // so that no name is taken for the scheme of an address
}

// runsText prints the columns that people read.
func runsText(w io.Writer, t *reports.Table) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var head []string
	for _, c := range t.Columns {
		if !c.Wide {
			head = append(head, c.Head)
		}
	}
	fmt.Fprintln(tabs, strings.Join(head, "\t"))
	for _, row := range t.Rows {
		var cells []string
		for i, c := range row {
			if !t.Columns[i].Wide {
				cells = append(cells, strings.ReplaceAll(foreign.Text(c.Text), "\t", " "))
			}
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	return tabs.Flush()
}
