package steps

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// optionsOf are options for an arena of n elements in one piece.
func optionsOf(t testing.TB, n int, rule string, l1 float32, s local.Spec) *Options {
	t.Helper()
	spec := optim.Defaults()
	spec.Name, spec.LR = rule, 0.1
	r, err := optim.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &Options{Spec: s, Update: optim.Update{Rule: r, LR: spec.LR, Sched: optim.ScheduleDefaults()},
		Plan: &shard.Plan{Arena: n, Pieces: []shard.Piece{{Lo: 0, Hi: n}}},
		Runs: func(*shard.Piece) []optim.Run { return []optim.Run{{Lo: 0, Hi: n, Decay: 0.01, L1: l1}} }}
}

// The kernels do what the host does, to the bit, in the memory of the device and in what is saved.
func TestADeviceStepsAsTheHost(t *testing.T) {
	const n = 2500
	spec := local.Defaults()
	spec.Policy = "hpsgd" // keeps a base
	for _, rule := range []string{"sgd", "momentum", "nesterov", "adam", "adamw"} {
		o := optionsOf(t, n, rule, 0, spec)
		if !FitsDevice(o) {
			t.Fatalf("%s: not on devices", rule)
		}
		memory := func() [][]float32 {
			r := rand.New(rand.NewPCG(1, 2))
			m := make([][]float32, 4)
			for i := range m {
				m[i] = make([]float32, n)
				for k := range m[i] {
					m[i][k] = float32(r.NormFloat64())
				}
			}
			return m
		}
		a, b := memory(), memory()
		host := OnHost(o, a[0], a[1], a[2], a[3])
		dev, err := OnDevice(o, cpu.New(1), b[2], b[3])
		if err != nil {
			t.Fatal(err)
		}
		copy(dev.v[Own].Host, b[0])
		copy(dev.v[Grads].Host, b[1])
		for _, v := range []Vectors{host, dev} {
			v.Arrived(0, n)
			for step := range int64(3) {
				v.Begin()
				v.Step(optim.Run{Lo: 7, Hi: 2400, Decay: 0.01}, step, 12)
			}
			v.Copy(Base, Global, 0, n)
			v.Mix(0, 100, 0.3)
			v.Mix(100, 200, 0)
			v.Scale(Own, Grads, 200, 300, 0.7)
			v.Change(Outgoing, Own, Base, 0, 2000, 24)
			v.Change(Outgoing, Own, Global, 2000, n, 0.1)
			v.Change(Own, Own, Outgoing, 2000, n, 1)
			v.Leave(0, n)
			v.Left()
		}
		want, steps := host.Save(Own, Base)
		got, same := dev.Save(Own, Base)
		if want, got := append(want, a[3]), append(got, b[3]); steps != 3 || same != 3 || !slices.EqualFunc(want, got, sameBits) {
			t.Errorf("%s: vectors differ after %d and %d steps", rule, steps, same)
		}
		clear(dev.v[Own].Host)
		dev.Restored()
		if !sameBits(dev.v[Own].Host, a[0]) {
			t.Errorf("%s: what was saved is not restored", rule)
		}
		if allocs := testing.AllocsPerRun(10, func() {
			dev.Arrived(0, n)
			dev.Step(optim.Run{Lo: 0, Hi: n}, 1, 12)
			dev.Change(Outgoing, Own, Base, 0, n, 24)
			dev.Leave(0, n)
			dev.Left()
		}); allocs > 0 {
			t.Errorf("%s: a step and a push allocate %g times", rule, allocs)
		}
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// What no kernel computes stays on the host.
func TestWhatDevicesCannotDo(t *testing.T) {
	plain := local.Defaults()
	plain.Policy = "averaging"
	corrected := plain
	corrected.Policy, corrected.Compensate = "hpsgd", 0.04
	for name, o := range map[string]*Options{
		"correction of changes": optionsOf(t, 8, "sgd", 0, corrected),
		"L1 penalty":            optionsOf(t, 8, "sgd", 0.1, plain),
		"long arena":            optionsOf(t, math.MaxInt32, "sgd", 0, plain),
	} {
		if FitsDevice(o) {
			t.Errorf("%s: a device is asked to do it", name)
		}
	}
	if !FitsDevice(optionsOf(t, 8, "sgd", 0, plain)) {
		t.Error("averaging with sgd is not left to devices")
	}
}

// failing is a device whose calls fail from one on.
type failing struct {
	kernels.Device
	left  int // calls that do not fail
	calls int
}

var errFailing = errors.New("the device is gone")

func (d *failing) call() error {
	if d.calls++; d.calls > d.left {
		return errFailing
	}
	return nil
}

func (d *failing) Launch(k *kernels.Kernel, a kernels.Args) error {
	return errors.Join(d.call(), d.Device.Launch(k, a))
}
func (d *failing) Refresh(v kernels.Vec) error { return errors.Join(d.call(), d.Device.Refresh(v)) }
func (d *failing) Fetch(v kernels.Vec) (kernels.Event, error) {
	if err := d.call(); err != nil {
		return nil, err
	}
	return d.Device.Fetch(v)
}

func (d *failing) Download(to []float32, v kernels.Vec) error {
	return errors.Join(d.call(), d.Device.Download(to, v))
}

func (d *failing) Upload(v kernels.Vec, from []float32) error {
	return errors.Join(d.call(), d.Device.Upload(v, from))
}

// Whichever call of a device fails first, the vectors say so, call the device no more, and do not panic.
func TestADeviceThatFailsIsCalledNoMore(t *testing.T) {
	const n = 32
	spec := local.Defaults()
	spec.Policy = "hpsgd"
	work := func(d *Device) {
		d.Arrived(0, n)
		d.Mix(0, n, 0.5)
		d.Copy(Base, Global, 0, n)
		d.Begin()
		d.Step(optim.Run{Lo: 0, Hi: n}, 0, 4)
		d.Change(Outgoing, Own, Base, 0, n, 4)
		d.Leave(0, n)
		d.Left()
		d.Squares(Grads, 0, n)
		d.Save(Own, Base)
		d.Restored()
	}
	all := 1 << 30
	for left := 0; left <= all; left++ {
		dev := &failing{Device: cpu.New(1), left: all}
		d, err := OnDevice(optionsOf(t, n, "momentum", 0, spec), dev, make([]float32, n), make([]float32, n))
		if err != nil {
			t.Fatal(err)
		}
		dev.calls = 0
		if all == 1<<30 {
			work(d)
			all, left = dev.calls, -1
			if d.Err() != nil || all < 10 {
				t.Fatalf("%d calls, %v", all, d.Err())
			}
			continue
		}
		dev.left = left
		work(d)
		if left < all && (!errors.Is(d.Err(), errFailing) || dev.calls != left+1) || left == all && d.Err() != nil {
			t.Errorf("call %d fails: %v after %d calls", left, d.Err(), dev.calls)
		}
	}
}
