package bench

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"fluentps/internal/comm/mpi"
	"fluentps/internal/configs"
	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/ps/workload"
)

// options returns the options of a run inside a benchmark, which prints and writes nothing.
func (r *Rank) options(cfg *configs.Config) ps.Options {
	threads := cfg.Device.Threads
	return ps.Options{
		Config: cfg, Hash: configs.Hash(cfg), Transport: r.Transport, Mode: r.Mode, Host: r.Host, PID: os.Getpid(), Build: r.Build,
		NewDevice: func() (kernels.Device, error) { return r.NewDevice(threads) },
		Bind:      func(on bool) int { return mpi.Bind(r.Transport, on) },
		Warn:      r.Err,
		Lead:      ps.LeadOptions{Start: time.Now(), Out: io.Discard},
	}
}

// equalWeights are the schemes under which N pushes have the weight of one bsp step, in any order.
var equalWeights = []string{"bsp", "asp", "ssp", "bounded_delay", "dssp", "pssp", "dsps", "vap"}

// check compares the parameters with their expected values: the initial ones less the known gradient for every push that counted. Some
// schemes weigh a push by the pushes before it. Under these, all parameters must have moved by the same number of steps, with a difference
// of up to one step, because the servers may receive the last pushes in different orders.
func (k *Case) check(res ps.Result) error {
	cfg, err := k.config(1, 1)
	if err != nil {
		return err
	}
	s := res.Summary
	pushes := float64(accepted(&s.PerShard[0])) / float64(s.Workers)
	for i := range s.PerShard {
		if n := float64(accepted(&s.PerShard[i])) / float64(s.Workers); n != pushes {
			return fmt.Errorf("bench pushpull: shard %s took %g rounds, shard %s %g", s.PerShard[0].Name, pushes, s.PerShard[i].Name, n)
		}
	}
	at, tolerance := 0, 0.25/float64(s.Workers)
	if !slices.Contains(equalWeights, k.scheme) {
		pushes, tolerance = math.NaN(), 1.25
	}
	for l, n := range k.layers {
		initial := make([]float32, n)
		workload.Fill(initial, cfg.Seed, workload.Param{Name: fmt.Sprintf("layer%d.weight", l+1), Fan: int(n)}, 0)
		for i, w0 := range initial {
			w := res.Parameters[at]
			at++
			steps := float64(w0-w) / float64(workload.SyntheticGradient(i))
			if math.IsNaN(pushes) {
				pushes = steps
			}
			if !(math.Abs(steps-pushes) < tolerance) || !(steps > 0) {
				return fmt.Errorf("bench pushpull: %s, %s under %s: parameter %d of layer %d is %v and was %v: that is %.3f "+
					"steps, must be %.3f; the figures would be of a wrong program",
					configs.FormatSize(k.bytes), configs.FormatSize(4*n)+" a layer", k.scheme, i, l+1, w, w0, steps, pushes)
			}
		}
	}
	if at != len(res.Parameters) {
		return fmt.Errorf("bench pushpull: %d parameters came back, must be %d", len(res.Parameters), at)
	}
	return nil
}

// accepted returns how many pushes of a shard counted.
func accepted(s *metrics.ShardSummary) int64 { return s.Pushes - s.Dropped }
