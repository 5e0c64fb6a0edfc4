package keys_test

import (
	"slices"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

// parse is the configuration of changedText with some values set. It has no problem.
func parse(t *testing.T, set ...string) *settings.Config {
	t.Helper()
	c, _, diags := configs.Parse("c.yaml", []byte(changedText), configs.Options{Set: set})
	if len(diags) > 0 {
		t.Fatal(string(diags.JSON()))
	}
	return c
}

func TestChangedNamesWhatARunDoesNotJustGoOnWith(t *testing.T) {
	old := keys.Values(parse(t))
	if old["sync[1].scheme"] != "bsp" || old["train.stop.epochs"] != "1" || old["faults"] != "[]" {
		t.Fatalf("values %v", old)
	}
	// a program of before did not have them
	for _, path := range []string{"train.optimizer.weight_decay", "payload.push", "shards.max_bytes", "faults"} {
		delete(old, path)
	}
	for _, c := range []struct{ set, want []string }{
		{nil, nil},
		{[]string{"train.stop={epochs: 9, time: 1h}", "checkpoint.keep=1", "metrics.interval=1s", "device.threads=2",
			"evaluate.where=online", "stall.warn=0s", "model.init=a.npz"}, nil},
		{[]string{"seed=3", "train.optimizer={name: momentum, lr: 0.1, momentum: 0.8}"},
			[]string{"seed", "train.optimizer.momentum", "train.optimizer.name"}},
		{[]string{"sync=[{match: '*', scheme: ssp}]"}, []string{"sync[0].match", "sync[0].scheme", "sync[1].match", "sync[1].scheme"}},
		{[]string{"faults=[{worker: 1, slow: {factor: 2}}]"}, []string{"faults[0].slow.factor", "faults[0].worker"}},
	} {
		got := keys.Changed(old, parse(t, c.set...))
		for _, key := range c.want {
			if !slices.Contains(got, key) {
				t.Errorf("%v: %v lacks %s", c.set, got, key)
			}
		}
		if slices.Contains(got, "train.optimizer.weight_decay") || !slices.IsSorted(got) || len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%v: %v", c.set, got)
		}
	}
}

// A checkpoint of a version that had no keys is gone on from with what that version did.
func TestThePlainWordIsWhatItWas(t *testing.T) {
	cfg := parse(t, "sync=null", "baseline=pslite")
	old := keys.Values(cfg)
	if old["baseline"] != "pslite" || old["baseline.keys"] != "tensor" {
		t.Errorf("values %q and %q", old["baseline"], old["baseline.keys"])
	}
	delete(old, "baseline.keys")
	if changed := keys.Changed(old, cfg); len(changed) != 0 {
		t.Errorf("changed: %v", changed)
	}
	cfg = parse(t, "sync=null", "baseline={name: pslite, keys: scalar}")
	if changed := keys.Changed(old, cfg); !slices.Equal(changed, []string{"baseline.keys"}) {
		t.Errorf("changed: %v", changed)
	}
}

const changedText = `
name: changed
data: {set: generated}
model: {name: softmax}
train: {batch_per_worker: 8, optimizer: {lr: 0.1}, stop: {epochs: 1}}
sync:
  - {match: "*.bias", scheme: asp}
  - {match: "*", scheme: bsp}
`
