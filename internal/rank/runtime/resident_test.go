package runtime

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/rank/sidestest"
	"fluentps/kernels/cpu"
)

// A checkpoint holds what is on the device, and a run resumes there or on the host.
func TestRunsResumeWithParametersOnTheDevice(t *testing.T) {
	onDevices := func(o *Options) {
		o.NewUnit = func(int) (Unit, error) {
			return Unit{Device: sidestest.NewDistant(cpu.New(1), &sidestest.Copies{}), ID: "gpu"}, nil
		}
	}
	for name, set := range map[string][]string{
		"averaging, adam": {"local={policy: averaging, steps: 3}", "train.optimizer={name: adam, lr: 0.01}"},
		"hpsgd":           {"local={policy: hpsgd, steps: 3}"},
		"easgd":           {"local={policy: easgd, steps: 3}", "train.optimizer={name: nesterov, lr: 0.1}"},
		"streaming":       {"local={policy: streaming_diloco, steps: 4, fragments: 2, delay: 1, keep: 0.25}"},
	} {
		t.Run(name, func(t *testing.T) {
			part := func(dir, resume string, n int64, change func(*Options)) string {
				c := load(t, append(slices.Clone(set), updates(n), "model={name: mlp, layers: [16]}")...)
				return mustRunPartWith(t, c, dir, resume, change)
			}
			want := part(filepath.Join(t.TempDir(), "whole"), "", 14, nil)
			for k, change := range [][2]func(*Options){{onDevices, onDevices}, {nil, onDevices}, {onDevices, nil}} {
				dir := filepath.Join(t.TempDir(), "out")
				part(dir, "", 6, change[0])
				if got := part(dir, dir, 14, change[1]); got != want {
					t.Errorf("case %d: parameters %s, without interruption %s", k, got, want)
				}
			}
		})
	}
}

func mustRunPartWith(t *testing.T, c *configs.Config, dir, resume string, change func(*Options)) (sha256 string) {
	t.Helper()
	res, errs := runPart(t, c, 6, dir, resume, change)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return res[0].Summary.ParametersSHA256
}
