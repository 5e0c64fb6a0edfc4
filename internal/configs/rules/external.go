package rules

import (
	"fluentps/internal/configs/keys"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

// crossExternal checks what does not go with a model in another process: samples of ours, and computing without its program.
func (w *checks) crossExternal(t *keys.Table) {
	name, set := t.ByPath["model.name"], t.ByPath["data.set"]
	if name.Bad || set.Bad {
		return
	}
	c := w.Config
	isExternal, isElsewhere := workload.IsExternal(c.Model.Name), c.Data.Set == dataset.ExternalSet
	switch {
	case isExternal && !isElsewhere:
		w.Fatal(set.Node, set.Path, "set data: {set: external, rows: 50000, test_rows: 10000}, with the numbers of your rows",
			"%s is read by us, but the program of model external has its samples itself", c.Data.Set)
	case isElsewhere && !isExternal:
		w.Fatal(set.Node, set.Path, "choose another set, or model.name: external",
			"external is data that a program of your own reads, but model %s is one of ours", c.Model.Name)
	}
	if !isExternal {
		return
	}
	for _, key := range []string{"data.augment.crop", "data.augment.flip"} {
		if l := t.ByPath[key]; !l.Bad && l.Key != nil && c.Data.Augment != (images.Augment{}) {
			w.Fatal(l.Node, l.Path, "remove it, and change the samples in your program",
				"changes samples, which the program of model external has itself")
		}
	}
	sampler, partition := t.ByPath["data.sampler"], t.ByPath["data.partition"]
	if !sampler.Bad && !partition.Bad && c.Data.Deal.Sampler == dataset.SamplerScript && c.Data.Partition != dataset.Defaults().Partition {
		w.Fatal(partition.Node, partition.Path, "leave it out, and share the rows in your program, by ps.worker of ps.workers; "+
			"or set data.sampler: run", "is how the run deals rows, but with data.sampler: script the program picks its samples itself")
	}
	l := t.ByPath["data.shuffle"]
	if !sampler.Bad && !l.Bad && l.Key != nil && c.Data.Deal.Sampler == dataset.SamplerScript && c.Data.Deal.WindowRows() > 0 {
		w.Fatal(l.Node, l.Path, "leave it out, or set data.sampler: run",
			"is the order in which the run deals rows, but with data.sampler: script the program picks its samples itself")
	}
	if l := t.ByPath["device.kind"]; !l.Bad && c.Device.Kind == "cuda" {
		w.Fatal(l.Node, l.Path, "set auto", "is for models of ours: the program of model external chooses its device itself")
	}
	if l := t.ByPath["simulate.gradients"]; !l.Bad && c.Simulate.Gradients {
		w.Fatal(l.Node, l.Path, "set false: the simulator then models the times alone",
			"computes in the simulator, which starts no program of model external")
	}
}
