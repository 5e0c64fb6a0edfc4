package shard

// BucketBytes is from where on gradients are summed by an all-reduce before backward is over. 25 MiB is the default of
// PyTorch's DistributedDataParallel (its documentation, bucket_cap_mb), which baseline allreduce is modelled on. A model
// below that is summed in one call after backward.
const BucketBytes = 25 << 20

// BucketTail is how many elements travel behind the first bucket: what rank 0 wants to know of the other ranks.
const BucketTail = 4

// Bucket is a range of elements of the gradient arena that is summed in one call.
type Bucket struct{ Lo, Hi int }

// Buckets cuts the arena from its end, along pieces, in the order in which backward completes them. The tail lies behind the
// first one.
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

// BucketOf is the bucket of each piece.
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
