package verbs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/slurm"
	"fluentps/internal/show/metrics"
)

func sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "train the runs that the key sweep of a configuration lists, here or as one Slurm job array",
		ArgsUsage: "CONFIG",
		Description: "The configuration says what to vary:\n" +
			"  sweep: {train.optimizer.lr: [0.1, 0.01], seed: [1, 2, 3]}     # all combinations\n" +
			"  sweep: [{train.optimizer.lr: 0.1, seed: 1}, {seed: 2}]        # these two runs\n" +
			"Each run has a number, a configuration NNNN.yaml and a run folder NNNN. To continue a sweep, repeat the same\n" +
			"command line: it skips the runs that have finished and resumes those that were interrupted.\n" + precedence,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "local", Usage: "train here, one run after the other, each with `N` ranks as goroutines of one process"},
			&cli.BoolFlag{Name: "slurm", Usage: "write a job script with one array task for each run that has not finished"},
			&cli.IntFlag{Name: "ranks", Usage: "with --slurm: `N` ranks of each run"},
			&cli.IntFlag{Name: "parallel", Usage: "with --slurm: at most `N` runs at a time; default: as many as fit"},
			&cli.StringFlag{Name: "out", Usage: "`DIR` of the sweep; default: sweeps/<name>"},
			setFlag(),
		}, jobFlags()...),
		Action: sweepVerb,
	}
}

// sweep is a folder of numbered runs.
type sweep struct {
	dir    string
	points []configs.Point
}

func (s *sweep) file(i int) string   { return s.folder(i) + ".yaml" }
func (s *sweep) folder(i int) string { return filepath.Join(s.dir, fmt.Sprintf("%04d", i)) }

func sweepVerb(c *cli.Context) error {
	file, err := one(c, "CONFIG")
	if err != nil {
		return err
	}
	if err := sweepFlags(c); err != nil {
		return err
	}
	in := readInput(c, file)
	if in.src == nil {
		return in.problem()
	}
	points, diags := configs.Sweep(file, in.src, configs.Options{Set: c.StringSlice("set"), Env: os.Environ()})
	in.diags = diags // those of each run: the file itself may lack a key that the sweep sets
	if err := in.problem(); err != nil {
		return err
	}
	if err := diags.Write(c.App.ErrWriter); err != nil { // warnings
		return err
	}
	if len(points) == 0 {
		return usagef("sweep: %s has no key sweep; write sweep: {train.optimizer.lr: [0.1, 0.01]} below the others", file)
	}
	in.cfg = points[0].Config
	s := &sweep{dir: c.String("out"), points: points}
	if s.dir == "" {
		s.dir = filepath.Join("sweeps", in.cfg.Name)
	}
	var script *slurm.Script
	if c.Bool("slurm") {
		if script, err = jobScript(c, in, c.Int("ranks")); err != nil {
			return err
		}
		script.Config, script.Out, script.Flags = s.dir, s.dir, nil // the configuration of each run holds all settings
		if err := script.Check(); err != nil {
			return usagef("sweep: %v", err)
		}
		if err := s.fitsAll(c, script); err != nil {
			return err
		}
	}
	if script == nil {
		if err := s.checkRoles(c.Int("local")); err != nil {
			return err
		}
	}
	if err := s.write(); err != nil {
		return err
	}
	if script != nil {
		return s.submit(c, script)
	}
	return s.run(c)
}

func sweepFlags(c *cli.Context) error {
	local, batch := c.IsSet("local"), c.Bool("slurm")
	switch n := c.Int("local"); {
	case local == batch:
		return usagef("sweep: give either --local N, to train here, or --slurm --ranks N, for a job script")
	case local && (n < 1 || n > localMax):
		return usagef("sweep: --local is %d, must be 1 to %d ranks", n, localMax)
	}
	for _, name := range []string{"ranks", "parallel"} {
		if n := c.Int(name); c.IsSet(name) && (!batch || n < 1 || n > ranksMax) {
			return usagef("sweep: --%s is %d; it goes with --slurm, and must be 1 to %d", name, n, ranksMax)
		}
	}
	if batch && !c.IsSet("ranks") {
		return usagef("sweep: the number of ranks of each run is missing: add --ranks N")
	}
	return onlyWith(c, "slurm")
}

// checkRoles refuses a sweep if the ranks cannot take the roles of one of its runs, before the first run has trained for hours.
func (s *sweep) checkRoles(ranks int) error {
	for i, p := range s.points {
		if _, err := layout.Roles(p.Config, spreadHosts(ranks, 1)); err != nil {
			return usagef("sweep: run %d (%s): %v", i, strings.Join(p.Set, " "), err)
		}
	}
	return nil
}

// write writes the configuration of each run to the folder. It fails if the folder has another configuration of the same
// number, because that one may have results already.
func (s *sweep) write() error {
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return usagef("sweep: %v; choose another folder with --out", err)
	}
	for i, p := range s.points {
		var text bytes.Buffer
		fmt.Fprintf(&text, "# run %d of a sweep: %s\n", i, strings.Join(p.Set, " "))
		if err := configs.Resolved(&text, p.Config, nil); err != nil {
			return err
		}
		switch old, err := durable.ReadFile(s.file(i), readLimit); {
		case errors.Is(err, fs.ErrNotExist):
			if err := durable.WriteFile(s.file(i), text.Bytes()); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("sweep: %w", err)
		case !bytes.Equal(old, text.Bytes()):
			return usagef("sweep: %s differs from the configuration of run %d of this sweep; choose a new folder with "+
				"--out, or remove %s", s.file(i), i, s.dir)
		}
	}
	return nil
}

// result is what the table shows of a run's summary.
type result struct {
	Finished     string   `json:"finished"`
	Samples      int64    `json:"samples"`
	TrainLoss    *float64 `json:"train_loss"`
	TestAccuracy *float64 `json:"test_accuracy"`
	TestR2       *float64 `json:"test_r2"`
	SamplesPerS  *float64 `json:"samples_per_s"`
	WallS        *float64 `json:"wall_s"`
}

// finished says whether the summary in a run folder says that the run has finished.
func finished(dir string) bool { return resultOf(dir).Finished == metrics.FinishedOK }

func (s *sweep) result(i int) result { return resultOf(s.folder(i)) }

// resultOf reads the summary of a run. Without a readable summary, the run has not finished.
func resultOf(dir string) result {
	var r result
	data, err := durable.ReadFile(filepath.Join(dir, metrics.SummaryName), metrics.SummaryMax)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return result{Finished: "not yet"}
	}
	return r
}

// unfinished are the numbers of the runs that have not finished.
func (s *sweep) unfinished() (numbers []int) {
	for i := range s.points {
		if s.result(i).Finished != metrics.FinishedOK {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// submit writes the script for the runs that have not finished, and prints how to submit it.
func (s *sweep) submit(c *cli.Context, script *slurm.Script) error {
	unfinished := s.unfinished()
	if len(unfinished) == 0 {
		fmt.Fprintln(c.App.Writer, "all runs have finished; there is nothing to submit")
		return s.table(c.App.Writer)
	}
	script.Array = &slurm.Indices{List: unfinished, Parallel: c.Int("parallel")}
	path := filepath.Join(s.dir, "sweep.sbatch")
	if err := durable.WriteFile(path, []byte(script.Text())); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.App.Writer, "%d of %d runs have not finished; submit them with\n  sbatch %s\n",
		len(unfinished), len(s.points), slurm.Quote(slurm.File(path)))
	return err
}

// run trains the runs that have not finished. Each one is a process of its own, so that a failure ends no other run.
func (s *sweep) run(c *cli.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, slices.DeleteFunc(requestSignals(), func(s os.Signal) bool {
		return s == syscall.SIGUSR1 || s == syscall.SIGUSR2 // a sweep handles neither
	})...)
	defer stop()
	out := c.App.Writer
	for _, i := range s.unfinished() {
		fmt.Fprintf(out, "== %04d of %d: %s\n", i, len(s.points), strings.Join(s.points[i].Set, " "))
		cmd := exec.CommandContext(ctx, self, "run", slurm.File(s.file(i)), "--local", strconv.Itoa(c.Int("local")),
			"--out", s.folder(i), "--resume", "auto")
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the run ends with a checkpoint
		cmd.Stdout, cmd.Stderr, cmd.Env = fileOf(out), c.App.ErrWriter, withoutSettings(os.Environ())
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(c.App.ErrWriter, "sweep: run %04d: %v\n", i, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := s.table(out); err != nil {
		return err
	}
	if n := len(s.unfinished()); n > 0 {
		return &exitError{codeFailed, fmt.Sprintf("sweep: %d of %d runs have not finished; to continue with them, repeat "+
			"the same command line", n, len(s.points))}
	}
	return nil
}

// withoutSettings removes the variables that would overrule the settings of a run, because its configuration has them already.
func withoutSettings(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "FLUENTPS_") || strings.HasPrefix(e, "FLUENTPS_TEST_") ||
			strings.HasPrefix(e, "FLUENTPS_KERNELS_") || strings.HasPrefix(e, "FLUENTPS_LOG=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// table prints one line for each run.
func (s *sweep) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	score := "test_accuracy"
	for i := range s.points {
		if s.result(i).TestR2 != nil {
			score = "test_r2"
		}
	}
	fmt.Fprintln(t, "run\tfinished\t"+score+"\ttrain_loss\tsamples/s\twall s\tsettings")
	for i, p := range s.points {
		r := s.result(i)
		fmt.Fprintf(t, "%04d\t%s\t%s\t%s\t%s\t%s\t%s\n", i, foreign.Text(r.Finished), figure("%.4f", cmp.Or(r.TestR2, r.TestAccuracy)),
			figure("%.4g", r.TrainLoss),
			figure("%.0f", r.SamplesPerS), figure("%.1f", r.WallS), strings.Join(p.Set, " "))
	}
	return errors.Join(t.Flush(), s.results(w))
}

// figure formats a number of a summary; a missing one is a dash.
func figure(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}
