package train_test

import (
	"slices"
	"testing"
)

// localRun trains a small network with 4 workers and 2 servers for a number of samples.
func localRun(t *testing.T, set ...string) []float32 {
	t.Helper()
	base := []string{"train.stop.samples=3840", "train.stop.updates=null", "cluster.servers=2",
		"model={name: mlp, layers: [16]}", "train.optimizer={name: sgd, lr: 0.1}"}
	return mustTrain(t, load(t, append(base, set...)...), 6).Parameters
}

// Averaging after every step is averaging of gradients (sync-core 6.1 [P]), and after ten steps it is not.
func TestAveragingOfOneStepAveragesGradients(t *testing.T) {
	want := localRun(t)
	atMost(t, localRun(t, "local={policy: averaging, steps: 1}"), want, 1e-6)
	if rel := relative(localRun(t, "local={policy: averaging, steps: 10}"), want); rel < 1e-3 {
		t.Errorf("ten steps between two exchanges end within %.3g of one", rel)
	}
}

// With a momentum of the workers' own, averaging after every step is the momentum of the mean gradient: states are linear. With adam
// it is not (sync-core 6.1 [P]: stateful updaters have local state).
func TestAveragingWithStatefulOptimizers(t *testing.T) {
	for _, name := range []string{"momentum", "nesterov"} {
		o := "train.optimizer={name: " + name + ", lr: 0.05, momentum: 0.8}"
		atMost(t, localRun(t, o, "local={policy: averaging, steps: 1}"), localRun(t, o), 1e-5)
	}
	adam := "train.optimizer={name: adam, lr: 0.01}"
	if rel := relative(localRun(t, adam, "local={policy: averaging, steps: 1}"), localRun(t, adam)); rel < 1e-3 {
		t.Errorf("adam's states of each worker end within %.3g of one state", rel)
	}
}

// These policies are others with some constants, to the bit.
func TestLocalPoliciesThatAreEqual(t *testing.T) {
	averaging := localRun(t, "local={policy: averaging, steps: 6}")
	for name, c := range map[string]struct {
		set  []string
		want []float32
	}{
		"slowmo, alpha 1, beta 0":    {[]string{"local={policy: slowmo, steps: 6, outer: {lr: 1, momentum: 0}}"}, nil},
		"diloco, lr 1, momentum 0":   {[]string{"local={policy: diloco, steps: 6, outer: {lr: 1, momentum: 0}}"}, averaging},
		"post_local from the start":  {[]string{"local={policy: post_local, steps: 6, switch: 1}"}, nil},
		"qsr with a rate beyond it":  {[]string{"local={policy: averaging, steps: 6, period: {name: qsr, alpha: 0.01}}"}, averaging},
		"averaging, lr 1 as default": {[]string{"local={policy: averaging, steps: 6, outer: {name: sgd, lr: 1}}"}, averaging},
	} {
		got := localRun(t, c.set...)
		switch {
		case name == "post_local from the start": // one step, then rounds of 6
			if slices.Equal(got, averaging) {
				t.Errorf("%s: no difference to averaging", name)
			}
		case c.want == nil: // it divides by the rate and multiplies by it
			atMost(t, got, averaging, 1e-6)
		case !slices.Equal(got, c.want):
			t.Errorf("%s: relative difference %.3g, want none", name, relative(got, c.want))
		}
	}
	diloco := localRun(t, "local={policy: diloco, steps: 6}")
	if got := localRun(t, "local={policy: streaming_diloco, steps: 6, fragments: 1, delay: 0, keep: 0}"); !slices.Equal(got, diloco) {
		t.Errorf("streaming of one fragment: relative difference %.3g to diloco, want none", relative(got, diloco))
	}
	if rel := relative(diloco, averaging); rel < 1e-3 {
		t.Errorf("diloco ends within %.3g of averaging", rel)
	}
}

// With one worker the order of pushes is fixed: async_local with N = 1, beta 0, c 0 and the rate 1 is asp with deltas of as many steps. For
// one step asp can do that itself.
func TestAsyncLocalIsASPWithDeltas(t *testing.T) {
	one := func(set ...string) []float32 {
		base := []string{"train.stop.samples=960", "train.stop.updates=null", "model={name: mlp, layers: [16]}",
			"train.optimizer={name: momentum, lr: 0.1}"}
		return mustTrain(t, load(t, append(base, set...)...), 3).Parameters
	}
	const n1 = "outer: {lr: 1, momentum: 0, every: 1}}"
	asp := `sync=[{match: "*", scheme: asp, weight: 1}]`
	if got, want := one(asp, "local={policy: async_local, dynamic: false, steps: 1, "+n1),
		one(`sync=[{match: "*", scheme: asp, weight: 1, push: delta}]`); !slices.Equal(got, want) {
		t.Errorf("one step: relative difference %.3g to deltas, want none", relative(got, want))
	}
	if got, want := one(asp, "local={policy: async_local, dynamic: false, steps: 4, "+n1),
		one(asp, "local={policy: averaging, steps: 4}"); !slices.Equal(got, want) {
		t.Errorf("four steps: relative difference %.3g to averaging, want none", relative(got, want))
	}
}

// With selsync all workers exchange as soon as one votes for it: with threshold 0 after every step, as averaging of one step does; with one
// that is never reached, after as many steps as there may be.
func TestSelSyncBetweenItsExtremes(t *testing.T) {
	one, ten := localRun(t, "local={policy: averaging, steps: 1}"), localRun(t, "local={policy: averaging, steps: 6}")
	const selSync = "local={policy: averaging, steps: 6, period: {name: selsync, warm: 0, "
	if got := localRun(t, selSync+"threshold: 0}}"); relative(got, one) > 1e-2 { // the first step of all has nothing to compare with
		t.Errorf("threshold 0: relative difference %.3g to one step", relative(got, one))
	}
	if got := localRun(t, selSync+"threshold: 1e9}}"); !slices.Equal(got, ten) {
		t.Errorf("threshold 1e9: relative difference %.3g to six steps, want none", relative(got, ten))
	}
	if got := localRun(t, selSync+"threshold: 0.05, smoothing: 1}}"); slices.Equal(got, one) || slices.Equal(got, ten) {
		t.Error("threshold 0.05 equals one of the extremes")
	}
}

// Every step of every worker is in the servers' parameters once, those of the last round and those that ran ahead as well (HPSGD, invariant
// 2 [X]): with the constant gradients of model synthetic, rounds end where as many steps with an exchange each end.
func TestEveryStepCountsOnce(t *testing.T) {
	synthetic := []string{"model={name: synthetic, layers: [300, 500]}", "data.features=1"}
	want := localRun(t, synthetic...)
	for _, policy := range []string{"averaging, steps: 7", "averaging, steps: 1000", "hpsgd, steps: 1",
		"hpsgd, steps: 7", "hpsgd, steps: 1000", "post_local, steps: 4, switch: 5"} {
		atMost(t, localRun(t, append([]string{"local={policy: " + policy + "}"}, synthetic...)...), want, 1e-5)
	}
}

// The state of optimizers may be averaged, too (DL4J [P]). Averaging after every step then is the momentum of the
// mean gradient, too; with one worker there is nothing to average; and a round moves as many more bytes as there are
// numbers in the state.
func TestAveragingOfStates(t *testing.T) {
	momentum, adam := "train.optimizer={name: momentum, lr: 0.05, momentum: 0.8}", "train.optimizer={name: adam, lr: 0.01}"
	const average = "local={policy: averaging, state: average, steps: "
	const first, last = 20*16 + 16, 16*4 + 4                     // parameters of the two layers
	parameters := func(all []float32, set ...string) []float32 { // without the states, which follow the parameters of each layer
		var own []float32
		for layer, n := range []int{first, last} {
			at := layer * first * (len(all) / (first + last))
			own = append(own, all[at:at+n]...)
		}
		return own
	}
	if want := localRun(t, momentum); len(want) != first+last {
		t.Fatalf("the model has %d parameters", len(want))
	} else {
		atMost(t, parameters(localRun(t, momentum, average+"1}")), want, 1e-5)
	}
	one := []string{"train.stop.samples=960", "train.stop.updates=null", "model={name: mlp, layers: [16]}", adam}
	got := mustTrain(t, load(t, append(one, average+"4}")...), 3).Parameters
	want := mustTrain(t, load(t, append(one, "local={policy: averaging, steps: 4}")...), 3).Parameters
	if len(got) != 3*len(want) || !slices.Equal(parameters(got), want) {
		t.Errorf("one worker: %d numbers beside %d, relative difference %.3g, want three times as many and none", len(got),
			len(want), relative(parameters(got), want))
	}
	if rel := relative(parameters(localRun(t, adam, average+"4}")), localRun(t, adam, "local={policy: averaging, steps: 4}")); rel < 1e-4 {
		t.Errorf("averaged states of adam end within %.3g of states of the workers' own", rel)
	}
}
