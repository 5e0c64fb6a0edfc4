package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// renamedDevice is a device of another name.
type renamedDevice struct {
	kernels.Device
	name string
}

func (d renamedDevice) Name() string { return d.name }

// The ranks that compute are numbered on their host, and only they are asked for their unit.
func TestUnitsOfRanksThatCompute(t *testing.T) {
	var lock sync.Mutex
	var asked []string
	var out bytes.Buffer
	results, errs := world(t, load(t), 6, func(o *Options) {
		rank := o.Transport.Rank()
		o.Host = fmt.Sprint("host", rank/3)
		if rank == 0 {
			o.Lead.Out = &out
		}
		host := o.Host
		o.NewUnit = func(local int) (Unit, error) {
			lock.Lock()
			defer lock.Unlock()
			asked = append(asked, fmt.Sprintf("%s/%d", host, local))
			return Unit{Device: renamedDevice{cpu.New(1), fmt.Sprintf("gpu %d", local)}, ID: host}, nil // the ranks of a host share one
		}
	})
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	seen := map[string]int{}
	for _, a := range asked {
		seen[a]++
	}
	// Each is opened once to train, and once more to evaluate after it.
	if len(seen) != 4 || seen["host0/0"] != 2 || seen["host0/1"] != 2 || seen["host1/0"] != 2 || seen["host1/1"] != 2 {
		t.Errorf("asked for %v, want the places 0 and 1 of both hosts", seen)
	}
	var devices []string
	for _, w := range results[0].Summary.PerWorker {
		devices = append(devices, w.Device)
	}
	if strings.Join(devices, ", ") != "gpu 0, gpu 1, gpu 0, gpu 1" {
		t.Errorf("devices %q", devices)
	}
	if text := out.String(); strings.Count(text, "2 ranks compute on 1 GPU: they take turns") != 2 ||
		strings.Count(text, " on gpu ") != 4+2 || !strings.Contains(text, "\n  devices  2 ranks on gpu 0, 2 ranks on gpu 1\n") {
		t.Errorf("output:\n%s", text)
	}
}

// A missing device is an error of the configuration; a device that fails is not.
func TestMissingAndBrokenDevices(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{errors.New("device: cuda, but there is none"), CodeUsage, "device: cuda, but there is none"},
		{&kernels.Failure{Device: "GPU 0", Op: "make a context", Why: "no memory"}, CodeFailed, "GPU 0: make a context: no memory"},
	} {
		_, errs := world(t, load(t), 6, func(o *Options) {
			o.NewUnit = func(int) (Unit, error) { return Unit{}, c.err }
		})
		for rank, err := range errs {
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Code != c.code || !strings.HasPrefix(exit.Text, c.want) {
				t.Errorf("rank %d: error %v, want code %d and %q", rank, err, c.code, c.want)
			}
		}
	}
}

// reaching is a transport that reaches the memory of devices, or gives the reason why not.
type reaching struct {
	comm.Transport
	no error
}

func (r reaching) CUDAAware() error { return r.no }

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
					return Unit{Device: sidestest.NewDistant(cpu.New(1), &sidestest.Copies{}), ID: "gpu"}, nil
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
			return Unit{Device: sidestest.NewDistant(cpu.New(1), &sidestest.Copies{}), ID: "gpu"}, nil
		}
	})
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "on, but ranks of one process use no MPI") {
		t.Errorf("in one process: %v", err)
	}
}
