package workload

import (
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload/shapes"
)

// measured counts the memory that a device allocates.
type measured struct {
	kernels.Device
	bytes int64
}

func (m *measured) Alloc(n int) (kernels.Vec, error) {
	v, err := m.Device.Alloc(n)
	m.bytes += 4 * int64(len(v.Host))
	return v, err
}

func (m *measured) Wrap(p []float32) (kernels.Vec, error) {
	m.bytes += 4 * int64(len(p))
	return m.Device.Wrap(p)
}

func scratch(t *testing.T, s ModelSpec, from Samples) shapes.Scratch {
	t.Helper()
	a, err := NewArchitecture(s, from)
	if err != nil {
		t.Fatal(err)
	}
	return a.Scratch
}

func evalRows(t *testing.T, s ModelSpec, from Samples) int {
	t.Helper()
	a, err := NewArchitecture(s, from)
	if err != nil {
		t.Fatal(err)
	}
	return a.EvalRows()
}

func TestScratchIsWhatAModelAllocates(t *testing.T) {
	for _, s := range []ModelSpec{{Name: "softmax"}, {Name: "mlp", Layers: []int{30, 20}}, {Name: "lenet"}, {Name: "resnet20"}} {
		for _, batch := range []int{1, 5} {
			from := images(3, 16, 16, 10)
			dev := measured{Device: cpu.New(1)}
			if _, err := NewModel(s, from, &dev, batch); err != nil {
				t.Fatal(err)
			}
			if got := scratch(t, s, from).Of(batch); got != dev.bytes || got == 0 {
				t.Errorf("%s, batch %d: %d bytes, allocated are %d", s.Name, batch, got, dev.bytes)
			}
		}
	}
}

// evalBytes is about the most memory of an evaluation, as shapes states it.
const evalBytes = 64 << 20

// An evaluation of ResNet-110 on the images of CIFAR-10 would take gigabytes with batches of 256.
func TestEvaluationOfDeepNetworksIsBounded(t *testing.T) {
	from := images(3, 32, 32, 10)
	for name, most := range map[string]int64{"softmax": evalBytes, "lenet": evalBytes, "resnet20": evalBytes * 5 / 4,
		"resnet110": 2 * evalBytes} {
		s := ModelSpec{Name: name}
		rows := evalRows(t, s, from)
		if got := scratch(t, s, from).Of(rows); got > most || rows < 8 {
			t.Errorf("%s: %d bytes for %d rows, want at most %d", name, got, rows, most)
		}
	}
	if rows := evalRows(t, ModelSpec{Name: "softmax"}, from); rows != 256 {
		t.Errorf("softmax: %d rows", rows)
	}
}

// Whether a batch is too large for this machine is asked before anything is allocated, so the answer takes no memory of its size.
func TestScratchOfABatchThatNoMachineHolds(t *testing.T) {
	s, from := ModelSpec{Name: "softmax"}, images(3, 32, 32, 10)
	const batch = 1 << 40
	one, two := scratch(t, s, from).Of(1), scratch(t, s, from).Of(2)
	if got, want := scratch(t, s, from).Of(batch), one+(batch-1)*(two-one); got != want || two <= one {
		t.Errorf("%d bytes, want %d", got, want)
	}
}
