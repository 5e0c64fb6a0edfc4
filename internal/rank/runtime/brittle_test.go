package runtime

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"fluentps/internal/rank/sidestest"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

var errBroken = errors.New("the card has fallen off the bus")

// moment counts the calls of all devices of a rank, and all of them fail from one call on.
type moment struct {
	calls, failsAt atomic.Int64 // failsAt 0: never
}

func (m *moment) call() error {
	if n := m.calls.Add(1); m.failsAt.Load() > 0 && n >= m.failsAt.Load() {
		return errBroken
	}
	return nil
}

// callsOfEvaluation is how often an evaluation of softmax on the test set calls its device.
const callsOfEvaluation = 3

// brittle is a device that fails at a moment.
type brittle struct {
	kernels.Device
	at *moment
}

func (d brittle) Launch(k *kernels.Kernel, a kernels.Args) error {
	if err := d.at.call(); err != nil {
		return err
	}
	return d.Device.Launch(k, a)
}

func (d brittle) Refresh(v kernels.Vec) error {
	if err := d.at.call(); err != nil {
		return err
	}
	return d.Device.Refresh(v)
}

func (d brittle) Fetch(v kernels.Vec) (kernels.Event, error) {
	if err := d.at.call(); err != nil {
		return nil, err
	}
	return d.Device.Fetch(v)
}

func (d brittle) Download(to []float32, v kernels.Vec) error {
	if err := d.at.call(); err != nil {
		return err
	}
	return d.Device.Download(to, v)
}

// eager is a device with memory of its own that computes and copies at once.
func eager(of kernels.Device) kernels.Device {
	d := sidestest.NewDistant(of, new(sidestest.Copies))
	d.Eager = true
	return d
}

// A device that fails ends the run with code 1 on all ranks, wherever a rank computes. The error names the rank, what it did at which
// iteration, and the cause, and nothing panics.
func TestADeviceThatFailsEndsTheRun(t *testing.T) {
	says := regexp.MustCompile(`^rank \d+(, worker \d+: (iteration \d+: (forward|backward|step|push)|checkpoint before iteration \d+)|: evaluation of test rows \d+ to \d+): .*: ` + errBroken.Error() + "$")
	random := rand.New(rand.NewPCG(7, 9))
	for name, c := range map[string]struct {
		hosts   string
		rank    int  // whose device fails
		distant bool // the device has memory of its own
		set     []string
	}{
		"a worker":         {"aaaa", 3, false, nil},
		"a rank with both": {"aaaa", 3, false, []string{"cluster={servers: 1, placement: mixed}"}},
		"on a card":        {"aaaa", 2, true, []string{"model={name: mlp, layers: [12, 8]}"}},
		"without overlap":  {"aaaa", 2, false, []string{"send.overlap=false", "model={name: mlp, layers: [12, 8]}"}},
		"pslite":           {"aaaa", 2, false, []string{"baseline={name: pslite}"}},
		"all-reduce":       {"aaa", 1, false, []string{"baseline=allreduce"}},
		"moving work":      {"aaaa", 2, false, []string{"work={policy: flexrr}", "sync=[{match: '*', scheme: ssp, staleness: 1}]"}},
		"own steps":        {"aaaa", 2, false, []string{"local={policy: averaging, steps: 3}", "train.optimizer={name: sgd, lr: 0.1}"}},
		"own steps on a card": {"aaaa", 2, true,
			[]string{"local={policy: hpsgd, steps: 3}", "model={name: mlp, layers: [12, 8]}", "train.optimizer={name: sgd, lr: 0.1}",
				"checkpoint={every_updates: 5}"}},
		"a leader with members": {"saabb", 3, false, []string{"cluster={servers: 1, hierarchy: node}"}},
		"a member's own steps": {"saabb", 2, false,
			[]string{"cluster={servers: 1, hierarchy: node}", "local={policy: averaging, steps: 4, host_steps: 2}",
				"train.optimizer={name: sgd, lr: 0.1}"}},
		"evaluation after":  {"aaaa", 3, false, []string{"evaluate={every_samples: 64, where: after}"}},
		"evaluation beside": {"aaaa", 0, false, []string{"evaluate={every_samples: 64, where: online}"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.set = append([]string{"stall={warn: 20s, abort: 40s}", "train.stop={updates: 60}"}, c.set...)
			at := new(moment)
			said := new(lines)
			run := func() ([]Result, []error) {
				return runOnHosts(t, c.hosts, load(t, c.set...), func(o *Options) {
					if o.Warn = said; o.Transport.Rank() != c.rank {
						return
					}
					o.NewDevice = func() (kernels.Device, error) {
						if c.distant {
							return brittle{eager(cpu.New(1)), at}, nil
						}
						return brittle{cpu.New(1), at}, nil
					}
				})
			}
			if _, errs := run(); errors.Join(errs...) != nil {
				t.Fatal(errors.Join(errs...))
			}
			calls := at.calls.Load()
			for range 3 {
				at.calls.Store(0)
				from, to := int64(0), calls*4/5 // a run may take fewer calls than the last one
				switch name {
				case "evaluation beside": // how many there are, time decides
					to = callsOfEvaluation
				case "evaluation after": // the last calls
					from, to = calls-4*callsOfEvaluation, calls
				}
				at.failsAt.Store(from + 1 + random.Int64N(to-from))
				said = new(lines)
				res, errs := run()
				for rank, err := range errs {
					if err == nil || res[rank].Code != CodeFailed {
						t.Errorf("call %d of %d fails: rank %d ends with code %d and %v", at.failsAt.Load(), calls, rank, res[rank].Code, err)
					}
				}
				if err := errs[c.rank]; !errors.Is(err, errBroken) || !says.MatchString(err.Error()) {
					t.Errorf("call %d of %d fails: rank %d says %v", at.failsAt.Load(), calls, c.rank, err)
				}
				if text := said.String(); !strings.Contains(text, errBroken.Error()) || strings.Contains(text, "panic") ||
					strings.Contains(text, "goroutine") {
					t.Errorf("call %d of %d fails: logged\n%s", at.failsAt.Load(), calls, text)
				}
			}
		})
	}
}
