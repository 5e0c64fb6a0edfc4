// Package workload holds what is trained: models, data sets, and who gets which rows.
//
//	set, err := workload.Load(spec)
//	model, err := workload.NewModel(ms, set.Samples(), dev, batch)
//	rows, err := workload.Partition("disjoint_random", set.Train.Rows(), workers, worker, seed)
//	sampler := workload.NewSampler(rows, batch, seed, worker)
//	augmenter := workload.NewAugmenter(augment, set.Image, seed, worker)
//	model.Bind(params, grads)
//	b := workload.NewBatch(ms.Name, set.Samples(), batch)
//	for i := range iterations {
//		picked = sampler.Batch(i, picked)
//		b.Take(set.Train, picked)
//		augmenter.Apply(b.X, i)
//		loss, correct := model.Forward(b, waitForParameters)
//		model.Backward(sendGradient)
//	}
//
// Everything random is a pure function of seeds: initial values of (seed, name, element), samples of
// (seed, worker, iteration), changes to their images of (seed, worker, iteration, position), generated rows of (seed, row).
package workload
