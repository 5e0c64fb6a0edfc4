package runtime

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/comm/inproc"
	"fluentps/internal/rank/sidestest"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// planting is a device whose memory is damaged: from the given launch of a kernel on, some elements of one of its vectors get another
// value, before or after the kernel has run.
type planting struct {
	kernels.Device
	kernel   *kernels.Kernel
	vec      int
	elements []int
	value    float32
	from, to int // launches, from 1
	before   bool
	launches int
}

func (p *planting) Launch(k *kernels.Kernel, a kernels.Args) error {
	hit := false
	if k == p.kernel {
		p.launches++
		hit = p.launches >= p.from && p.launches <= p.to
	}
	plant := func() {
		for _, i := range p.elements {
			a.V[p.vec].Host[i] = p.value
		}
	}
	if hit && p.before {
		plant()
	}
	err := p.Device.Launch(k, a)
	if hit && !p.before {
		plant()
	}
	return err
}

// plantedRows are rows whose values are not numbers from the third batch on.
type plantedRows struct {
	dataset.Table
	fills *int
}

func (p plantedRows) Fill(x []float32, y []int32, rows []int32) {
	p.Table.Fill(x, y, rows)
	if *p.fills++; *p.fills >= 3 && len(x) > 3 {
		x[3] = float32(math.NaN())
	}
}

// plant is a fault in some of the workers, and what a run must say of it.
type plant struct {
	place   string
	workers []int
	device  planting // nothing if its kernel is nil
	data    bool
	set     []string
	want    []string
	hosts   []int // of the ranks; nil: six on one host
	ranks   []int // of the workers; nil: workersOf6
}

// workersOf6 are the ranks of the workers 0 to 3 of a world of 6 with 2 servers.
var workersOf6 = []int{2, 3, 4, 5}

// found runs a world of 6 ranks with a plant, and returns how it has finished.
func (p *plant) found(t *testing.T, set []string, change func(*Options)) string {
	t.Helper()
	c := load(t, slices.Concat([]string{"train.stop={updates: 12}", "model={name: mlp, layers: [16]}"}, set, p.set)...)
	hosts, computing := []int{0, 0, 0, 0, 0, 0}, workersOf6
	if p.hosts != nil {
		hosts, computing = p.hosts, p.ranks
	}
	res, errs := runOver(t, inproc.New(len(hosts), inproc.Options{Hosts: hosts}), c, func(o *Options) {
		o.Host = string(rune('a' + hosts[o.Transport.Rank()]))
		o.thresholds.Shared = math.MaxInt64
		if change != nil {
			change(o)
		}
		rank := o.Transport.Rank()
		hit := slices.ContainsFunc(p.workers, func(w int) bool { return computing[w] == rank })
		if p.device.kernel != nil && hit {
			d := p.device
			wrap := func(of kernels.Device) kernels.Device { d.Device = of; return &d }
			if unit := o.NewUnit; unit != nil {
				o.NewUnit = func(int) (Unit, error) {
					return Unit{Device: sidestest.NewDistant(wrap(cpu.New(1)), &sidestest.Copies{}), ID: "gpu"}, nil
				}
			} else {
				o.NewDevice = func() (kernels.Device, error) { return wrap(cpu.New(1)), nil }
			}
		}
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil || !p.data || !hit {
				return set, err
			}
			mine := *set
			mine.Train = plantedRows{set.Train, new(int)}
			return &mine, nil
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if res[0].Code != CodeFailed {
		t.Errorf("exit code %d, want %d", res[0].Code, CodeFailed)
	}
	return res[0].Summary.Finished
}

const (
	once = 3 // the launch of a kernel in the third iteration
	ever = math.MaxInt
)

// bias plants values in the gradient of the bias of the last layer: the first bias_grad of an iteration computes it.
func bias(value float32, from, to int, elements ...int) planting {
	return planting{kernel: kernels.BiasGrad, vec: 1, value: value, from: from, to: to, elements: elements}
}

var notFinite = map[string]float32{"NaN": float32(math.NaN()), "+Inf": float32(math.Inf(1)), "-Inf": float32(math.Inf(-1))}

// plants are the seven places. With two layers, launches 2i+1 and 2i+2 of bias_grad are those of iteration i.
func plants() []plant {
	nan := notFinite["NaN"]
	return []plant{
		{place: "data", workers: []int{1}, data: true,
			want: []string{"NaN, arose in the data: column 3 of sample 0 in the batch of worker 1 in iteration 2", "data.set generated"}},
		{place: "loss", workers: []int{2},
			device: planting{kernel: kernels.SoftmaxXent, vec: 3, elements: []int{1}, value: notFinite["+Inf"], from: once,
				to: ever}, want: []string{"+Inf, arose in the loss of worker 2 in iteration 2", "lower train.optimizer.lr (now 0.1)"}},
		{place: "gradient", workers: []int{1}, device: bias(nan, 5, ever, 1),
			want: []string{"NaN, arose in the gradient: fc2.bias[1] of worker 1 in iteration 2", "lower train.optimizer.lr (now 0.1)"}},
		{place: "sum", workers: []int{1, 3}, device: bias(3e38, 5, 5, 2),
			want: []string{"+Inf, arose in the pending sum: fc2.bias[2], the sum of pushes on server ", "for version 3", "largest gradient 3"}},
		// The server scales a push by the batch and the workers (1/32). The rate is hardly larger than the plant needs: a larger
		// one makes a loss infinite by itself, before the plant's push arrives.
		{place: "optimizer", workers: []int{1}, device: bias(3e38, 5, 5, 2),
			set: []string{"train.optimizer={name: momentum, lr: 60}"},
			want: []string{"-Inf, arose in the optimizer: fc2.bias[2], in the step on server ", "to version 3",
				"lower train.optimizer.lr (now 60)"}},
		{place: "weight decay", set: []string{"train.optimizer={name: sgd, lr: 100, weight_decay: 1e37}"},
			want: []string{"arose in the optimizer: fc1.weight[", "lower train.optimizer.weight_decay (now 1e+37)"}},
		{place: "parameters", workers: []int{3},
			device: planting{kernel: kernels.BiasReLU, vec: 1, elements: []int{4}, value: nan, from: once, to: once,
				before: true}, want: []string{"NaN, arose in the parameters: fc1.bias[4], as worker 3 reads it in iteration 2"}},
	}
}

// A run tells where the first value that was not finite arose, in which tensor, of which worker, and which key acts there, under every
// payload, with folds in memory that workers and servers share and without, and on devices with memory of their own.
func TestTheFirstNaNIsNamed(t *testing.T) {
	payloads := map[string][]string{
		"float32": nil, "float16": {"payload={push: float16}"}, "bfloat16": {"payload={push: bfloat16}"},
		"topk": {"payload={push: topk, ratio: 0.5}"}, "threshold": {"payload={push: threshold, threshold: 1e-4, ratio: 0.5}"},
	}
	shared := func(o *Options) { o.thresholds.Shared = 1 }
	apart := func(o *Options) {
		o.NewUnit = func(int) (Unit, error) {
			return Unit{Device: sidestest.NewDistant(cpu.New(1), &sidestest.Copies{}), ID: "gpu"}, nil
		}
	}
	check := func(t *testing.T, name string, p *plant, set []string, change func(*Options)) {
		t.Run(fmt.Sprintf("%s/%s", name, p.place), func(t *testing.T) {
			finished := p.found(t, set, change)
			for _, want := range append([]string{"diverged: the first value that is not finite, "}, p.want...) {
				if !strings.Contains(finished, want) {
					t.Errorf("finished %q; want %q in it", finished, want)
				}
			}
		})
	}
	for _, p := range plants() {
		for name, set := range payloads {
			if !runsInRaceMode(name, "float32", "topk") {
				continue
			}
			if p.place == "sum" && name == "float16" || p.place == "optimizer" && name == "float16" {
				continue // its largest value is 65504, so 1e38 is infinite before it is sent
			}
			check(t, name, &p, set, nil)
		}
		check(t, "shared", &p, nil, shared)
		if p.place == "parameters" { // the device's copy is damaged, and that of the host, which the rank can see, is not
			p.want = []string{"NaN, arose in the loss of worker 3 in iteration 2"}
		}
		check(t, "apart", &p, nil, apart)
	}
	for _, p := range plants() {
		if p.place == "sum" {
			continue // each push makes a version
		}
		if p.place == "optimizer" {
			p.device.from, p.device.to = 1, 1 // in the first iteration: the others are at most six steps ahead of it, and not a dozen
		}
		p.want = slices.DeleteFunc(p.want, func(s string) bool { return s == "to version 3" || strings.HasPrefix(s, "arose in the optimizer") })
		check(t, "ssp", &p, []string{"sync=[{match: '*', scheme: ssp, staleness: 1}]", "train.stop={updates: 48}"}, shared)
	}
	clip := []string{"train.clip.norm=1e3"} // a norm that is not finite hides nothing
	for _, p := range plants() {
		if p.place != "sum" && p.place != "optimizer" { // clipped gradients are not so large
			check(t, "clip", &p, clip, nil)
			check(t, "clip, topk", &p, append(payloads["topk"], clip...), shared)
		}
	}
	mean := []string{"train.clip={norm: 1e3, of: mean}", "sync=[{match: '*', scheme: drop, contributors: step}]"}
	for _, p := range plants() {
		if p.place != "optimizer" {
			check(t, "clip of the mean", &p, mean, nil)
		}
	}
	for name, p := range map[string]plant{
		"float16": {workers: []int{1}, device: bias(1e5, 5, 5, 1),
			want: []string{"+Inf, arose in the payload: the push of fc2.bias[1] of worker 1 in iteration 2, encoded as float16",
				"set payload.push to bfloat16 or float32"}},
		"bfloat16": {workers: []int{1}, device: bias(-math.MaxFloat32, 5, 5, 1),
			want: []string{"-Inf, arose in the payload: the push of fc2.bias[1] of worker 1 in iteration 2, encoded as " +
				"bfloat16", "set payload.push to float32"}},
		"topk": {workers: []int{1}, device: bias(2e38, 5, ever, 0, 1, 2, 3),
			want: []string{"+Inf, arose in the payload: the push of fc2.bias[", "of worker 1 in iteration 3", "set payload.push to float32"}},
		"threshold": {workers: []int{1}, device: bias(2e38, 5, ever, 0, 1, 2, 3),
			want: []string{"+Inf, arose in the payload: the push of fc2.bias[", "of worker 1 in iteration 3", "set payload.push to float32"}},
	} {
		p.place = "payload"
		set := append(slices.Clone(payloads[name]), "shards.slice=layer")
		if name == "topk" || name == "threshold" { // of four elements two are sent, and the others added to the next
			set = append(set, "payload.ratio=0.02")
		}
		check(t, name, &p, set, nil)
	}
	local := []string{"local={policy: averaging, steps: 4}", "train.optimizer={name: sgd, lr: 1}"}
	nan := notFinite["NaN"]
	for _, p := range []plant{
		{place: "data", workers: []int{1}, data: true,
			want: []string{"NaN, arose in the data: column 3 of sample 0 in the batch of worker 1 in its step 2"}},
		{place: "loss", workers: []int{2},
			device: planting{kernel: kernels.SoftmaxXent, vec: 3, elements: []int{1}, value: notFinite["+Inf"], from: once,
				to: ever}, want: []string{"+Inf, arose in the loss of worker 2 in its step 2"}},
		{place: "gradient", workers: []int{1}, device: bias(nan, 5, 5, 1),
			want: []string{"NaN, arose in the gradient: fc2.bias[1] of worker 1 in its step 2"}},
		{place: "gradient of the last step", workers: []int{1}, device: bias(nan, 7, 7, 1),
			want: []string{"NaN, arose in the gradient: fc2.bias[1] of worker 1 in its step 3"}},
		{place: "optimizer", workers: []int{1}, device: bias(1e38, 5, 5, 2), set: []string{"train.optimizer.lr=100"},
			want: []string{"-Inf, arose in the optimizer: fc2.bias[2], in the step of worker 1 in its step 2",
				"lower train.optimizer.lr (now 100)"}},
		{place: "optimizer in the last step", workers: []int{1}, device: bias(1e38, 7, 7, 2),
			set: []string{"train.optimizer.lr=100"},
			want: []string{"-Inf, arose in the optimizer: fc2.bias[2], in the step of worker 1 in its step 3",
				"lower train.optimizer.lr (now 100)"}},
		{place: "payload", workers: []int{1}, device: bias(1e6, 7, 7, 2), set: []string{"payload.push=float16"},
			want: []string{"-Inf, arose in the payload: the push of fc2.bias[2] of worker 1 in its step ", "set payload.push to bfloat16"}},
		{place: "sum", workers: []int{1, 3}, device: bias(8e37, 7, 7, 2),
			want: []string{"-Inf, arose in the pending sum: fc2.bias[2], the sum of pushes on server ", "for version 1"}},
	} {
		check(t, "local", &p, local, nil)
		check(t, "local, apart", &p, local, apart)
		p.set = append(slices.Clone(p.set), "local={policy: hpsgd, steps: 4}")
		if p.place != "sum" {
			check(t, "hpsgd", &p, local, nil)
		}
		if p.place == "gradient" || p.place == "loss" {
			check(t, "hpsgd, clip", &p, append(local, clip...), nil)
			check(t, "hpsgd, clip, apart", &p, append(local, clip...), apart)
		}
	}
	for _, p := range []plant{
		{place: "gradient", workers: []int{1}, device: bias(nan, 5, 5, 1),
			want: []string{"NaN, arose in the gradient: fc2.bias[1] of worker 0 in iteration 2"}},
		{place: "sum", workers: []int{2, 3}, device: bias(3e38, 5, 5, 1),
			want: []string{"+Inf, arose in the pending sum: fc2.bias[1], the sum of the gradients of ranks, of worker 1 in iteration 2"}},
	} {
		p.hosts, p.ranks = []int{0, 0, 0, 1, 1, 1}, []int{1, 2, 4, 5}
		check(t, "teams", &p, []string{"cluster={servers: 2, hierarchy: node}"}, nil)
	}
	for _, p := range []plant{
		{place: "loss", workers: []int{1},
			device: planting{kernel: kernels.SoftmaxXent, vec: 3, elements: []int{1}, value: notFinite["+Inf"], from: once,
				to: ever}, want: []string{"+Inf, arose in the loss of worker 1 in iteration 2"}},
		{place: "gradient", workers: []int{2}, device: bias(nan, 5, 5, 1),
			want: []string{"NaN, arose in the gradient: fc2.bias[1] of worker 2 in iteration 2"}},
		{place: "sum", workers: []int{0, 2}, device: bias(3e38, 5, 5, 1),
			want: []string{"+Inf, arose in the pending sum: fc2.bias[1], the sum of the gradients of ranks"}},
		{place: "optimizer", workers: []int{0}, device: bias(1e38, 5, 5, 1),
			set:  []string{"train.optimizer={name: sgd, lr: 1e3}"},
			want: []string{"-Inf, arose in the optimizer: fc2.bias[1]", "lower train.optimizer.lr (now 1000)"}},
	} {
		p.hosts, p.ranks = []int{0, 0, 0}, []int{0, 1, 2}
		check(t, "allreduce", &p, []string{"baseline=allreduce"}, nil)
		if p.place == "gradient" {
			check(t, "allreduce, clip", &p, append(clip, "baseline=allreduce"), nil)
		}
	}
}
