package verbs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/show/status"
)

// watchEvery is the time between two pictures of status --watch, as long as that between two files of a rank at least.
const watchEvery = 2 * time.Second

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "tell what each rank of a run does, from the files in its folder",
		ArgsUsage: "DIR",
		Description: "DIR is a run folder, or the folder of an experiment: then its newest run is shown. It may be " +
			"called on any host that sees the\n" +
			"folder, also while the job hangs: the ranks write what they do to logs/rank-*.state, without each other's help. A row tells what a\n" +
			"rank does or waits for, and how long ago it last began an iteration or made a version. Ages compare the clocks of hosts.\n" +
			"kill -USR2 has each rank print the same words.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "watch", Usage: "show it again every " + watchEvery.String() + ", until the run is over"},
			&cli.BoolFlag{Name: "all", Usage: "show every rank, not only those that tell the most"},
			&cli.BoolFlag{Name: "json", Usage: "as JSON, one object; with --watch one a line"},
		},
		Action: statusVerb,
	}
}

func statusVerb(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("status takes one DIR, got %d arguments%s; see fluentps status -h", c.NArg(), listed(c.Args().Slice()))
	}
	clear := false
	if f, ok := fileOf(c.App.Writer).(*os.File); ok && c.Bool("watch") && !c.Bool("json") {
		clear, _ = terminal(f)
	}
	for first := true; ; first = false {
		r, err := status.Read(c.Args().First(), time.Now())
		if err != nil {
			return usagef("status: %v", err)
		}
		if err := showStatus(c, r, clear, first); err != nil {
			return err
		}
		if !c.Bool("watch") || r.IsOver() {
			return nil
		}
		time.Sleep(watchEvery)
	}
}

func showStatus(c *cli.Context, r *status.Run, clear, first bool) error {
	switch {
	case c.Bool("json"):
		e := json.NewEncoder(c.App.Writer)
		if !c.Bool("watch") {
			e.SetIndent("", "  ")
		}
		return e.Encode(r)
	case clear:
		if _, err := io.WriteString(c.App.Writer, "\x1b[H\x1b[2J"); err != nil {
			return err
		}
	case !first:
		if _, err := fmt.Fprintln(c.App.Writer); err != nil {
			return err
		}
	}
	_, err := io.WriteString(c.App.Writer, r.Text(c.Bool("all")))
	return err
}
