package shard

import "testing"

// Buckets cover the arena once, from its end, along pieces, and only the last may be small.
func TestBucketsCoverTheArenaFromItsEnd(t *testing.T) {
	for _, n := range []int{10, 6_000_000, 40_000_000} {
		params := []Param{{Name: "a.weight", N: n}, {Name: "a.bias", N: 10}, {Name: "b.weight", Layer: 1, N: n},
			{Name: "c.weight", Layer: 2, N: n / 2}}
		p, err := Cut(params, Options{Slice: "even", MaxBytes: 4 << 20, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		all := p.Buckets()
		hi := p.Arena
		for i, b := range all {
			small := (b.Hi-b.Lo)*ElemBytes < BucketBytes
			if b.Hi != hi || b.Lo >= b.Hi || small && i < len(all)-1 || (b.Hi-b.Lo)*ElemBytes > BucketBytes+4<<20 {
				t.Errorf("%d elements: bucket %d is %+v, behind it %d", p.Arena, i, b, hi)
			}
			hi = b.Lo
		}
		if hi != 0 {
			t.Errorf("%d elements: the buckets begin at %d", p.Arena, hi)
		}
		for id, k := range p.BucketOf(all) {
			if q := p.Pieces[id]; q.Lo < all[k].Lo || q.Hi > all[k].Hi {
				t.Errorf("%d elements: piece %+v is not in bucket %+v", p.Arena, q, all[k])
			}
		}
	}
}
