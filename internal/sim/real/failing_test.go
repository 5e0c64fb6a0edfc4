package real

import (
	"errors"
	"strings"
	"testing"

	"fluentps/internal/sim/check"
	"fluentps/kernels"
)

// gone is a device that fails from a launch on.
type gone struct {
	kernels.Device
	left int
}

func (d *gone) Launch(k *kernels.Kernel, a kernels.Args) error {
	if d.left--; d.left < 0 {
		return errors.New("the device is gone")
	}
	return d.Device.Launch(k, a)
}

// A model that fails ends a run with real gradients, wherever it computes, with the worker, the step and the cause.
func TestAModelThatFailsEndsASimulation(t *testing.T) {
	for want, set := range map[string][]string{
		"worker 0: iteration 0: forward: model softmax: kernel": nil,
		"worker 0: iteration 1: backward: model softmax: kernel": {"local={policy: averaging, steps: 3}",
			"train.optimizer={name: sgd, lr: 0.1}"},
		"evaluation at 48 samples: model softmax: kernel gemm_nt": {"train.stop={samples: 48}", "evaluate={every_epochs: 0}"},
	} {
		o := realOptions(t, append([]string{"simulate.workers=2", "faults=[]"}, set...)...)
		for left := range 200 {
			o.Gradients.Device = &gone{Device: o.Gradients.Device, left: left}
			_, err := check.Run(o.Options)
			if err != nil && !strings.Contains(err.Error(), "the device is gone") {
				t.Fatal(err)
			}
			if err == nil {
				t.Errorf("no launch of a run fails with %q", want)
				break
			}
			if strings.Contains(err.Error(), want) {
				break
			}
			o.Gradients.Device = o.Gradients.Device.(*gone).Device
		}
	}
}
