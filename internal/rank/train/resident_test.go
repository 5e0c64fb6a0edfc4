package train_test

import (
	"testing"

	"fluentps/internal/rank/station/stationtest"
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
			want := mustTrain(t, load(t, set...), 6)
			got, count := trainDistant(t, "", 1, false, set...)
			if got.SHA256() != want.SHA256() {
				t.Errorf("parameters %s, on the host %s", got.SHA256(), want.SHA256())
			}
			taken := (count.Up - workers*c.up) / step
			if count.Up != workers*c.up+taken*step || taken < workers*steps || !c.goOn && taken != workers*steps {
				t.Fatalf("%d elements were uploaded in %d steps of %d workers, want %d in each and %d of each worker", count.Up,
					taken, workers, step, c.up)
			}
			in, out := float64(count.In)/arena, float64(count.Out)/arena // of all workers
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
	if stationtest.UnderRace {
		t.Skip("convolutions")
	}
	for _, local := range []string{"local={policy: averaging, steps: 2}", "local={policy: hpsgd, steps: 2}"} {
		set := []string{local, "data={set: generated, rows: 480, test_rows: 20, image: [1, 8, 8], classes: 3}",
			"model={name: resnet20}", "train.batch_per_worker=1", "train.stop={samples: 16}", "shards.max_bytes=4KiB"}
		want := mustTrain(t, load(t, set...), 6)
		if got, _ := trainDistant(t, "", 1, false, set...); got.SHA256() != want.SHA256() {
			t.Errorf("%s: parameters %s, on the host %s", local, got.SHA256(), want.SHA256())
		}
	}
}
