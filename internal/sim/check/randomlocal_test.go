package check

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"fluentps/internal/plan/layout"
	"fluentps/internal/sim"
	"fluentps/internal/sim/real"
	"fluentps/internal/sim/simtest"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload/dataset"
)

// randomLocal draws steps of the workers' own, with all keys that the policy takes. It has draws of its own.
func randomLocal(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 61))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	policy := pick("averaging", "hpsgd", "hpsgd", "post_local", "diloco", "streaming_diloco", "streaming_diloco",
		"streaming_diloco", "slowmo", "bmuf", "async_local", "easgd")
	steps := 1 + r.IntN(6)
	keys := []string{"policy: " + policy}
	add := func(format string, args ...any) { keys = append(keys, fmt.Sprintf(format, args...)) }
	period := func() {
		switch r.IntN(4) {
		case 0:
			add("period: {name: qsr, alpha: %s}", pick("0.005", "0.02"))
		case 1:
			add("period: {name: adacomm, interval: %d}", 1+r.IntN(3))
		}
	}
	outer := func() {
		if r.IntN(2) == 0 {
			add("outer: {name: %s, lr: %s, momentum: %s}", pick("momentum", "nesterov"), pick("0.5", "1"), pick("0", "0.5"))
		}
	}
	switch policy {
	case "averaging", "diloco":
		period()
		outer()
	case "post_local":
		add("switch: %d", 1+r.IntN(12))
		period()
		outer()
	case "slowmo", "bmuf":
		period()
		if r.IntN(2) == 0 {
			add("outer: {lr: 1, momentum: %s}", pick("0", "0.5"))
		}
	case "hpsgd":
		steps = r.IntN(5)
		add("compensate: %s", pick("0", "0", "0.04"))
		outer()
	case "easgd":
		add("pull: %s", pick("0.05", "0.2"))
	case "async_local":
		add("dynamic: %v", r.IntN(2) == 0)
		add("outer: {lr: 0.1, momentum: 0.5, every: %d, between: %s}", r.IntN(4), pick("0", "0.1"))
	case "streaming_diloco":
		fragments := 1 + r.IntN(3)
		each := 1 + r.IntN(4)
		steps = fragments * each
		add("fragments: %d", fragments)
		add("delay: %d", r.IntN(each+1))
		add("keep: %s", pick("0", "0.3"))
		outer()
	}
	add("steps: %d", steps)
	return "local={" + strings.Join(keys, ", ") + "}"
}

// randomLocalSet draws what a run with steps of the workers' own changes in a random cluster.
func randomLocalSet(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 62))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	set := []string{randomLocal(seed), "train.stop={" +
		pick("samples: 400", "samples: 150", "updates: 15", "updates: 40", "time: 200ms", "samples: 400, time: 90ms", "epochs: 6") + "}"}
	if codec := pick("", "", "", "push: bfloat16", "push: topk, ratio: 0.2",
		"push: threshold, ratio: 0.2, threshold: 0.01", "push: topk, ratio: 0.1, thresholds: reused", "pull: bfloat16"); codec != "" {
		set = append(set, "payload={"+codec+"}")
	}
	if r.IntN(3) == 0 {
		set = append(set, "train.schedule={name: cosine, over: 60, floor: 0.1, warm_up: 4}")
	}
	return append(set, "train.optimizer={"+
		pick("name: sgd, lr: 0.1", "name: momentum, lr: 0.05", "name: nesterov, lr: 0.05", "name: adam, lr: 0.01")+"}")
}

// localCluster draws a random cluster whose workers take steps of their own. ok is false if the configuration refuses the draw.
func localCluster(t *testing.T, seed uint64) (o sim.Options, ok bool) {
	for try := uint64(0); try < 8 && !ok; try++ { // some policies do not go with some schemes
		if o, ok = randomCluster(t, seed, randomLocalSet(seed+try<<40)); ok {
			_, err := layout.Fragments(o.Config, o.Plan)
			ok = err == nil // else there are fewer shards than fragments
		}
	}
	if !ok {
		return o, false
	}
	o.Replay = fmt.Sprintf("FLUENTPS_TEST_SIM_FIRST=%d FLUENTPS_TEST_SIM_SEEDS=1 go test ./internal/sim/check -run "+
		"TestLawsOfStepsOverManySeeds", seed)
	if seed%16 == 3 {
		withGradients(t, &o)
	}
	return o, true
}

// withGradients makes a run compute real gradients of a small model.
func withGradients(t *testing.T, o *sim.Options) {
	c := *o.Config
	c.Data.Rows, c.Data.TestRows, c.Data.Features, c.Data.Classes = 60, 20, 6, 3
	c.Evaluate.EveryEpochs = 1
	data, err := dataset.Load(layout.DataSpec(&c))
	if err != nil {
		t.Fatal(err)
	}
	device := cpu.New(1)
	architecture, err := layout.Architecture(&c, data)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.Plan(&c, architecture.Params(), c.Cluster.Servers, layout.Link{})
	if err != nil {
		return
	}
	o.Config, o.Plan, o.Rows, o.Values = &c, plan, data.Train.Rows(), (&real.Gradients{Set: data, Device: device}).Values
}

// Random clusters and faults under all schemes, whose workers take steps of their own: all laws hold, no sample counts twice, and equal
// seeds give equal runs.
func TestLawsOfStepsOverManySeeds(t *testing.T) {
	first, n := simtest.SeedsFrom(t)
	if os.Getenv("FLUENTPS_TEST_SIM_SEEDS") == "" {
		n = 300
	}
	ran, lost, joined, fragments, open, real, repeated := 0, 0, 0, 0, 0, 0, 0
	policies, schemes := map[string]int{}, map[string]int{}
	for k := range n {
		seed := uint64(first + k)
		o, ok := localCluster(t, seed)
		if !ok {
			continue
		}
		r, err := Run(o)
		if err != nil && strings.Contains(err.Error(), "raise its until") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		ran++
		lost += r.Lost
		joined += r.Joined
		l := &o.Config.Local
		policies[l.Policy]++
		for i := range o.Config.Sync {
			schemes[o.Config.Sync[i].Scheme]++
		}
		if l.Policy == "streaming_diloco" && l.Fragments > 1 {
			fragments++
		}
		if l.Steps == 0 {
			open++
		}
		if o.Values != nil {
			real++
		}
		if k%16 == 3 || n == 1 { // with gradients, too
			repeated++
			again, _ := localCluster(t, seed)
			r2, err := Run(again)
			if err != nil {
				t.Fatal(err)
			}
			if r2.Trace != r.Trace || r2.Summary.ParametersSHA256 != r.Summary.ParametersSHA256 || r2.Summary.Samples != r.Summary.Samples {
				t.Fatalf("seed %d: trace %x with %d samples, and then %x with %d", seed, r.Trace, r.Summary.Samples, r2.Trace, r2.Summary.Samples)
			}
		}
	}
	t.Logf("%d runs with steps of their own, %d with fragments, %d open, %d with gradients, %d repeated; %d workers "+
		"lost, %d back; policies %v; %d schemes %v", ran, fragments, open, real, repeated, lost, joined, policies, len(schemes), schemes)
	if n > 100 && (ran < n/3 || lost < ran/4 || joined < ran/16 || fragments < ran/64 || open == 0 || real < ran/64 || len(policies) < 9) {
		t.Errorf("%d of %d seeds made a run: the draw is too narrow", ran, n)
	}
}
