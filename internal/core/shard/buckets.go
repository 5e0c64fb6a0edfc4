package shard

// BucketBytes is the size from which an all-reduce sums gradients before backward is over. 25 MiB is the default of
// PyTorch's DistributedDataParallel (its documentation, bucket_cap_mb), the model of baseline allreduce. A smaller
// model is summed in one call after backward.
const BucketBytes = 25 << 20

// BucketTail is the number of elements that travel behind the first bucket: values that rank 0 collects from all ranks.
const BucketTail = 4

// Bucket is a range of elements of the gradient arena that is summed in one call.
type Bucket struct{ Lo, Hi int }

// Buckets cuts the arena from its end, along pieces, in the order in which backward completes them. The tail lies
// behind the first bucket.
func (p *Plan) Buckets() []Bucket {
	var all []Bucket
	hi := p.Arena
	for i := len(p.Pieces) - 1; i >= 0; i-- {
		lo := p.Pieces[i].Lo
		if (hi-lo)*ElemBytes >= BucketBytes || lo == 0 {
			all = append(all, Bucket{lo, hi})
			hi = lo
		}
	}
	return all
}

// BucketOf is the index of each piece's bucket.
func (p *Plan) BucketOf(buckets []Bucket) []int {
	of := make([]int, len(p.Pieces))
	for _, q := range p.Pieces {
		for k, b := range buckets {
			if q.Lo >= b.Lo && q.Lo < b.Hi {
				of[q.ID] = k
			}
		}
	}
	return of
}
