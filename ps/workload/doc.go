// Package workload holds models. Package dataset below it reads data, and assigns rows to workers.
//
// What a model consists of (Architecture) is apart from what computes (Model): only who computes makes a model.
//
//	set, err := dataset.Load(spec)
//	architecture, err := workload.NewArchitecture(ms, set.Samples())
//	model, err := workload.NewModel(ms, set.Samples(), dev, batch)
//	rows, err := dataset.Partition("disjoint_random", set.Train.Rows(), workers, worker, seed)
//	sampler := dataset.NewSampler(rows, batch, seed, worker)
//	augmenter := images.NewAugmenter(augment, set.Image, seed, worker)
//	model.Bind(params, grads)
//	b := workload.NewBatch(ms.Name, set.Samples(), batch)
//	for i := range iterations {
//		picked = sampler.Batch(i, picked)
//		b.Take(set.Train, picked)
//		augmenter.Apply(b.X, i)
//		loss, correct, err := model.Forward(b, waitForParameters)
//		err = model.Backward(sendGradient)
//	}
//
// All randomness is a pure function of seeds: initial values depend on (seed, name, element).
package workload
