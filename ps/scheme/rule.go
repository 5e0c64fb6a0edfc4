package scheme

import (
	"fmt"
	"math"
)

// Release says when a delayed pull is answered. The pull of a worker that has just pushed iteration i = c-1 is parked
// under a key. It is answered when v has passed the key and the gate is open to it.
type Release string

const (
	ReleaseSoft  Release = "soft"  // key v: answered at the next step of v, with one iteration of slack
	ReleaseLazy  Release = "lazy"  // key i: answered when all have finished iteration i, with s iterations of slack
	ReleaseBlock Release = "block" // as lazy; and a pull for an iteration at which another pull is parked is parked too
)

func (r Release) check() error {
	switch r {
	case ReleaseSoft, ReleaseLazy, ReleaseBlock:
		return nil
	}
	return fmt.Errorf("release: %q is not one of soft, lazy, block; soft is the default", r)
}

// rule is what distinguishes one gate scheme from another.
type rule struct {
	name             string
	limit            limit
	mix              mix  // nil: plain
	unbounded        bool // the limit gives c - v no finite bound
	release          Release
	perPush          bool      // with fold arrival: each push is a version; else each iteration is
	pushesPerVersion int64     // with fold arrival: number of pushes that make a version; 0: see perPush
	transit          *transit  // vap's limit, which also decides when a push is folded; nil: at once
	rounds           *rounds   // the limit of quorum, which also decides when a version is made; nil: no rounds
	coded            *decoding // the limit of coded, which also decides when an iteration closes; nil: pushes are not coded
	agree            bool      // with a quorum: the shards of a rule agree on its contributors
	// Number of pushes that close an iteration; it takes no more. 0: an iteration closes with the pushes of all live
	// workers.
	quorum int
}

// commitMode says when pushes become a version.
type commitMode uint8

const (
	byRank  commitMode = iota // staged; folded in rank order and committed when the iteration closes
	byClose                   // folded on arrival; committed when the iteration closes
	byPush                    // folded and committed on arrival
	byCount                   // folded on arrival; committed when there are enough pushes, and when the last worker leaves
	byValue                   // folded and committed when its value fits among the updates in transit
	byRound                   // folded on arrival; committed when a round ends
)

// mode derives the commit mode from the fold order. It refuses keys that contradict it.
func (r rule) mode(common Common) (commitMode, error) {
	switch {
	case r.rounds != nil:
		return byRound, r.checkWhole(common, "commits the pushes of a round")
	case common.Fold == FoldArrival && r.transit != nil:
		return byValue, nil
	case r.transit != nil:
		return 0, fmt.Errorf("%s: fold: rank waits until an iteration closes, but %s commits each push as soon as its "+
			"bound allows; use fold: arrival", r.name, r.name)
	case common.Fold == FoldArrival && r.pushesPerVersion > 0:
		return byCount, nil
	case r.pushesPerVersion > 0:
		return 0, fmt.Errorf("%s: fold: rank waits until an iteration closes, but %s commits any %d pushes; use fold: "+
			"arrival", r.name, r.name, r.pushesPerVersion)
	case common.Fold == FoldArrival && r.perPush:
		return byPush, nil
	case common.Fold == FoldRank && r.unbounded:
		return 0, fmt.Errorf("%s: fold: rank stages pushes until their iteration closes, and %s has no finite bound on "+
			"the lead, so the stage would grow without limit; use fold: arrival, or scheme ssp", r.name, r.name)
	case common.Weight != 0 && r.quorum > 0:
		return 0, fmt.Errorf("%s: weight: %v is the share of one push, but here an iteration is committed as a whole; "+
			"leave weight out", r.name, common.Weight)
	case common.Weight != 0:
		return 0, fmt.Errorf("%s: weight: %v is the share of one push, but here an iteration is committed as a whole; "+
			"leave weight out, or commit push by push (fold: arrival, for bsp also strict: false)", r.name, common.Weight)
	case common.Fold == FoldArrival:
		return byClose, nil
	}
	return byRank, nil
}

// checkWhole refuses keys that contradict a scheme whose versions are whole steps of pushes of any iterations.
func (r rule) checkWhole(common Common, does string) error {
	switch {
	case common.Fold == FoldRank:
		return fmt.Errorf("%s: fold: rank waits until an iteration closes, but %s %s, whatever their iterations; use "+
			"fold: arrival", r.name, r.name, does)
	case common.Weight != 0:
		return fmt.Errorf("%s: weight: %v is the share of one push, but %s %s as one whole step; leave weight out, and "+
			"scale with the learning rate", r.name, common.Weight, r.name, does)
	}
	return nil
}

// resolve fills the default fold order and checks the common keys.
func (c Common) resolve(name string, fold FoldOrder) (Common, error) {
	if c.Fold == "" {
		c.Fold = fold
	}
	if c.Fold != FoldRank && c.Fold != FoldArrival {
		return c, fmt.Errorf("%s: fold: %q is not one of rank, arrival; leave it out for %s", name, c.Fold, fold)
	}
	if math.IsNaN(c.Weight) || math.IsInf(c.Weight, 0) || c.Weight < 0 {
		return c, fmt.Errorf("%s: weight: %v is not a finite number above 0; leave it out for 1/N", name, c.Weight)
	}
	return c, nil
}

// check refuses an Env that no run can have.
func (e Env) check(name string) error {
	if e.Workers < 1 {
		return fmt.Errorf("%s: %d workers; a run needs at least 1", name, e.Workers)
	}
	if len(e.Shards) != 1 {
		return fmt.Errorf("%s: an instance for %d shards; it decides for exactly 1", name, len(e.Shards))
	}
	if e.Clocks != nil && len(e.Clocks) != e.Workers {
		return fmt.Errorf("%s: %d clocks for %d workers; give one per worker, or nil for all 0", name, len(e.Clocks), e.Workers)
	}
	for w, c := range e.Clocks {
		if c < -1 {
			return fmt.Errorf("%s: clock %d of worker %d; it is -1 (has left) or at least 0", name, c, w)
		}
	}
	if e.Start < 0 {
		return fmt.Errorf("%s: start version %d; it is at least 0", name, e.Start)
	}
	return nil
}
