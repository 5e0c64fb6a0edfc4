package train_test

import (
	"slices"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// slow is a transport that reports late that a bulk message has left.
type slow struct {
	comm.Transport
	flights *sidestest.InFlight
}

func (s slow) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch == comm.Data {
		end, told := s.flights.Begin(b.Bytes()[off:off+n]), h
		h = func(d comm.Done) {
			time.AfterFunc(300*time.Microsecond, func() {
				s.Post(func() {
					end()
					told(d)
				})
			})
		}
	}
	return s.Transport.Isend(to, ch, tag, b, off, n, h)
}

func (s slow) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch == comm.Data {
		end, told := s.flights.Begin(b.Bytes()[off:off+n]), h
		h = func(d comm.Done) {
			end()
			told(d)
		}
	}
	return s.Transport.Irecv(from, ch, tag, b, off, n, h)
}

// No kernel runs on memory that the network may be reading or writing, however late a transport reports completion.
func TestNoKernelTouchesWhatIsOnItsWay(t *testing.T) {
	for i, set := range [][]string{nil, nil, {"send.order=priority", "shards.max_bytes=128B"},
		{`sync=[{match: "*", scheme: asp}]`}, {"send.overlap=false"}} {
		c := load(t, append([]string{"model={name: mlp, layers: [24, 16]}"}, set...)...)
		count := &sidestest.Copies{}
		ts := stationtest.Transports("abcdef")
		for k := range ts {
			ts[k] = slow{ts[k], &count.Flights}
		}
		sidestest.Train(t, c, len(ts), sidestest.Options{Hosts: "abcdef", Transports: ts, Thresholds: layout.Thresholds{Inline: 1},
			Placer: placed, Device: func(int) kernels.Device {
				d := sidestest.NewDistant(cpu.New(1), count)
				d.Eager = i > 0
				return d
			}})
		if f := &count.Flights; f.All == 0 || len(f.Spans) > 0 || len(f.Violations) > 0 {
			t.Errorf("%v: %d messages, %d of them still in flight; kernels on memory in flight: %v", set, f.All, len(f.Spans), f.Violations)
		}
	}
}

// placed lets the network reach the memory of a device.
func placed(d kernels.Device) kernels.Placer { return d.(*sidestest.Distant) }

// trainDistant trains with the sides of 6 ranks whose devices have memory of their own, which the network reaches or does not;
// hosts "": one rank a host.
func trainDistant(t *testing.T, hosts string, inlineMax int, reaches bool, set ...string) (*sidestest.Result, *sidestest.Copies) {
	t.Helper()
	if hosts == "" {
		hosts = "abcdef"
	}
	count := &sidestest.Copies{}
	o := sidestest.Options{Hosts: hosts, Thresholds: layout.Thresholds{Inline: inlineMax},
		Device: func(int) kernels.Device { return sidestest.NewDistant(cpu.New(1), count) }}
	if reaches {
		o.Placer = placed
	}
	return sidestest.Train(t, load(t, set...), len(hosts), o), count
}

// A network that reaches device memory writes parameters and reads gradients there, in the same order as with copies: the
// result has the same bits. Only what the network does not reach is copied.
func TestANetworkThatReachesTheDeviceTakesTheSameBits(t *testing.T) {
	mlp := []string{"model={name: mlp, layers: [24, 16]}"}
	const arena = 20*24 + 24 + 24*16 + 16 + 16*4 + 4
	const iterations, workers = 30, 4
	for _, c := range []struct {
		name      string
		set       []string
		hosts     string
		inlineMax int
		direct    bool
		in, out   int // elements copied in an iteration of all workers; -1: some
	}{
		{"all pieces", nil, "", 1, true, 0, 0},
		{"a shard per layer", []string{"shards.slice=layer"}, "", 1, true, 0, 0},
		{"short pieces", []string{"shards.max_bytes=128B", "send.order=priority"}, "", 1, true, 0, 0},
		{"no overlap", []string{"send.overlap=false"}, "", 1, true, 0, 0},
		{"as PS-Lite does", []string{"baseline=pslite"}, "", 1, true, 0, 0},
		{"with keys", []string{"baseline={name: pslite, keys: scalar}"}, "", 1, false, workers * arena, workers * arena},
		{"the last layer in frames", []string{"shards.slice=layer"}, "", 4 * (16*4 + 4), true, workers * (16*4 + 4), workers * (16*4 + 4)},
		{"all in frames", nil, "", 1 << 20, false, workers * arena, workers * arena},
		{"pushes encoded", []string{"payload.push=float16"}, "", 1, true, 0, workers * arena},
		{"replies encoded", []string{"payload.pull=float16"}, "", 1, true, workers * arena, 0},
		{"one rule pushes deltas",
			[]string{`sync=[{match: "fc1.*", scheme: bsp, push: delta, update: add}, {match: "*", scheme: bsp}]`}, "", 1,
			true, workers * (20*24 + 24), workers * (20*24 + 24)},
		{"servers on a worker's rank", []string{"cluster.placement=colocate"}, "", 1, true, -1, -1},
		{"servers on a worker's host", nil, "aaabbb", 1, true, -1, -1},
		{"the same in messages", []string{"cluster.shared_memory=off"}, "aaabbb", 1, true, 0, 0},
		{"the ranks of a host are one worker", []string{"cluster.hierarchy=node"}, "aaabbb", 1, false, workers * arena, workers * arena},
		{"steps of the workers' own", []string{"local={policy: averaging, steps: 3}"}, "", 1, false, workers * arena, workers * arena},
	} {
		if stationtest.UnderRace && !slices.Contains([]string{"short pieces", "as PS-Lite does", "with keys", "the last layer in frames",
			"pushes encoded", "servers on a worker's host", "the ranks of a host are one worker", "steps of the workers' own"}, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			set := append(slices.Clone(mlp), c.set...)
			staged, through := trainDistant(t, c.hosts, c.inlineMax, false, set...)
			direct, count := trainDistant(t, c.hosts, c.inlineMax, true, set...)
			if staged.Workers[0].Iterations != iterations || direct.SHA256() != staged.SHA256() {
				t.Errorf("%d iterations, parameters %s, with copies %s", staged.Workers[0].Iterations,
					direct.SHA256(), staged.SHA256())
			}
			if (count.Placed > 0) != c.direct || through.Placed > 0 {
				t.Errorf("placed %d arenas, with copies %d", count.Placed, through.Placed)
			}
			if c.in >= 0 && (count.In != iterations*c.in || count.Out != iterations*c.out) {
				t.Errorf("copied %d elements in and %d out, want %d and %d; with copies %d and %d", count.In, count.Out,
					iterations*c.in, iterations*c.out, through.In, through.Out)
			}
			if c.in < 0 && (count.Out == 0 || count.Out >= through.Out || count.In == 0 || count.In >= through.In) {
				t.Errorf("copied %d elements in and %d out; with copies %d and %d", count.In, count.Out, through.In, through.Out)
			}
		})
	}
}

// What workers with steps of their own push is not what their devices computed last, also where the host takes these steps.
func TestANetworkDoesNotSendTheGradientsOfOwnSteps(t *testing.T) {
	set := []string{"model={name: mlp, layers: [24, 16]}", "local={policy: hpsgd, steps: 3, compensate: 0.04}",
		"train.optimizer={name: sgd, lr: 0.1}"}
	want := mustTrain(t, load(t, set...), 6).SHA256()
	if got, count := trainDistant(t, "", 1, true, set...); got.SHA256() != want || count.Placed > 0 {
		t.Errorf("parameters %s, on the host %s; placed %d arenas", got.SHA256(), want, count.Placed)
	}
}
