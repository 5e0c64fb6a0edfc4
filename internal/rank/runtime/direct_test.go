package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// distant is a device with memory of its own, which a network can read and write. If eager, it computes and copies at once;
// else only when a goroutine waits, and only what that goroutine waits for.
type distant struct {
	kernels.Device
	eager   bool
	pending []func() // all requests; those done are nil
	done    int      // number of requests done
	homes   []home
	copied  *copyCounts
}

// home is the place on the device of host memory that was wrapped or placed.
type home struct {
	host, memory []float32
	reached      []kernels.Range
	isBatch      bool // samples for a model, which wraps two batches before anything else
}

// copyCounts counts elements that devices copied between their memory and that of the host, those that were uploaded and downloaded, and
// the arenas placed on them.
type copyCounts struct {
	sync.Mutex
	in, out, up, down, placed int
	batches, ahead            int // batches that were uploaded, and of these those beside requests that nobody had waited for
	flights                   inFlight
}

// inFlight are the bytes that the network may read or write: operations that were posted and have not completed.
type inFlight struct {
	sync.Mutex
	spans      map[[2]uintptr]int
	all        int
	violations []string // kernels that ran on bytes in flight
}

func spanOf[T any](p []T) [2]uintptr {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return [2]uintptr{from, from + uintptr(len(p))*unsafe.Sizeof(p[0])}
}

func (f *inFlight) begin(b []byte) (end func()) {
	f.Lock()
	defer f.Unlock()
	if f.spans == nil {
		f.spans = map[[2]uintptr]int{}
	}
	span := spanOf(b)
	f.spans[span]++
	f.all++
	return func() {
		f.Lock()
		defer f.Unlock()
		if f.spans[span]--; f.spans[span] == 0 {
			delete(f.spans, span)
		}
	}
}

func (f *inFlight) check(k *kernels.Kernel, a kernels.Args) {
	f.Lock()
	defer f.Unlock()
	for _, v := range a.V {
		if len(v.Host) == 0 {
			continue
		}
		at := spanOf(v.Host)
		for s := range f.spans {
			if s[0] < at[1] && at[0] < s[1] {
				f.violations = append(f.violations, k.Name)
			}
		}
	}
}

func (d *distant) upTo(n int) {
	for ; d.done < n; d.done++ {
		d.pending[d.done]()
		d.pending[d.done] = nil
	}
}

func (d *distant) late(f func()) {
	d.pending = append(d.pending, f)
	if d.eager {
		d.upTo(len(d.pending))
	}
}

func (d *distant) vec(memory []float32) kernels.Vec {
	return kernels.Vec{Host: memory, Dev: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), N: len(memory)}
}

func (d *distant) Place(p []float32, reached []kernels.Range) (kernels.Vec, error) {
	h := home{host: p, memory: make([]float32, len(p)), reached: reached}
	d.homes = append(d.homes, h)
	d.copied.Lock()
	defer d.copied.Unlock()
	d.copied.placed++
	return d.vec(h.memory), nil
}

// Alloc is memory that no host memory belongs to.
func (d *distant) Alloc(n int) (kernels.Vec, error) {
	return d.vec(make([]float32, max(n, 1))[:n]), nil
}

func (d *distant) Attach() error { return nil }
func (d *distant) Detach()       {}

// offsetIn is the offset of q in p, in elements; -1: q is not in p.
func offsetIn(p, q []float32) int {
	at := int(uintptr(unsafe.Pointer(unsafe.SliceData(q)))-uintptr(unsafe.Pointer(unsafe.SliceData(p)))) / 4
	if at < 0 || at+len(q) > len(p) {
		return -1
	}
	return at
}

func (d *distant) Wrap(p []float32) (kernels.Vec, error) {
	for _, h := range d.homes {
		if at := offsetIn(h.host, p); at >= 0 {
			return d.vec(h.memory[at : at+len(p)]), nil
		}
	}
	h := home{host: p, memory: slices.Clone(p), isBatch: len(d.homes) < 2}
	d.homes = append(d.homes, h)
	return d.vec(h.memory), nil
}

// eachCopied calls f for the elements of a vector that the device copies, with both sides.
func (d *distant) eachCopied(v kernels.Vec, f func(host, memory []float32)) {
	i := slices.IndexFunc(d.homes, func(h home) bool { return offsetIn(h.memory, v.Host) >= 0 })
	h := d.homes[i]
	at := offsetIn(h.memory, v.Host)
	for e := at; e < at+v.N; e++ {
		if !slices.ContainsFunc(h.reached, func(r kernels.Range) bool { return r.Lo <= e && e < r.Hi }) {
			f(h.host[e:e+1], h.memory[e:e+1])
		}
	}
}

func (d *distant) Refresh(v kernels.Vec) error {
	isBatch := slices.ContainsFunc(d.homes, func(h home) bool { return h.isBatch && offsetIn(h.memory, v.Host) >= 0 })
	beside := d.done < len(d.pending)
	d.eachCopied(v, func(host, memory []float32) {
		value := host[0]
		d.late(func() { memory[0] = value })
		if !isBatch {
			d.copied.add(1, 0)
		}
	})
	if isBatch {
		d.copied.Lock()
		d.copied.up += v.N
		d.copied.batches++
		if beside {
			d.copied.ahead++
		}
		d.copied.Unlock()
	}
	return nil
}

func (d *distant) Fetch(v kernels.Vec) (kernels.Event, error) {
	d.eachCopied(v, func(host, memory []float32) {
		d.late(func() { host[0] = memory[0] })
		d.copied.add(0, 1)
	})
	return point{d, len(d.pending)}, nil
}

func (c *copyCounts) add(in, out int) {
	c.Lock()
	defer c.Unlock()
	c.in, c.out = c.in+in, c.out+out
}

type point struct {
	d  *distant
	at int
}

func (p point) Passed() bool { return p.d.done >= p.at }

func (p point) Wait() error {
	p.d.upTo(p.at)
	return nil
}

func (d *distant) Upload(dst kernels.Vec, src []float32) error {
	d.copied.Lock()
	d.copied.up += len(src)
	d.copied.Unlock()
	values := slices.Clone(src)
	d.late(func() { copy(dst.Host, values) })
	return nil
}

func (d *distant) Download(dst []float32, src kernels.Vec) error {
	d.copied.Lock()
	d.copied.down += len(dst)
	d.copied.Unlock()
	d.upTo(len(d.pending))
	copy(dst, src.Host)
	return nil
}

func (d *distant) Launch(k *kernels.Kernel, a kernels.Args) error {
	d.late(func() {
		d.copied.flights.check(k, a)
		if err := d.Device.Launch(k, a); err != nil {
			panic(err)
		}
	})
	return k.Check(a)
}

func (d *distant) Sync() error {
	d.upTo(len(d.pending))
	return nil
}

// reaching is a transport that reaches the memory of devices, or gives the reason why not.
type reaching struct {
	comm.Transport
	no error
}

func (r reaching) CUDAAware() error { return r.no }

// slow is a transport that reports late that a bulk message has left.
type slow struct {
	reaching
	flights *inFlight
}

func (s slow) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	if ch == comm.Data {
		end, told := s.flights.begin(b.Bytes()[off:off+n]), h
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
		end, told := s.flights.begin(b.Bytes()[off:off+n]), h
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
		count := &copyCounts{}
		_, errs := runOver(t, inproc.New(6, inproc.Options{Hosts: []int{0, 1, 2, 3, 4, 5}}), c, func(o *Options) {
			o.Transport = slow{reaching{o.Transport, nil}, &count.flights}
			o.thresholds.Inline = 1
			counts := count
			o.NewUnit = func(int) (Unit, error) {
				d := &distant{Device: cpu.New(1), copied: counts, eager: i > 0}
				counts = &copyCounts{}
				return Unit{Device: d, ID: "gpu"}, nil
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if f := &count.flights; f.all == 0 || len(f.spans) > 0 || len(f.violations) > 0 {
			t.Errorf("%v: %d messages, %d of them still in flight; kernels on memory in flight: %v", set, f.all, len(f.spans), f.violations)
		}
	}
}

// trainDistant trains on devices with memory of their own; hosts nil: one rank a host.
func trainDistant(t *testing.T, hosts []int, inlineMax int, no error, set ...string) (res Result, count *copyCounts) {
	t.Helper()
	const ranks = 6
	if hosts == nil {
		hosts = []int{0, 1, 2, 3, 4, 5}
	}
	count = &copyCounts{}
	results, errs := runOver(t, inproc.New(ranks, inproc.Options{Hosts: hosts}), load(t, set...), func(o *Options) {
		o.Host = string(rune('a' + hosts[o.Transport.Rank()]))
		reducer, _ := o.Transport.(comm.Reducer)
		o.Transport = struct {
			reaching
			comm.Reducer
		}{reaching{o.Transport, no}, reducer}
		o.thresholds.Inline = inlineMax
		counts := count
		o.NewUnit = func(int) (Unit, error) {
			d := &distant{Device: cpu.New(1), copied: counts}
			counts = &copyCounts{} // the next device evaluates
			return Unit{Device: d, ID: "gpu"}, nil
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results[0], count
}

// A network that reaches device memory writes parameters and reads gradients there, in the same order as with copies: the
// result has the same bits. Only what the network does not reach is copied.
func TestANetworkThatReachesTheDeviceTakesTheSameBits(t *testing.T) {
	mlp := []string{"model={name: mlp, layers: [24, 16]}"}
	const arena = 20*24 + 24 + 24*16 + 16 + 16*4 + 4
	together := []int{0, 0, 0, 1, 1, 1}
	const iterations, workers = 30, 4
	for _, c := range []struct {
		name      string
		set       []string
		hosts     []int
		inlineMax int
		direct    bool
		in, out   int // elements copied in an iteration of all workers; -1: some
	}{
		{"all pieces", nil, nil, 1, true, 0, 0},
		{"a shard per layer", []string{"shards.slice=layer"}, nil, 1, true, 0, 0},
		{"short pieces", []string{"shards.max_bytes=128B", "send.order=priority"}, nil, 1, true, 0, 0},
		{"no overlap", []string{"send.overlap=false"}, nil, 1, true, 0, 0},
		{"as PS-Lite does", []string{"baseline=pslite"}, nil, 1, true, 0, 0},
		{"with keys", []string{"baseline={name: pslite, keys: scalar}"}, nil, 1, false, workers * arena, workers * arena},
		{"the last layer in frames", []string{"shards.slice=layer"}, nil, 4 * (16*4 + 4), true, workers * (16*4 + 4), workers * (16*4 + 4)},
		{"all in frames", nil, nil, 1 << 20, false, workers * arena, workers * arena},
		{"pushes encoded", []string{"payload.push=float16"}, nil, 1, true, 0, workers * arena},
		{"replies encoded", []string{"payload.pull=float16"}, nil, 1, true, workers * arena, 0},
		{"one rule pushes deltas",
			[]string{`sync=[{match: "fc1.*", scheme: bsp, push: delta, update: add}, {match: "*", scheme: bsp}]`}, nil, 1,
			true, workers * (20*24 + 24), workers * (20*24 + 24)},
		{"servers on a worker's rank", []string{"cluster.placement=colocate"}, nil, 1, true, -1, -1},
		{"servers on a worker's host", nil, together, 1, true, -1, -1},
		{"the same in messages", []string{"cluster.shared_memory=off"}, together, 1, true, 0, 0},
		{"the ranks of a host are one worker", []string{"cluster.hierarchy=node"}, together, 1, false, workers * arena, workers * arena},
		{"steps of the workers' own", []string{"local={policy: averaging, steps: 3}"}, nil, 1, false, workers * arena, workers * arena},
		{"all-reduce", []string{"baseline={name: allreduce, algorithm: mpi}"}, nil, 1, false, 6 * arena, 6 * arena},
	} {
		if !runsInRaceMode(c.name, "short pieces", "as PS-Lite does", "with keys", "the last layer in frames",
			"pushes encoded", "servers on a worker's host",
			"the ranks of a host are one worker", "steps of the workers' own", "all-reduce") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			set := append(slices.Clone(mlp), c.set...)
			staged, through := trainDistant(t, c.hosts, c.inlineMax, errors.New("no"), set...)
			direct, count := trainDistant(t, c.hosts, c.inlineMax, nil, set...)
			if staged.Summary.Iterations != iterations || direct.Summary.ParametersSHA256 != staged.Summary.ParametersSHA256 {
				t.Errorf("%d iterations, parameters %s, with copies %s", staged.Summary.Iterations,
					direct.Summary.ParametersSHA256, staged.Summary.ParametersSHA256)
			}
			if (count.placed > 0) != c.direct || through.placed > 0 {
				t.Errorf("placed %d arenas, with copies %d", count.placed, through.placed)
			}
			if c.in >= 0 && (count.in != iterations*c.in || count.out != iterations*c.out) {
				t.Errorf("copied %d elements in and %d out, want %d and %d; with copies %d and %d", count.in, count.out,
					iterations*c.in, iterations*c.out, through.in, through.out)
			}
			if c.in < 0 && (count.out == 0 || count.out >= through.out || count.in == 0 || count.in >= through.in) {
				t.Errorf("copied %d elements in and %d out; with copies %d and %d", count.in, count.out, through.in, through.out)
			}
		})
	}
}

// What workers with steps of their own push is not what their devices computed last, also where the host takes these steps.
func TestANetworkDoesNotSendTheGradientsOfOwnSteps(t *testing.T) {
	set := []string{"model={name: mlp, layers: [24, 16]}", "local={policy: hpsgd, steps: 3, compensate: 0.04}",
		"train.optimizer={name: sgd, lr: 0.1}"}
	want := mustTrain(t, load(t, set...), 6).Summary.ParametersSHA256
	if got, count := trainDistant(t, nil, 1, nil, set...); got.Summary.ParametersSHA256 != want || count.placed > 0 {
		t.Errorf("parameters %s, on the host %s; placed %d arenas", got.Summary.ParametersSHA256, want, count.placed)
	}
}

// With device.cuda_aware_mpi: on the network must reach the devices; otherwise the run reports the answer for each device
// with memory of its own.
func TestWhetherANetworkReachesTheDevice(t *testing.T) {
	for _, c := range []struct {
		key      string
		no       error
		want     string
		problem  string
		distance int // number of ranks with such a device
	}{
		{"auto", nil, "yes", "", 2},
		{"on", nil, "yes", "", 2},
		{"auto", errors.New("this MPI cannot"), "no: this MPI cannot", "", 2},
		{"off", nil, "not asked: device.cuda_aware_mpi is off", "", 2},
		{"auto", nil, "", "", 0},
		{"on", errors.New("this MPI cannot"), "",
			"device.cuda_aware_mpi: on, but this MPI cannot; take an MPI that is built with CUDA, or set device.cuda_aware_mpi: auto", 2},
	} {
		dir := t.TempDir()
		_, errs := world(t, load(t, "device={kind: cuda, cuda_aware_mpi: "+c.key+"}", "cluster.servers=1",
			"train.stop.updates=2"), 3, func(o *Options) {
			if o.Transport.Rank() == 0 {
				o.Lead.Folder = &metrics.FolderSpec{Out: filepath.Join(dir, "run")}
			}
			o.Transport = reaching{o.Transport, c.no}
			if c.distance > 0 {
				o.NewUnit = func(int) (Unit, error) {
					return Unit{Device: &distant{Device: cpu.New(1), copied: &copyCounts{}}, ID: "gpu"}, nil
				}
			}
		})
		err := errors.Join(errs...)
		if c.problem != "" {
			var agreed *ExitError
			if !errors.As(err, &agreed) || agreed.Code != CodeUsage || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: error %v, want code %d and %q", c.key, err, CodeUsage, c.problem)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.ReadFile(filepath.Join(dir, "run", "run.json"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(info), `"cuda_aware_mpi": "`+c.want); n != c.distance ||
			strings.Count(string(info), `"cuda_aware_mpi":`) != c.distance {
			t.Errorf("%s: run.json says %d times %q, want %d:\n%s", c.key, n, c.want, c.distance, info)
		}
	}
	_, errs := world(t, load(t, "device={kind: cuda, cuda_aware_mpi: on}", "cluster.servers=1"), 2, func(o *Options) {
		o.NewUnit = func(int) (Unit, error) {
			return Unit{Device: &distant{Device: cpu.New(1), copied: &copyCounts{}}, ID: "gpu"}, nil
		}
	})
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "on, but ranks of one process use no MPI") {
		t.Errorf("in one process: %v", err)
	}
}
