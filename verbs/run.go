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
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/comm"
	"fluentps/comm/mpi"
	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/metrics"
	"fluentps/ps/resume"
	ps "fluentps/ps/runtime"
	"fluentps/slurm"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "train, under mpirun or srun, or with --local in one process",
		ArgsUsage: "CONFIG [-- LAUNCHER...]",
		Description: "Under mpirun or srun every process is one rank: a server or a worker. With --local N the ranks are\n" +
			"goroutines of this process. Files go to runs/<name>/<UTC time>-<job id>/, or to --out.\n" +
			"SIGUSR1, SIGTERM, SIGHUP and Ctrl-C, and an output that nobody reads any more, end the run after the running\n" +
			"iterations, with exit code 75 if it left a checkpoint; a second SIGTERM or Ctrl-C leaves without one, a third at\n" +
			"once. SIGUSR2 prints where each rank stands, and the run goes on.\n" + precedence,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "local", Usage: "start `N` ranks as goroutines of this process; needs no MPI"},
			setFlag(),
			&cli.StringFlag{Name: "out", Usage: "run folder; `DIR` must be empty or not exist, unless --resume auto goes on in it"},
			&cli.StringFlag{Name: "resume", Usage: "go on from the newest checkpoint in the run folder `DIR`, or from DIR/checkpoints/best or another by its name; auto: in --out or the newest run of this name, or begin where there is none"},
			&cli.StringSliceFlag{Name: "allow-changed", Usage: "`KEY,...` of the configuration that may differ from the checkpoint's; workers: their number"},
			&cli.StringFlag{Name: "max-time", Usage: "stop `TIME` after the start, as 3h50m, with a checkpoint and exit code 75; auto: in time before the end of the Slurm job"},
			&cli.IntFlag{Name: "restarts", Usage: "start the launcher that stands behind --, and start it again, at most `K` times, where the job died; goes on from the newest checkpoint"},
			&cli.StringFlag{Name: "hosts", Usage: "with --restarts: `NAME:RANKS,...`, for {ranks}, {hosts}, {names}, {nodes} in the launcher's words; a restart leaves out those that do not answer"},
			&cli.StringFlag{Name: "log-level", Value: "info", Usage: "least `LEVEL` of the log files: debug, info, warn, error"},
			&cli.BoolFlag{Name: "require", Usage: "leave with code 5 if train.stop.target was not reached"},
			&cli.BoolFlag{Name: supervisedFlag, Usage: "leave with code 64 in place of 2", Hidden: true},
		},
		Action: runVerb,
	}
}

// poolMax is the transport's own limit in bytes, a last resort: cluster.memory_max is what holds, checked before
// anything is allocated.
const poolMax = 1 << 50

// localMax bounds --local: a number too many digits long would only exhaust the memory.
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
		return usagef("run: a launcher behind the CONFIG is for --restarts K; without it the launcher comes first: %s fluentps run %s", strings.Join(words[1:], " "), words[0])
	}
	signals := early()
	keepPipes()
	file, err := one(c, "CONFIG")
	if err != nil {
		return err
	}
	if c.IsSet("out") && c.String("out") == "" {
		return usagef("run: --out is empty; name a folder")
	}
	if err := resumable(c); err != nil {
		return err
	}
	if _, err := timeLimit(c); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return usagef("run: --log-level is %q, must be debug, info, warn or error", c.String("log-level"))
	}
	spareThread()
	_ = cpu.Open() // before the threads of MPI; who computes asks again, and has the error
	j := &job{c: c, start: start, signals: signals, level: level, out: newOutlet(fileOf(c.App.Writer), signals), warn: newOutlet(c.App.ErrWriter, signals)}
	if c.IsSet("local") {
		n := c.Int("local")
		if n < 1 || n > localMax {
			return usagef("run: --local is %d, must be 1 to %d ranks", n, localMax)
		}
		if err := localUnderLauncher(n, os.Getenv); err != nil {
			return err
		}
		j.input = readInput(c, file)
		if err := j.problem(); err != nil {
			return err
		}
		return j.local(n)
	}
	if !mpi.UnderLauncher(os.Getenv) || !withMPI() {
		j.input = readInput(c, file)
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

// resumable checks the flags that say what to go on from.
func resumable(c *cli.Context) error {
	switch dir := c.String("resume"); {
	case c.IsSet("resume") && dir == "":
		return usagef("run: --resume is empty; name a run folder, or auto")
	case dir != "" && dir != resume.Auto && c.IsSet("out"):
		return usagef("run: --resume %s goes on in that folder: leave out --out", dir)
	case dir == "" && c.IsSet("allow-changed"):
		return usagef("run: --allow-changed is for a run that goes on: add --resume")
	}
	return nil
}

// allowed lists the keys of --allow-changed, which may stand behind each other with commas.
func allowed(c *cli.Context) (keys []string) {
	for _, word := range c.StringSlice("allow-changed") {
		keys = append(keys, strings.Split(word, ",")...)
	}
	return keys
}

// tune sets the Go runtime up for what allocates little: the collector may run rarely.
func tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectMost)
	}
	spareThread()
}

// spareThread lets the goroutine that watches the clock not wait for one that computes.
func spareThread() {
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
}

// jobID names a run folder: Slurm's job, or how the ranks are started.
func jobID(mode string) (string, error) {
	switch batch, err := slurm.FromEnv(os.Getenv); {
	case batch != nil: // what else it cannot read is not what is asked here
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
	limit   time.Duration // after which the run is stopped; 0: none
	level   slog.Level
	out     io.Writer
	warn    io.Writer
}

// options are what every rank of this process starts with, but for its place in the world.
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
	o.NewUnit = func(local int) (ps.Unit, error) { return newUnit(device, local) }
	o.Bind = func(on bool) int { return mpi.Bind(t, on) }
	o.Load = load
	if t.Rank() != 0 {
		return o, nil
	}
	if j.limit, o.Problem = j.maxTime(); o.Problem != nil {
		return o, nil
	}
	o.Lead.MaxTime = j.limit
	o.Lead.Out = j.out
	o.Lead.Known = func(f configs.Facts) { _ = j.warnIdle(j.c, f) } // a warning that finds no reader stops no run
	o.Lead.Terminal, o.Lead.Width = terminal(os.Stdout)
	o.Lead.Folder = &metrics.FolderSpec{Root: "runs", Name: j.cfg.Name, Now: j.start, Out: j.c.String("out")}
	if o.Lead.Folder.JobID, o.Problem = jobID(mode); o.Problem != nil {
		return o, nil
	}
	if batch, _ := slurm.FromEnv(os.Getenv); batch != nil { // what it cannot read is not what is asked here
		o.Lead.Job, o.Lead.Restarts = batch.ID, batch.Restarts
	}
	var resolved strings.Builder
	if err := j.cfg.Resolved(&resolved, j.origins); err != nil {
		return o, err
	}
	o.Lead.Files = map[string][]byte{"config.yaml": j.src, "resolved.yaml": []byte(resolved.String())}
	o.Lead.RunInfo = j.runInfo(host, mpiText)
	j.echo(o.Hash, mpiText)
	return o, nil
}
