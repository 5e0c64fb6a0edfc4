package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

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
