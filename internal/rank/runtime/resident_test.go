package runtime

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"fluentps/internal/configs"
	"fluentps/kernels/cpu"
)

// Where devices have memory of their own, the parameters of workers that take steps of their own stay there: a round of any number of
// steps moves the parameters to the device once, and the changes to the host once. The bits are those of steps on the host.
func TestParametersStayOnTheDeviceBetweenExchanges(t *testing.T) {
	const arena, workers, step = 20*16 + 16 + 16*8 + 8 + 8*4 + 4, 4, 8 * (20 + 1) // step: the elements of its samples
	// of each worker, and a few where they go on until they learn of the end
	const steps = 24
	for name, c := range map[string]struct {
		every int // steps in which all parameters move once in each direction
		goOn  bool
		parts int // fragments that are exchanged in turn, in a round each; 0: all in each round
		up    int // elements that a worker uploads beside samples
		set   []string
	}{
		"averaging": {every: 6, set: []string{"local={policy: averaging, steps: 6}"}},
		"averaging, no overlap": {every: 6,
			set: []string{"local={policy: averaging, steps: 6}", "send.overlap=false", "shards={slice: layer, max_bytes: 128B}"}},
		"of one step": {every: 1, set: []string{"local={policy: averaging, steps: 1}"}},
		"nesterov": {every: 12,
			set: []string{"local={policy: averaging, steps: 12}",
				`train.optimizer={name: nesterov, lr: 0.05, weight_decay: 0.01, no_decay: ["*.bias"]}`}},
		"sgd": {every: 8, set: []string{"local={policy: diloco, steps: 8}", "train.optimizer={name: sgd, " +
			"lr: 0.05, weight_decay: 0.01}"}},
		"adam": {every: 6, up: 5,
			set: []string{"local={policy: averaging, steps: 6}", "train.optimizer={name: adam, lr: 0.01}", "payload={push: topk, ratio: 0.2}"}},
		"streaming": {every: 8, parts: 4, goOn: true,
			set: []string{"local={policy: streaming_diloco, steps: 8, fragments: 4, delay: 1, keep: 0.25}"}},
		"hpsgd": {every: 4, goOn: true, set: []string{"local={policy: hpsgd, steps: 4}"}},
		"easgd": {every: 4, goOn: true, set: []string{"local={policy: easgd, steps: 4, pull: 0.2}"}},
		// on the host
		"hpsgd, compensated": {every: 1, goOn: true,
			set: []string{"local={policy: hpsgd, steps: 4, compensate: 0.04}", "train.optimizer={name: sgd, lr: 0.1}"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := append([]string{"model={name: mlp, layers: [16, 8]}", "train.stop={samples: 768}"}, c.set...)
			want := mustTrain(t, load(t, set...), 6).Summary
			got, count := trainDistant(t, nil, 1, errors.New("no"), set...)
			if got.Summary.ParametersSHA256 != want.ParametersSHA256 {
				t.Errorf("parameters %s, on the host %s", got.Summary.ParametersSHA256, want.ParametersSHA256)
			}
			taken := (count.up - workers*c.up) / step
			if count.up != workers*c.up+taken*step || taken < workers*steps || !c.goOn && taken != workers*steps {
				t.Fatalf("%d elements were uploaded in %d steps of %d workers, want %d in each and %d of each worker", count.up,
					taken, workers, step, c.up)
			}
			in, out := float64(count.in)/arena, float64(count.out)/arena // of all workers
			rounds, spare, short := float64(taken)/float64(c.every), 0., 0.
			if c.goOn { // an open round, and the first parameters, which some policies read twice; the budget may end a last round early
				round := c.every / max(1, c.parts)
				spare, short = workers, workers*float64(round-1)/float64(c.every)
			}
			if out > rounds+short || out < rounds-spare || in > rounds+2*spare || in < rounds-spare {
				t.Errorf("in %d steps of %d workers all parameters moved %.2f times in and %.2f out, want once in %d steps",
					taken, workers, in, out, c.every)
			}
		})
	}
}

// Running statistics stay there, too, and are pushed as values.
func TestStatisticsStayOnTheDevice(t *testing.T) {
	if underRace {
		t.Skip("convolutions")
	}
	for _, local := range []string{"local={policy: averaging, steps: 2}", "local={policy: hpsgd, steps: 2}"} {
		set := []string{local, "data={set: generated, rows: 480, test_rows: 20, image: [1, 8, 8], classes: 3}",
			"model={name: resnet20}", "train.batch_per_worker=3", "train.stop={samples: 72}", "shards.max_bytes=4KiB"}
		want := mustTrain(t, load(t, set...), 6).Summary
		if got, _ := trainDistant(t, nil, 1, errors.New("no"), set...); got.Summary.ParametersSHA256 != want.ParametersSHA256 {
			t.Errorf("%s: parameters %s, on the host %s", local, got.Summary.ParametersSHA256, want.ParametersSHA256)
		}
	}
}

// A checkpoint holds what is on the device, and a run resumes there or on the host.
func TestRunsResumeWithParametersOnTheDevice(t *testing.T) {
	onDevices := func(o *Options) {
		o.NewUnit = func(int) (Unit, error) {
			return Unit{Device: &distant{Device: cpu.New(1), copied: &copyCounts{}}, ID: "gpu"}, nil
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
