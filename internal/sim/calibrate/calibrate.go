// Package calibrate fits the models of the simulator to a recorded run: what computing costs and how it varies, the rates of the servers,
// bandwidth and latency. It runs the engine (internal/sim) about 80 times for a fit, without checks.
package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/ps/workload"
)

// Calibration holds the models that were fitted to a real run.
type Calibration struct {
	Models     configs.Simulate // the fitted models
	Slow       straggler.Spec   // the slowness of all workers: it replays the computing times of the run
	Drawn      Drawn            // the fitted distribution, for drawing computing times instead
	Path       string           // iterations of the run
	Batches    int              // number of batches that a worker has computed, at most: with one only the time per sample is known
	Iterations int              // the fit uses so many first iterations of the run, over all workers
	Measured   time.Duration    // from the start of training until these iterations were computed
	Simulated  time.Duration    // the same time in the run simulated with Models
}

// Drawn is a distribution of computing times.
type Drawn struct {
	Share float64         // of Models.Compute that a computing time is at least
	Slow  *straggler.Spec // what is added to it; nil: nothing
	Gap   float64         // largest distance between this distribution and that of the times, 0..1
}

const (
	// calibrateWork bounds the pushes of one simulated run of the fit. A fit simulates about 80 runs.
	calibrateWork = 40_000
	// latencyMax and secondsPerByteMax bound the search for latency and bandwidth.
	latencyMax        = 10.0
	secondsPerByteMax = 1e-3
	// rateMax is the highest rate that the configuration accepts, in bytes per second.
	rateMax = 1 << 50
	// listMax is the longest list that the configuration accepts.
	listMax = 4096
)

// Fit fits the models to a real run. The computing times of a worker come from its records. One rate of folding and
// committing comes from the time that the servers spent on both. Bandwidth and latency come from repeated simulations of the run:
// with the right bandwidth replies take as long to read, with the right latency the run takes as long. Every rank counts as a
// host, so latency and bandwidth include all costs of a step between two ranks. Further runs of the same workers with other batches
// tell what of the computing time goes by iteration and what by sample. It fails if a recording cannot be used.
func Fit(r Recording, others ...Recording) (*Calibration, error) {
	if err := cmp.Or(r.CheckSummary(), r.CheckConsistency()); err != nil {
		return nil, err
	}
	runs := [][]straggler.Trace{r.Traces()}
	for i := range others {
		o := &others[i]
		if err := cmp.Or(o.CheckSummary(), o.CheckConsistency()); err != nil {
			return nil, err
		}
		if len(o.Iterations) != len(r.Iterations) {
			return nil, fmt.Errorf("%s has the iterations of %d workers, %s those of %d; take runs of the same workers",
				o.Path, len(o.Iterations), r.Path, len(r.Iterations))
		}
		runs = append(runs, o.Traces())
	}
	c := &Calibration{Path: r.Path}
	c.Iterations, c.Measured = r.window()
	if err := r.refuseFold(c.Iterations, c.Measured); err != nil {
		return nil, err
	}
	c.Models = configs.Simulate{Workers: len(runs[0]), RanksPerHost: 1, PushNorm: r.Options.Config.Simulate.PushNorm}
	c.Drawn, c.Batches = fitCompute(&c.Models, runs)
	c.Slow = straggler.Spec{Kind: "trace", Path: r.Path}
	r.Options.Traces = configs.Traces{r.Path: runs[0]}
	f := &fit{r: &r, c: c}
	if err := f.servers(); err != nil {
		return nil, err
	}
	for range 2 { // latency hardly changes the time of a transfer, so the second fit confirms the first
		if err := f.network(); err != nil {
			return nil, err
		}
	}
	end, err := f.run()
	c.Simulated = end.end
	return c, err
}

// fit simulates the recorded run with the models that have been fitted so far.
type fit struct {
	r *Recording
	c *Calibration
}

// outcome has the times by which a simulated run is compared with the recorded one.
type outcome struct {
	end  time.Duration // when the last iteration of the window was computed
	pull float64       // seconds from the header of the last reply until the reply was read, mean
	fold float64       // seconds of the servers per iteration of a worker
}

func (f *fit) run() (outcome, error) {
	cfg := *f.r.Options.Config
	cfg.Simulate = f.c.Models
	cfg.Faults = append(slices.Clip(cfg.Faults), configs.Fault{Worker: -1, Slow: f.c.Slow})
	batch := max(cfg.Train.BatchPerWorker, (cfg.Train.BatchGlobal+cfg.Simulate.Workers-1)/cfg.Simulate.Workers)
	cfg.Train.Stop = configs.Stop{Samples: int64((f.c.Iterations + cfg.Simulate.Workers) * batch)}
	o := f.r.Options
	o.Config = &cfg
	ends := make([]time.Duration, 0, f.c.Iterations)
	o.Computed = func(_ int, _ int64, _, until time.Duration) {
		if len(ends) < f.c.Iterations {
			ends = append(ends, until)
		}
	}
	res, err := sim.Run(o)
	if err != nil {
		return outcome{}, err
	}
	if len(ends) < f.c.Iterations {
		return outcome{}, fmt.Errorf("the simulated run ended after %d of %d iterations", len(ends), f.c.Iterations)
	}
	s := res.Summary
	return outcome{end: ends[len(ends)-1],
		pull: float64(s.PerRole[metrics.RoleWorker]["pull"].Avg) / float64(s.Iterations), fold: foldOf(s)}, nil
}

// foldOf is the time that all servers together spent on one push of one worker, in seconds.
func foldOf(s *metrics.Summary) float64 {
	return float64(s.PerRole[metrics.RoleServer]["fold"].Avg) * float64(s.Servers) / (float64(s.Iterations) * float64(s.Workers))
}

// servers fits one rate of folding and committing, because a run records only their sum.
func (f *fit) servers() error {
	const trial = 1e9
	m := &f.c.Models
	m.FoldRate, m.CommitRate = trial, trial
	o, err := f.run()
	if err != nil {
		return err
	}
	m.FoldRate, m.CommitRate = 0, 0
	if took := foldOf(f.r.Summary); took > 0 && o.fold > 0 {
		rate := trial * o.fold / took
		if rate > rateMax {
			return fmt.Errorf("summary.json has %g seconds in per_role.server.fold.avg for %d iterations: its servers would "+
				"fold %.3g bytes per second, but no server can fold more than %d; the file is damaged: take another run, or make this one again",
				float64(f.r.Summary.PerRole[metrics.RoleServer]["fold"].Avg), f.r.Summary.Iterations, rate, int64(rateMax))
		}
		m.FoldRate = int64(min(rateMax, max(1, digits(rate, 3))))
		m.CommitRate = m.FoldRate
	}
	return nil
}

// network fits the bandwidth to the time that the recorded replies took to read, then the latency to the time of the run.
func (f *fit) network() error {
	net := &f.c.Models.Network
	var pulls []float64
	for _, of := range f.r.Iterations {
		for i := range of {
			pulls = append(pulls, of[i].Pull.Seconds())
		}
	}
	slices.Sort(pulls)
	perByte, err := solve(1e-12, secondsPerByteMax, pulls[len(pulls)/2], 0.01, func(x float64) (float64, error) {
		net.Bandwidth = 0
		if x > 0 {
			net.Bandwidth = int64(min(rateMax, 1/x))
		}
		o, err := f.run()
		return o.pull, err
	})
	if err != nil {
		return err
	}
	net.Bandwidth = 0
	if perByte > 0 {
		net.Bandwidth = int64(min(rateMax, digits(1/perByte, 3)))
	}
	setLatency := func(x float64) { net.Latency = time.Duration(digits(x*1e9, 3)) }
	latency, err := solve(1e-6, latencyMax, f.c.Measured.Seconds(), 0.001, func(x float64) (float64, error) {
		setLatency(x)
		o, err := f.run()
		return o.end.Seconds(), err
	})
	setLatency(latency)
	return err
}

// solve finds x in [0, most] with f(x) = want, with a tolerance of share*want, for an f that grows with x. It returns 0 if f(0)
// reaches want, and most if f(most) does not. It returns 0 if f does not depend on x, as with a network between no hosts.
func solve(first, most, want, share float64, f func(float64) (float64, error)) (float64, error) {
	lo, hi := 0.0, first
	least, err := f(0)
	if err != nil || least >= want {
		return 0, err
	}
	y := least
	for {
		if y, err = f(hi); err != nil {
			return 0, err
		}
		if y >= want {
			break
		}
		if hi == most {
			if y <= least*(1+share) {
				return 0, nil
			}
			return most, nil
		}
		lo, hi = hi, min(4*hi, most)
	}
	x := hi
	for range 30 {
		if math.Abs(y-want) <= share*want {
			break
		}
		x = (lo + hi) / 2
		if y, err = f(x); err != nil {
			return 0, err
		}
		if y < want {
			lo = x
		} else {
			hi = x
		}
	}
	return x, nil
}

// digits rounds x to n significant digits.
func digits(x float64, n int) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-float64(n-1))
	if unit < 1 {
		return math.Round(x*math.Round(1/unit)) / math.Round(1/unit)
	}
	return math.Round(x/unit) * unit
}

// Draw makes the models draw computing times instead of replaying those of the run.
func (c *Calibration) Draw() {
	c.Models.Compute, c.Slow = c.Drawn.of(c.Models.Compute), straggler.Spec{}
	if c.Drawn.Slow != nil {
		c.Slow = *c.Drawn.Slow
	}
}

// Text is the models, and the faults that were simulated, as the sections simulate: and faults: of a configuration, with comments on the
// run that the models were fitted to.
func (c *Calibration) Text(faults []configs.Fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# simulated: models fitted to the first %d iterations of %s\n", c.Iterations, c.Path)
	fmt.Fprintf(&b, "# these iterations took %.4g s; simulated with these models, %.4g s\n", c.Measured.Seconds(), c.Simulated.Seconds())
	if c.Batches == 1 {
		b.WriteString("# all iterations of a worker had one batch, so all computing counts as time per sample; " +
			"--calibrate with a further run of another batch tells more\n")
	}
	b.WriteString("simulate:\n")
	for _, line := range c.lines() {
		b.WriteString("  " + line + "\n")
	}
	if len(faults) > 0 {
		b.WriteString("faults:\n")
	}
	for i := range faults {
		b.WriteString("  - " + configs.FaultText(&faults[i]) + "\n")
	}
	if c.Slow.Kind == "trace" {
		fmt.Fprintf(&b, "# to draw similar computing times instead of replaying the trace (the distributions differ by "+
			"%.2g at most): simulate: {compute: %s}", c.Drawn.Gap, costText(c.Drawn.of(c.Models.Compute)))
		if s := c.Drawn.Slow; s != nil {
			fmt.Fprintf(&b, ", and in faults: %s", configs.FaultText(&configs.Fault{Worker: -1, Slow: *s}))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Setting is the models as one setting, for --set.
func (c *Calibration) Setting() string { return "simulate={" + strings.Join(c.lines(), ", ") + "}" }

// Fault is the slowness of all workers; nil if there is none.
func (c *Calibration) Fault() *configs.Fault {
	if c.Slow.Kind == "" {
		return nil
	}
	return &configs.Fault{Worker: -1, Slow: c.Slow}
}

func (c *Calibration) lines() []string {
	m := &c.Models
	return []string{
		fmt.Sprintf("workers: %d", m.Workers),
		"compute: " + costText(m.Compute),
		"per_worker: " + factors(m.PerWorker),
		"fixed_per_worker: " + factors(m.FixedPerWorker),
		fmt.Sprintf("network: {bandwidth: %s, latency: %s}", decimalText(m.Network.Bandwidth), ascii(m.Network.Latency)),
		fmt.Sprintf("server: {fold: %s, commit: %s}", decimalText(m.FoldRate), decimalText(m.CommitRate)),
		fmt.Sprintf("push_norm: %g", m.PushNorm),
	}
}

func factors(all []float64) string {
	var of []string
	for _, x := range all {
		of = append(of, fmt.Sprintf("%.4g", x))
	}
	return "[" + strings.Join(of, ", ") + "]"
}

func costText(c workload.Cost) string {
	return fmt.Sprintf("{fixed: %s, per_sample: %s}", ascii(c.Fixed), ascii(c.PerSample))
}

// of is what computing takes at least, in place of that cost.
func (d *Drawn) of(c workload.Cost) workload.Cost {
	least := workload.Cost{Fixed: time.Duration(float64(c.Fixed) * d.Share), PerSample: time.Duration(float64(c.PerSample) * d.Share)}
	if least.Of(1) == 0 {
		least.Fixed = 1
	}
	return least
}

// ascii writes a time with us in place of µs, which not every editor can show.
func ascii(d time.Duration) string { return strings.ReplaceAll(d.String(), "µs", "us") }

// decimalText writes a size in the largest decimal unit that divides it.
func decimalText(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
