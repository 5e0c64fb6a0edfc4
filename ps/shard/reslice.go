package shard

import (
	"fmt"
	"slices"
)

// Recut makes the map of the same parameters, rules and slicing for another number of servers: FluentPS's elastic
// parameter slicing when servers come or go (sync-core 1.7 [R]). The arena stays as it is, so a worker's buffers keep
// their meaning; shards and their owners are new, and so is the epoch.
func (p *Plan) Recut(servers int) (*Plan, error) {
	o := p.options
	o.Servers = servers
	n, err := Cut(p.Params, o)
	if err != nil {
		return nil, err
	}
	n.Epoch = p.Epoch + 1
	return n, nil
}

// Overlap is a range [Lo, Hi) of the arena that lies in shard From of one map and in shard To of another.
type Overlap struct {
	Lo, Hi   int
	From, To int32
	Moves    bool // another server owns it
}

// Overlaps cuts the arena where either map cuts it, in order: all that is needed to bring what servers keep of their
// shards (parameters, the optimizer's state) from one map to the other, and by Moves what has to travel. The maps must
// be of the same parameters in the same groups.
func Overlaps(from, to *Plan) ([]Overlap, error) {
	if from.Arena != to.Arena || !slices.Equal(from.Params, to.Params) || !slices.Equal(from.At, to.At) {
		return nil, fmt.Errorf("shard: the maps are of different parameters or groups of them (%d parameters in %d elements, and %d in %d); keep the model and the sync rules",
			len(from.Params), from.Arena, len(to.Params), to.Arena)
	}
	var all []Overlap
	a, b := byPlace(from), byPlace(to)
	for lo := 0; lo < from.Arena; {
		x, y := a[0], b[0]
		hi := min(x.Hi, y.Hi)
		all = append(all, Overlap{Lo: lo, Hi: hi, From: x.ID, To: y.ID, Moves: x.Server != y.Server})
		if x.Hi == hi {
			a = a[1:]
		}
		if y.Hi == hi {
			b = b[1:]
		}
		lo = hi
	}
	return all, nil
}

// byPlace lists the shards in order of the arena.
func byPlace(p *Plan) []*Shard {
	list := make([]*Shard, len(p.Shards))
	for i := range p.Shards {
		list[i] = &p.Shards[i]
	}
	slices.SortFunc(list, func(x, y *Shard) int { return x.Lo - y.Lo })
	return list
}
