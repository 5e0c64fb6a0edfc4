package verbs

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/comm"
	"fluentps/internal/comm/mpi"
	"fluentps/internal/configs"
	"fluentps/internal/disk/lock"
	"fluentps/internal/plan/references"
	"fluentps/internal/plan/slurm"
	"fluentps/internal/rank/resume"
	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "train, under mpirun or srun, or with --local in one process",
		ArgsUsage: "CONFIG [-- LAUNCHER...]",
		Description: "Under mpirun or srun every process is one rank: a server or a worker. With --local N the ranks are\n" +
			"goroutines of this process. Files go to runs/<name>/<UTC time>-<job id>/, or to --out.\n" +
			"SIGUSR1, SIGTERM, SIGHUP, Ctrl-C or a closed output stops the run after the iterations in progress, with exit\n" +
			"code 75 if there is a checkpoint. A second SIGTERM or Ctrl-C stops it without another checkpoint, a third ends it\n" +
			"at once. SIGUSR2 prints the state of each rank, and training continues.\n" + precedence,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "local", Usage: "start `N` ranks as goroutines of this process; needs no MPI"},
			setFlag(),
			&cli.StringFlag{Name: "out", Usage: "run folder; `DIR` must be empty or not exist, unless --resume auto resumes the run in it"},
			&cli.StringFlag{Name: "resume", Usage: "resume from the newest checkpoint in the run folder `DIR`, or in the " +
				"newest run of the experiment in DIR, or from a named one, as DIR/checkpoints/best; auto: from --out or the " +
				"newest run of this name; without a checkpoint there, begin a new run"},
			&cli.StringSliceFlag{Name: "allow-changed",
				Usage: "`KEY,...` of the configuration that may differ from the checkpoint's; the word workers allows another number of workers"},
			&cli.StringFlag{Name: "max-time", Usage: "stop `TIME` after the start, as in 3h50m, with a checkpoint and exit " +
				"code 75; auto: shortly before the end of the Slurm job"},
			&cli.IntFlag{Name: "restarts", Usage: "start the launcher given after --, and if the job dies, restart it at " +
				"most `K` times from the newest checkpoint"},
			&cli.StringFlag{Name: "hosts", Usage: "with --restarts: `NAME:RANKS,...` to fill in {ranks}, {hosts}, {names}, " +
				"{nodes} in the launcher's arguments; a restart leaves out hosts that do not answer"},
			traceFlag(),
			&cli.StringFlag{Name: "log-level", Value: "info", Usage: "lowest `LEVEL` in the log files: debug, info, warn, error"},
			&cli.BoolFlag{Name: "no-what-if", Usage: "do not simulate other schemes at the end; it takes about a second, " +
				"after runs of 10 s or more"},
			&cli.BoolFlag{Name: "no-report", Usage: "write no report.html at the end"},
			&cli.BoolFlag{Name: "require", Usage: "exit with code 5 if train.stop.target was not reached, or the loss ends " +
				"above 10 times that of a constant prediction"},
			&cli.StringFlag{Name: startFlag, Usage: "`TOKEN` of this start, which job scripts and --restarts give, to know " +
				"its files by; with --restarts: of all starts", Hidden: true},
			&cli.BoolFlag{Name: supervisedFlag, Usage: "exit with code 64 in place of 2", Hidden: true},
		},
		Action: runVerb,
	}
}

// poolMax is the limit of the transport's pool in bytes. It never binds: cluster.memory_max is checked before anything is
// allocated.
const poolMax = 1 << 50

// localMax bounds --local: a mistyped number with more digits would only exhaust the memory.
const localMax = 4096

func runVerb(c *cli.Context) error {
	start := time.Now()
	switch {
	case c.IsSet("restarts"):
		return runSupervised(c, start)
	case c.IsSet("hosts"):
		return usagef("run: --hosts goes with --restarts; without it, give the hosts to the launcher")
	}
	if words := c.Args().Slice(); len(words) > 1 && slices.Contains([]string{"mpirun", "mpiexec", "srun"}, filepath.Base(words[1])) {
		return usagef("run: a launcher after the CONFIG is for --restarts K; without --restarts the launcher comes "+
			"first: %s fluentps run %s", strings.Join(words[1:], " "), words[0])
	}
	signals := catchEarlySignals()
	keepPipes()
	file, err := one(c, "CONFIG")
	if err != nil {
		return err
	}
	if c.IsSet("out") && c.String("out") == "" {
		return usagef("run: --out is empty; name a folder")
	}
	if err := checkResumeFlags(c); err != nil {
		return err
	}
	if err := checkStart(c); err != nil {
		return err
	}
	if _, err := timeLimit(c); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return usagef("run: --log-level is %q, must be debug, info, warn or error", c.String("log-level"))
	}
	reserveThread()
	_ = cpu.Open() // before MPI starts its threads; a rank that computes opens it again and gets the error
	j := &job{c: c, start: start, signals: signals, level: level, out: newOutlet(fileOf(c.App.Writer), signals),
		warn: newOutlet(c.App.ErrWriter, signals)}
	if c.IsSet("local") {
		n := c.Int("local")
		if n < 1 || n > localMax {
			return usagef("run: --local is %d, must be 1 to %d ranks", n, localMax)
		}
		if err := localUnderLauncher(n, os.Getenv); err != nil {
			return err
		}
		j.input = readInput(c, file, shorthands(c)...)
		if err := j.problem(); err != nil {
			return err
		}
		return j.local(n)
	}
	if !mpi.UnderLauncher(os.Getenv) || !withMPI() {
		j.input = readInput(c, file, shorthands(c)...)
		if err := j.problem(); err != nil {
			return err
		}
		if !mpi.UnderLauncher(os.Getenv) {
			return noLauncher(j.input, os.Getenv)
		}
		return notBuilt(j.input, os.Getenv)
	}
	return j.world(file)
}

// checkResumeFlags checks that --resume, --out and --allow-changed fit together. --resume names a run, or an experiment for its newest one.
func checkResumeFlags(c *cli.Context) error {
	switch dir := c.String("resume"); {
	case c.IsSet("resume") && dir == "":
		return usagef("run: --resume is empty; name a run folder, or auto")
	case dir != "" && dir != resume.Auto && c.IsSet("out"):
		return usagef("run: --resume %s writes to that folder: leave out --out", dir)
	case dir == "" && c.IsSet("allow-changed"):
		return usagef("run: --allow-changed is for a run that resumes: add --resume")
	case dir != "" && dir != resume.Auto:
		if _, _, one := resume.OneCheckpoint(dir); !one {
			return c.Set("resume", runOf(dir))
		}
	}
	return nil
}

// startFlag names the start of a run. It is no variable of the environment, because mpirun gives its own environment only to
// ranks on its own host.
const startFlag = "start"

// checkStart checks the token of a start.
func checkStart(c *cli.Context) error {
	if !c.IsSet(startFlag) {
		return nil
	}
	if err := lock.CheckStart(c.String(startFlag)); err != nil {
		return usagef("run: --start: %v", err)
	}
	return nil
}

// allowed lists the keys of --allow-changed. Each word may hold several keys, separated by commas.
func allowed(c *cli.Context) (keys []string) {
	for _, word := range c.StringSlice("allow-changed") {
		keys = append(keys, strings.Split(word, ",")...)
	}
	return keys
}

// tune sets up the Go runtime for a verb that allocates little: the collector runs rarely.
func tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercentMax)
	}
	reserveThread()
}

// reserveThread gives the Go runtime at least two threads, so that the goroutine that watches the clock never waits for one that
// computes.
func reserveThread() {
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
}

// jobID is the last part of the name of a run folder: the ID of the Slurm job, or how the ranks are started.
func jobID(mode string) (string, error) {
	switch batch, err := slurm.FromEnv(os.Getenv); {
	case batch != nil: // the error may be about another variable, and the ID is known
		return batch.ID, nil
	case err != nil:
		return "", usagef("run: %v", err)
	}
	return mode, nil
}

// job is one run as this process sees it.
type job struct {
	*input
	c       *cli.Context
	start   time.Time
	signals chan os.Signal
	limit   time.Duration // the run stops so long after its start; 0: no limit
	level   slog.Level
	out     io.Writer
	warn    io.Writer
	set     *dataset.Set // of rank 0, once it has read it; nil before, and in processes without rank 0
	trains  atomic.Bool  // set-up is over

	scratchDir string // for files of Open MPI in memory; "": its default
}

// endsSetup says that a signal ends the run before it trains.
func endsSetup(name string) string {
	return name + " during set-up: ending at once, nothing was trained since the start"
}

// setupCode is the exit code of a run that a signal ended during its set-up: with --resume the same command continues it.
func (j *job) setupCode() int {
	if j.c.String("resume") != "" {
		return ps.CodeAgain
	}
	return codeFailed
}

// trainingBegins is called by each rank of this process.
func (j *job) trainingBegins() {
	if !j.trains.Swap(true) {
		go collectRarely() // training need not wait for it
	}
}

// options returns the options of one rank of this process. Rank 0 also gets those of the lead. A mistake of the user is in
// Problem, so that all ranks learn of it; an error means that this process cannot continue.
func (j *job) options(t comm.Transport, mode, mpiText string) (ps.Options, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	o := ps.Options{
		Transport: t, Mode: mode, Host: host, PID: os.Getpid(), Build: buildText(),
		Warn: j.warn, LogLevel: j.level, Lead: ps.LeadOptions{Start: j.start, Require: j.c.Bool("require")},
		Problem: j.problem(), Resume: j.c.String("resume"), AllowChanged: allowed(j.c),
	}
	if o.Problem != nil {
		return o, nil
	}
	device := j.cfg.Device
	o.Config, o.Hash = j.cfg, configs.Hash(j.cfg)
	o.NewDevice = func() (kernels.Device, error) { return newCPU(device.Threads) }
	crowded := false
	if c, ok := t.(comm.Crowded); ok {
		crowded = c.Crowded()
	}
	o.NewUnit = func(local int) (ps.Unit, error) { return newUnit(device, local, crowded) }
	o.Bind = func(on bool) int { return mpi.Bind(t, on) }
	o.Load, o.Trains = load, j.trainingBegins
	if t.Rank() != 0 {
		return o, nil
	}
	o.Load = func(s workload.DataSpec) (set *dataset.Set, err error) {
		j.set, err = load(s)
		return j.set, err
	}
	o.Lead.Token = j.c.String(startFlag)
	if j.limit, o.Problem = j.maxTime(); o.Problem != nil {
		return o, nil
	}
	o.Lead.MaxTime = j.limit
	o.Lead.Out = j.out
	o.Lead.Known = func(f configs.Facts) { _ = j.warnIdle(j.c, f) } // a warning that cannot be written does not stop a run
	o.Lead.Terminal, o.Lead.Width = terminal(os.Stdout)
	o.Lead.Folder = &metrics.FolderSpec{Root: "runs", Name: j.cfg.Name, Now: j.start, Out: j.c.String("out")}
	if o.Lead.Folder.JobID, o.Problem = jobID(mode); o.Problem != nil {
		return o, nil
	}
	if batch, _ := slurm.FromEnv(os.Getenv); batch != nil { // jobID has checked the error
		o.Lead.Job, o.Lead.Restarts, o.Lead.WhyStopped = batch.ID, batch.Restarts, func() string { return whyStopped(batch) }
	}
	var resolved strings.Builder
	if err := configs.Resolved(&resolved, j.cfg, j.origins); err != nil {
		return o, err
	}
	o.Lead.Files = map[string][]byte{"config.yaml": j.src, "resolved.yaml": []byte(resolved.String()),
		"references.bib": []byte(references.Text(j.cfg))}
	o.Lead.RunInfo = j.runInfo(host, mpiText, crowded)
	j.echo(o.Hash, mpiText)
	return o, nil
}
