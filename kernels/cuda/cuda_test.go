//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/kernel"
	"fluentps/kernels/kerneltest"
)

// onlyEmulated says that the driver must be the emulated one. Tests then fail without a GPU instead of being skipped.
var onlyEmulated = os.Getenv("FLUENTPS_TEST_CUDA") == "emulated"

// orders runs a test with each order in which the emulated driver can run its work (CUEMU_ORDER). A GPU has its own order.
func orders(t *testing.T, run func(t *testing.T)) {
	if !onlyEmulated {
		run(t)
		return
	}
	for _, order := range []string{"lazy", "eager"} {
		t.Run(order, func(t *testing.T) {
			t.Setenv("CUEMU_ORDER", order)
			run(t)
		})
	}
}

func firstGPU(t testing.TB) GPU {
	t.Helper()
	gpus, err := GPUs()
	if err != nil {
		if onlyEmulated {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return gpus[0]
}

// started returns a device and closes it at the end of the test. The emulated driver then reports resources that were not
// released.
func started(t testing.TB) *device {
	t.Helper()
	d, err := New(firstGPU(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*device)
}

func TestConformance(t *testing.T) {
	d := started(t)
	for _, k := range kernels.Table {
		t.Run(k.Name, func(t *testing.T) {
			kerneltest.RunKernel(t, d, k)
		})
	}
}

func TestName(t *testing.T) {
	d := started(t)
	if want := fmt.Sprintf("cuda (%s, GPU 0, gemm own)", d.gpu.Name); d.Name() != want {
		t.Errorf("Name() = %q, want %q", d.Name(), want)
	}
}

// axpy returns the arguments of a product with one column that sets y to x times factor[0] plus f times y.
func axpy(n int, f float32, factor, x, y kernels.Vec) kernels.Args {
	return kernels.Args{V: kernels.Vecs{x, factor, y}, N: kernels.Sizes{n, 1, 1}, F: kernels.Scalars{f}}
}

// A program of random steps gives the same values on the host as with a device in host memory, if it refreshes the memory
// that it writes and fetches the memory that it reads. Half of the wrapped memory is pinned.
func TestWrappedMemoryIsWhatTheProgramSays(t *testing.T) {
	orders(t, func(t *testing.T) {
		firstGPU(t)
		rapid.Check(t, func(rt *rapid.T) {
			const vectors, length = 4, 37
			gpu, err := New(firstGPU(t), Options{})
			if err != nil {
				rt.Fatal(err)
			}
			devices := []kernels.Device{cpu.New(1), gpu}
			var host [2][vectors][]float32
			var vecs [2][vectors]kernels.Vec
			var factor [2]kernels.Vec
			for i, d := range devices {
				arena := make([]float32, vectors/2*length+4096)
				if p, ok := d.(kernels.Pinner); ok {
					must(rt, p.Pin(arena))
				}
				for v := range vectors {
					host[i][v] = make([]float32, length)
					if v < vectors/2 {
						host[i][v] = arena[v*length : (v+1)*length]
					}
					vecs[i][v], err = d.Wrap(host[i][v])
					must(rt, err)
				}
				factor[i], err = d.Alloc(1)
				must(rt, err)
				must(rt, d.Upload(factor[i], []float32{0.5}))
			}
			var open [vectors]kernels.Event // fetches from the GPU that are in flight
			var found [vectors][]float32    // the values that these fetches must bring
			var stale [vectors]bool         // the GPU has newer values than the host
			var opened [vectors]int         // the step that started the fetch
			var copying [vectors]int        // the step of a Refresh that may be in flight; 0: none
			waited := func(since int) {     // all copies that started before this step are done
				for v := range copying {
					if copying[v] < since {
						copying[v] = 0
					}
				}
			}
			wait := func(v int) {
				if open[v] == nil {
					return
				}
				must(rt, open[v].Wait())
				open[v] = nil
				waited(opened[v])
				if !slices.Equal(host[1][v], found[v]) {
					rt.Fatalf("vector %d: fetched %v, want %v", v, host[1][v], found[v])
				}
			}
			steps := rapid.IntRange(5, 60).Draw(rt, "steps")
			for s := 1; s <= steps; s++ {
				v, w := rapid.IntRange(0, vectors-1).Draw(rt, "vector"), rapid.IntRange(0, vectors-1).Draw(rt, "other")
				lo := rapid.IntRange(0, length-1).Draw(rt, "from")
				switch step := rapid.SampledFrom([]string{"write", "launch", "launch", "fetch", "wait", "upload", "sync"}).Draw(rt, "step"); step {
				case "write": // no copy of the vector may be in flight, the host must have the newest values, and the GPU must get them
					if stale[v] {
						wait(v)
						open[v], err = devices[1].Fetch(vecs[1][v])
						must(rt, err)
						found[v], stale[v], opened[v] = slices.Clone(host[0][v]), false, s
					}
					wait(v)
					if copying[v] > 0 {
						must(rt, devices[1].Download(make([]float32, 1), factor[1]))
						waited(s)
					}
					copying[v] = s
					for i, d := range devices {
						host[i][v][lo] = float32(s)
						must(rt, d.Refresh(vecs[i][v].Slice(lo, length)))
					}
				case "launch":
					if v == w {
						continue
					}
					stale[v] = true
					for i, d := range devices {
						must(rt, d.Launch(kernels.GemmNN, axpy(length-lo, 0.5, factor[i], vecs[i][w].Slice(lo, length), vecs[i][v].Slice(0, length-lo))))
					}
				case "fetch":
					wait(v)
					open[v], err = devices[1].Fetch(vecs[1][v])
					must(rt, err)
					found[v], stale[v], opened[v] = slices.Clone(host[0][v]), false, s
				case "wait":
					for tries := 0; open[v] != nil && !open[v].Passed() && tries < s%4; tries++ {
					}
					wait(v)
				case "upload":
					stale[v] = true
					for i, d := range devices {
						must(rt, d.Upload(vecs[i][v], []float32{float32(s), 1, 2}))
					}
				case "sync":
					must(rt, devices[1].Sync())
					waited(s)
				}
			}
			for v := range vectors {
				wait(v)
				e, err := devices[1].Fetch(vecs[1][v])
				must(rt, err)
				must(rt, e.Wait())
				for k, want := range host[0][v] {
					if got := host[1][v][k]; math.Float32bits(got) != math.Float32bits(want) {
						rt.Fatalf("vector %d element %d is %g, want %g", v, k, got, want)
					}
				}
			}
			must(rt, gpu.Close())
		})
	})
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An upload waits for a stage if all stages are in use.
func TestUploadsAreNotOverwritten(t *testing.T) {
	d := started(t)
	var vecs [3 * stages]kernels.Vec
	for i := range vecs {
		var err error
		vecs[i], err = d.Alloc(9)
		must(t, err)
		must(t, d.Upload(vecs[i], []float32{float32(i), 2, 3}))
	}
	for i, v := range vecs {
		got := make([]float32, 4)
		must(t, d.Download(got, v))
		if !slices.Equal(got, []float32{float32(i), 2, 3, 0}) {
			t.Errorf("vector %d holds %v", i, got)
		}
	}
}

// The host has the values of a Fetch once its Event has passed.
func TestFetchedMemoryIsThereWhenTheEventHasPassed(t *testing.T) {
	d := started(t)
	for _, pinned := range []bool{false, true} {
		host := make([]float32, 4096)
		if pinned {
			must(t, d.Pin(host))
		}
		v, err := d.Wrap(host)
		must(t, err)
		must(t, d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{len(host)}, F: kernels.Scalars{3}}))
		e, err := d.Fetch(v)
		must(t, err)
		if onlyEmulated && host[7] == 3 {
			t.Error("the emulated driver copied before the program waited")
		}
		for !e.Passed() {
		}
		if host[0] != 3 || host[4095] != 3 {
			t.Errorf("pinned %t: %g and %g after the event, want 3", pinned, host[0], host[4095])
		}
		if again, err := d.Wrap(host); err != nil || again.Dev != v.Dev || len(d.twins) > 2 {
			t.Errorf("the same memory wrapped again is at %x (error %v), not at %x", again.Dev, err, v.Dev)
		}
	}
	if len(d.pinned) != 1 {
		t.Errorf("%d arenas are pinned, want 1", len(d.pinned))
	}
}

// Different goroutines, and so different threads, may use a device one after the other.
func TestEveryGoroutineMayUseTheDevice(t *testing.T) {
	d := started(t)
	v, err := d.Alloc(3)
	must(t, err)
	for i := range 20 {
		var done sync.WaitGroup
		done.Go(func() {
			if err := d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{3}, F: kernels.Scalars{float32(i)}}); err != nil {
				t.Error(err)
			}
		})
		done.Wait()
		var got [3]float32
		done.Go(func() {
			if err := d.Download(got[:], v); err != nil {
				t.Error(err)
			}
		})
		done.Wait()
		if got[2] != float32(i) {
			t.Fatalf("got %g, want %d", got[2], i)
		}
	}
}

func TestAnIterationTakesNoMemory(t *testing.T) {
	d := started(t)
	params, grads := make([]float32, 64*32), make([]float32, 64*32)
	w, err := d.Wrap(params)
	must(t, err)
	g, err := d.Wrap(grads)
	must(t, err)
	x, err := d.Alloc(16 * 64)
	must(t, err)
	y, err := d.Alloc(16 * 32)
	must(t, err)
	batch, out := make([]float32, 16*64), make([]float32, 4)
	step := func() {
		must(t, d.Upload(x, batch))
		must(t, d.Refresh(w))
		must(t, d.Launch(kernels.GemmNN, kernels.Args{V: kernels.Vecs{x, w, y}, N: kernels.Sizes{16, 32, 64}}))
		must(t, d.Download(out, y))
		must(t, d.Launch(kernels.GemmTN, kernels.Args{V: kernels.Vecs{x, y, g}, N: kernels.Sizes{64, 32, 16}}))
		e, err := d.Fetch(g)
		must(t, err)
		must(t, e.Wait())
	}
	for range 2 * stages { // the first steps allocate the stages
		step()
	}
	if n := testing.AllocsPerRun(50, step); n > 0 {
		t.Errorf("an iteration allocates %g objects", n)
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	d := started(t)
	v, err := d.Alloc(5)
	must(t, err)
	loaded := func(name, ptx string) error {
		return d.load([]*kernels.Kernel{{Name: name, CUDA: &kernel.CUDA{PTX: ptx}}})
	}
	for _, c := range []struct {
		what string
		err  error
		want string
	}{
		{"short", d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{6}}),
			"vector 0 has 5 elements, sizes [6 0 0 0 0 0 0 0] need 6"},
		{"host", d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{{Host: make([]float32, 9)}}, N: kernels.Sizes{6}}),
			"vector 0 is not memory of a GPU"},
		{"upload", d.Upload(v, make([]float32, 6)), "upload of 6 elements into a vector of 5"},
		{"download", d.Download(make([]float32, 6), v), "download of 6 elements from a vector of 5"},
		{"no code", d.Launch(&kernels.Kernel{Name: "none",
			Need: func(kernels.Sizes) kernels.Counts { return kernels.Counts{} }}, kernels.Args{}), "kernel none has no code for GPUs"},
		{"no PTX", loaded("garbage", "garbage"), "CUDA_ERROR_INVALID_IMAGE (200)"},
		{"broken PTX", loaded("broken", ".version 7.8\n.target sm_60\n.address_size 64\n.visible .entry broken\n"), "load kernel broken (ptxas"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.what, c.err, c.want)
		}
	}
	if _, err := d.Alloc(-1); err == nil {
		t.Error("a negative size was allocated")
	}
	const want = "GPU 0 (%s) on %s: allocate 2146942976 elements: kernels count the elements of a vector in 32 bits, " +
		"at most 2146942975; take smaller batches"
	pages, err := syscall.Mmap(-1, 0, (kernel.GPUElementsMax+1)*elemBytes, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	must(t, err)
	t.Cleanup(func() { must(t, syscall.Munmap(pages)) })
	_, alloc := d.Alloc(kernel.GPUElementsMax + 1)
	_, wrap := d.Wrap(unsafe.Slice((*float32)(unsafe.Pointer(&pages[0])), kernel.GPUElementsMax+1))
	for _, err := range []error{alloc, wrap} {
		if broken := (*kernels.Failure)(nil); !errors.As(err, &broken) || !strings.HasPrefix(err.Error(), fmt.Sprintf(want, d.gpu.Name, host())) {
			t.Errorf("a vector that is too long: error %v, want a Failure, %q", err, want)
		}
	}
	if broken := d.broken.Load(); broken != nil {
		t.Errorf("the device counts as broken: %v", broken)
	}
}

// work makes every call that a training step makes.
func work(d kernels.Device) error {
	host := make([]float32, 4096)
	if err := d.(kernels.Pinner).Pin(host); err != nil {
		return err
	}
	for _, p := range [][]float32{host, make([]float32, 4096)} {
		v, err := d.Wrap(p)
		if err != nil {
			return err
		}
		x, err := d.Alloc(16)
		if err != nil {
			return err
		}
		if err := d.Upload(x, p[:16]); err != nil {
			return err
		}
		for range 2 {
			if err := d.Refresh(v); err != nil {
				return err
			}
			if err := d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{len(p)}, F: kernels.Scalars{2}}); err != nil {
				return err
			}
			if err := d.Launch(kernels.GemmNN, axpy(16, 1, v.Slice(0, 1), x, v.Slice(0, 16))); err != nil {
				return err
			}
			e, err := d.Fetch(v)
			if err != nil {
				return err
			}
			if err := e.Wait(); err != nil {
				return err
			}
			if p[20] != 2 {
				return fmt.Errorf("element 20 is %g, want 2", p[20])
			}
		}
	}
	if err := d.Download(make([]float32, 3), kernels.Vec{Dev: d.(*device).twins[0].vec().Dev, N: 3}); err != nil {
		return err
	}
	return d.Sync()
}

// When any call fails, the error names the GPU, the request and CUDA's error. Close still releases everything, and the next
// device works.
func TestInjectedFailures(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	g := firstGPU(t)
	for _, c := range []struct{ fail, want string }{
		{"cuDevicePrimaryCtxRetain:1:2", "make a context: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"cuCtxSetCurrent:1:201", "use its context: CUDA_ERROR_INVALID_CONTEXT (201)"},
		{"cuStreamCreate:2", "make a stream: CUDA error 999"},
		{"cuEventCreate:1:2", "make an event: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"cuModuleLoadData:2:218", "CUDA_ERROR_INVALID_PTX (218)"},
		{"cuModuleGetFunction:1:500", "find the entry gemm_nn of kernel gemm_nn: CUDA_ERROR_NOT_FOUND (500)"},
		{"cuMemAlloc:1", "allocate 16384 bytes (17179869184 of 17179869184 are free): CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"cuMemHostAlloc:1", "pin 64 bytes of host memory: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"cuMemHostAlloc:2", "pin 16384 bytes of host memory: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"cuMemHostRegister:1:1", ""}, // copies then go through other pinned memory
		{"cuMemcpyHtoDAsync:1:1", "copy 16384 bytes to the GPU: CUDA_ERROR_INVALID_VALUE (1)"},
		{"cuMemcpyHtoDAsync:2:1", "upload 64 bytes: CUDA_ERROR_INVALID_VALUE (1)"},
		{"cuMemcpyDtoHAsync:1:700", "copy 16384 bytes to the host: CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
		{"cuLaunchKernel:1:1", "launch fill of grid"},
		{"cuLaunchKernel:3:719", "CUDA_ERROR_LAUNCH_FAILED (719)"},
		{"kernel:2", "wait for a copy to the host: CUDA_ERROR_LAUNCH_FAILED (719)"},
		{"cuEventRecord:1", "CUDA error 999"},
		{"cuStreamWaitEvent:1", "CUDA error 999"},
		{"cuEventSynchronize:2", "CUDA error 999"},
		{"cuStreamSynchronize:1", "CUDA error 999"},
	} {
		t.Run(c.fail, func(t *testing.T) {
			t.Setenv("CUEMU_FAIL", c.fail)
			d, err := New(g, Options{})
			if err == nil {
				err = work(d)
				if closing := d.Close(); closing != nil {
					t.Errorf("closing: %v", closing)
				}
			}
			switch failure := (*kernels.Failure)(nil); {
			case c.want == "":
				must(t, err)
			case !errors.As(err, &failure):
				t.Errorf("error %v is not a Failure", err)
			case !strings.HasPrefix(err.Error(), "GPU 0 ("+g.Name+") on ") || !strings.Contains(err.Error(), c.want):
				t.Errorf("error %q, want %q in it", err, c.want)
			}
			t.Setenv("CUEMU_FAIL", "")
			next, err := New(g, Options{})
			must(t, err)
			must(t, work(next))
			must(t, next.Close())
		})
	}
}

// After a failure that makes the context useless, every call returns that failure.
func TestAFailureThatLastsIsRemembered(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("CUEMU_FAIL", "kernel:1")
	d := started(t)
	v, err := d.Alloc(8)
	must(t, err)
	must(t, d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{8}}))
	first := d.Sync()
	if first == nil || !strings.Contains(first.Error(), "wait for kernels and copies: CUDA_ERROR_LAUNCH_FAILED (719)") {
		t.Fatalf("error %v", first)
	}
	if _, err := d.Alloc(1); err == nil || err.Error() != first.Error() {
		t.Errorf("error %v, want the first one: %v", err, first)
	}
	if err := d.Download(make([]float32, 1), v); err == nil || err.Error() != first.Error() {
		t.Errorf("error %v, want the first one: %v", err, first)
	}
}

// After some errors the driver lets a process only end: no later call may go on as if nothing had happened. After others it may.
func TestWhichFailuresLast(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	for code, lasts := range map[int]bool{
		214: true, 220: true, 226: true, 700: true, 702: true, 709: true, 710: true, 714: true, 715: true, 716: true, 717: true, 718: true,
		719: true, 721: true, 806: true, 810: true, 999: true, 1: false, 2: false, 46: false, 201: false, 400: false,
		701: false, 720: false, 801: false,
	} {
		t.Setenv("CUEMU_FAIL", fmt.Sprintf("cuStreamSynchronize:1:%d", code))
		d, err := New(firstGPU(t), Options{})
		must(t, err)
		first := d.Sync()
		if first == nil || !strings.Contains(first.Error(), fmt.Sprint(code)) {
			t.Errorf("code %d: error %v", code, first)
		}
		if again := d.(*device).Attach(); lasts && again != first || !lasts && again != nil {
			t.Errorf("code %d: error %v of the next call, lasts %t", code, again, lasts)
		} else if again == nil {
			d.(*device).Detach()
		}
		must(t, d.Close())
	}
}

func TestGPUsAndPick(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("CUEMU_DEVICES", "2")
	gpus, err := GPUs()
	must(t, err)
	if len(gpus) != 2 || gpus[1].Name != "Emulated GPU 1" || gpus[0].UUID == gpus[1].UUID || gpus[1].Memory != 16<<30 || gpus[1].Index != 1 {
		t.Errorf("GPUs: %+v", gpus)
	}
	t.Setenv("CUEMU_MIG", "1")
	if slices, err := GPUs(); err != nil || len(slices) != 2 || slices[0].UUID == slices[1].UUID {
		t.Errorf("two slices of a GPU count as one: %+v, error %v", slices, err)
	}
	for local, want := range []int{0, 1, 0, 1} {
		if g, err := Pick(gpus, -1, local); err != nil || g.Index != want {
			t.Errorf("rank %d of a host takes GPU %d (error %v), want %d", local, g.Index, err, want)
		}
	}
	if g, err := Pick(gpus, 1, 0); err != nil || g.Index != 1 {
		t.Errorf("GPU 1 wanted, got %d (error %v)", g.Index, err)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1")
	if _, err := Pick(gpus, 3, 0); err == nil || err.Error() != "GPU 3 wanted, 2 visible on "+host()+" (CUDA_VISIBLE_DEVICES=0,1)" {
		t.Errorf("GPU 3: error %v", err)
	}
	second, err := New(gpus[1], Options{})
	must(t, err)
	must(t, work(second))
	must(t, second.Close())
}

// A process without a driver, or with a driver that shows no GPU, returns an error that says so. A process opens the driver
// once, so each case is a process.
func TestWithoutGPU(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") == "message" {
		_, err := GPUs()
		fmt.Printf("error:  %v\n", err)
		return
	}
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	for _, c := range []struct{ environment, want string }{
		{"LD_LIBRARY_PATH=/nonexistent", "libcuda.so.1 was not found on " + host() + " (no NVIDIA driver?)"},
		{"CUEMU_DEVICES=0", "the driver reports no usable GPU on " + host() + ": CUDA_ERROR_NO_DEVICE (100)"},
		{"CUEMU_FAIL=cuInit:1:999", "the driver reports no usable GPU on " + host() + ": CUDA error 999"},
		{"CUEMU_FAIL=cuDeviceGetName:1:2", "the driver cannot describe the GPUs of " + host() + ": CUDA_ERROR_OUT_OF_MEMORY (2)"},
	} {
		self := exec.Command(os.Args[0], "-test.run=^TestWithoutGPU$")
		self.Env = append(os.Environ(), "FLUENTPS_TEST_CUDA=message", c.environment)
		out, err := self.CombinedOutput()
		must(t, err)
		if !strings.Contains(string(out), "error:  "+c.want+"\n") {
			t.Errorf("%s: %q, want %q in it", c.environment, out, c.want)
		}
	}
}
