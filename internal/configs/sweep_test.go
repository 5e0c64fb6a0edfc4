package configs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs/keys"
)

const sweptBase = `name: swept
data: {set: generated}
model: {name: mlp, layers: [8]}
train:
  batch_per_worker: 32
  optimizer: {name: sgd, lr: 0.5}
  stop: {epochs: 1}
`

func TestSweepGivesEveryPoint(t *testing.T) {
	for _, c := range []struct {
		name, sweep string
		want        []string
	}{
		{"none", "", nil},
		{
			"product, the first key slowest", "sweep:\n  train.optimizer.lr: [0.1, 1e-2]\n  seed: [1, 2, 3]\n",
			[]string{
				"train.optimizer.lr=0.1 seed=1", "train.optimizer.lr=0.1 seed=2", "train.optimizer.lr=0.1 seed=3",
				"train.optimizer.lr=1e-2 seed=1", "train.optimizer.lr=1e-2 seed=2", "train.optimizer.lr=1e-2 seed=3",
			},
		},
		{
			"list", "sweep:\n  - {train.optimizer.lr: 0.1, seed: 7}\n  - {train.optimizer.name: momentum, train.optimizer.momentum: 0.5}\n",
			[]string{"train.optimizer.lr=0.1 seed=7", "train.optimizer.name=momentum train.optimizer.momentum=0.5"},
		},
		{"values that are lists and sections", "sweep: {model.layers: [[16], [16, 8]], train.stop: [{epochs: 2}]}\n",
			[]string{"model.layers=[16] train.stop={epochs: 2}", "model.layers=[16, 8] train.stop={epochs: 2}"}},
		{"items of lists", "sync: [{match: '*', scheme: bsp}]\nsweep: {'sync[0].scheme': [bsp, asp]}\n",
			[]string{"sync[0].scheme=bsp", "sync[0].scheme=asp"}},
		{"aliases", "sweep: [{seed: &s 5}, {seed: *s}]\n", []string{"seed=5", "seed=5"}},
		{"a value taken away", "sweep: {train.optimizer.lr: [0.2], train.optimizer.name: [null]}\n",
			[]string{"train.optimizer.lr=0.2 train.optimizer.name=null"}},
	} {
		points, ds := Sweep("a.yaml", []byte(sweptBase+c.sweep), Options{})
		var got []string
		for _, p := range points {
			got = append(got, strings.Join(p.Set, " "))
		}
		if ds.Failed() || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, ds, c.want)
		}
	}
}

// The configuration of a point is that of a run with the same --set: of the sweep itself nothing is left, so that the
// resolved form is a configuration on its own.
func TestPointIsARunWithThoseSettings(t *testing.T) {
	src := []byte(sweptBase + "sweep: {train.optimizer.lr: [0.1], model.layers: [[4, 2]]}\n")
	points, ds := Sweep("a.yaml", src, Options{Set: []string{"train.optimizer.lr=3", "seed=9"}})
	if ds.Failed() || len(points) != 1 {
		t.Fatalf("%d points, %v", len(points), ds)
	}
	c := points[0].Config
	if c.Train.Optimizer.LR != 0.1 || !slices.Equal(c.Model.Layers, []int{4, 2}) || c.Seed != 9 {
		t.Errorf("lr %v, layers %v, seed %d", c.Train.Optimizer.LR, c.Model.Layers, c.Seed)
	}
	var text strings.Builder
	if err := keys.Resolved(&text, c, nil); err != nil {
		t.Fatal(err)
	}
	again, _, ds := Parse("0000.yaml", []byte(text.String()), Options{})
	if ds.Failed() || keys.Hash(again) != keys.Hash(c) {
		t.Errorf("the resolved form reads as another: %v\n%s", ds, text.String())
	}
	plain, _, ds := Parse("a.yaml", src, Options{})
	if ds.Failed() || plain.Train.Optimizer.LR != 0.5 {
		t.Errorf("without the sweep: %v", ds)
	}
}

func TestSweepProblemsAreNamed(t *testing.T) {
	for _, c := range []struct{ sweep, want string }{
		{"sweep: 3\n", `a.yaml:8:1: sweep: want paths with lists of values, or a list of settings, got`},
		{"sweep: {}\n", `sweep: want paths with lists of values`},
		{"sweep: {train.optimizer.lr: 0.1}\n", `sweep.train.optimizer.lr: want a list of values`},
		{"sweep: {train.optimizer.l: [0.1]}\n", `sweep.train.optimizer.l: unknown key; did you mean train.optimizer.l1 or train.optimizer.lr`},
		{"sweep: {train: {optimizer: {lr: [1]}}}\n", `sweep.train: want a list of values`},
		{"sweep: {'a..b': [1]}\n", `sweep: want the path of a key`},
		{"sweep: [{}]\n", `sweep[0]: want settings`},
		{"sweep: [3]\n", `sweep[0]: want settings`},
		{"sweep: {seed: [1, 2], train.optimizer.lr: [0.1, -1]}\n", `a.yaml:8:49: train.optimizer.lr: must be above 0, got -1; `},
		{"sweep: {seed: [" + strings.Repeat("1,", 200) + "1], train.optimizer.lr: [" + strings.Repeat("1,", 200) + "1]}\n",
			"more than 10000 runs"},
	} {
		points, ds := Sweep("a.yaml", []byte(sweptBase+c.sweep), Options{})
		var text strings.Builder
		for _, d := range ds {
			text.WriteString(d.String() + "\n")
		}
		if !ds.Failed() || points != nil || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: %s\nwant %s", c.sweep, text.String(), c.want)
		}
	}
	// What is wrong with the sweep itself, check says too.
	if _, _, ds := Parse("a.yaml", []byte(sweptBase+"sweep: {sed: [1]}\n"), Options{}); !ds.Failed() {
		t.Error("Parse took an unknown path")
	}
}

// Values of a sweep are told of where they stand in the file, and problems elsewhere with the run that has them.
func TestSweepsAreToldOfInTheirFile(t *testing.T) {
	src, err := os.ReadFile("testdata/sweep-runs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for part := range strings.SplitSeq(string(src), "--- ") {
		title, sweep, _ := strings.Cut(part, "\n")
		if sweep == "" {
			continue
		}
		points, ds := Sweep("sweep.yaml", []byte(sweptBase+"sync: [{match: '*', scheme: ssp, staleness: 3}]\n"+sweep), Options{})
		sane(t, ds)
		fmt.Fprintf(&text, "%s: %d runs\n%s", title, len(points), written(t, ds))
	}
	golden(t, "testdata/sweep-runs.yaml", []byte(text.String()))
}
