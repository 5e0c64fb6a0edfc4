package straggler

import "time"

// dbs is the disturbance test of DBS's authors. Like twoState it goes through all epochs in turn.
type dbs struct {
	s        Spec
	perEpoch int64
	draws    *draws
	next     int64         // the epoch after the last one that was drawn
	left     int64         // slow epochs from the one before next on; 0: it is not slow
	sleep    time.Duration // of each of them
}

func newDBS(s Spec, e Env) Injector {
	return &dbs{s: s, perEpoch: max(1, e.PerEpoch), draws: newDraws(e)}
}

func (d *dbs) Draw(iter int64) Amount {
	epoch := iter / d.perEpoch
	if epoch < d.next-1 {
		d.next, d.left = 0, 0
	}
	for ; d.next <= epoch; d.next++ {
		d.left = max(0, d.left-1)
		if d.left > 0 {
			continue
		}
		if r := d.draws.at(d.next); r.Float64() < d.s.Chance {
			d.left = d.s.EpochsMin + r.Int64N(d.s.EpochsMax-d.s.EpochsMin+1)
			d.sleep = d.s.SleepMin + time.Duration(r.Int64N(int64(d.s.SleepMax-d.s.SleepMin)+1))
		}
	}
	if d.left == 0 {
		return Amount{}
	}
	return Amount{Sleep: d.sleep / time.Duration(d.perEpoch)}
}
