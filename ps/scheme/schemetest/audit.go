package schemetest

import (
	"fmt"

	"fluentps/ps/scheme"
)

type pushID struct {
	worker int32
	iter   int64
}

// audit keeps its own record of a run and reports the first decision that contradicts it.
type audit struct {
	lead    int64 // bound on c - v of a pull that is answered
	bounded bool

	clock []int64
	left  []bool
	v     int64

	quorum   int           // counting pushes that close an iteration; 0: an iteration closes with the pushes of all live workers
	accepted map[int64]int // counting pushes per iteration, used where there is a quorum

	announced   map[int32]int64  // pushes that wait for a grant: worker to iteration
	outstanding *scheme.Decision // the grant under which nothing has landed yet
	epoch       int64            // of the last grant revoked
	agrees      bool             // the scheme must say which iterations are closed
	closed      int64            // number of iterations that it has said are closed

	landed          map[pushID]int64 // pushes that occupy a slot, with their samples
	wanted          map[int32]int64  // open pulls: worker to c
	pendingPushes   int
	pendingSamples  int64
	hasWeights      bool // pushes of one version may weigh less than 1
	weightedSamples float64
	means           int  // accumulators beside the pending sums
	onePush         bool // with accumulators: a commit is of one push
	written         bool // the pending sums were written since the last commit

	copies     scheme.Copies
	subscribed []bool // workers that were answered since they came
}

func newAudit(v Variant, env scheme.Env) *audit {
	a := &audit{
		clock:  make([]int64, env.Workers),
		left:   make([]bool, env.Workers),
		copies: v.Entry.CopiesOf(v.Params), subscribed: make([]bool, env.Workers),
		landed: map[pushID]int64{},
		wanted: map[int32]int64{}, accepted: map[int64]int{}, announced: map[int32]int64{}, epoch: -1,
	}
	if p, ok := v.Params.(*scheme.DropParams); ok {
		if a.quorum = env.Workers; p.Required > 0 {
			a.quorum = min(a.quorum, int(p.Required))
		}
	}
	_, a.onePush = v.Params.(*scheme.DynSGDParams)
	if p, ok := v.Params.(*scheme.SoftsyncParams); ok {
		a.hasWeights = p.Lambda0 > 0
	}
	if v.Entry.Means != nil {
		a.means = v.Entry.Means(v.Params, env.Workers)
	}
	a.agrees = v.Entry.Agrees != nil && v.Entry.Agrees(v.Params)
	a.lead, a.bounded = v.LeadMax()
	for w, c := range env.Clocks {
		a.clock[w], a.left[w] = max(0, c), c < 0
	}
	a.v = -1
	a.moveV()
	if a.v < 0 {
		a.v = env.Start
	}
	a.closed = a.v
	return a
}

// moveV raises v to the smallest clock of the workers in the run, and past iterations that have their quorum.
func (a *audit) moveV() {
	low, top := int64(-1), int64(-1)
	for w, c := range a.clock {
		top = max(top, c)
		if !a.left[w] && (low < 0 || c < low) {
			low = c
		}
	}
	if low < 0 && a.v >= 0 { // nobody is left: every pushed iteration is closed
		low = top
	}
	a.v = max(a.v, low)
	for a.quorum > 0 && a.accepted[a.v] >= a.quorum {
		a.v++
	}
}

// see checks one step; the error says which decision is wrong and why.
func (a *audit) see(ev scheme.Event, decisions []scheme.Decision) error {
	v := a.v
	switch w := ev.Worker; ev.Kind {
	case scheme.Ready:
		a.announced[w] = ev.Iter
	case scheme.Pushed:
		if a.outstanding != nil && a.outstanding.Worker == w {
			a.outstanding = nil
		}
		a.landed[pushID{w, ev.Iter}] = ev.Samples
		a.clock[w] = ev.Iter + 1
		if ev.Samples > 0 && !a.left[w] && ev.Iter >= a.v && (a.quorum == 0 || a.accepted[ev.Iter] < a.quorum) {
			a.accepted[ev.Iter]++
		}
		if !a.left[w] { // the push of a worker that has left closes nothing
			a.moveV()
		}
	case scheme.Wanted:
		a.wanted[w] = ev.Iter
	case scheme.Left:
		if !a.left[w] {
			a.left[w], a.subscribed[w] = true, false
			delete(a.wanted, w)
			delete(a.announced, w)
			if a.outstanding != nil && a.outstanding.Worker == w {
				a.outstanding = nil
			}
			a.moveV()
		}
	case scheme.Joined:
		a.left[w] = false
		a.clock[w] = max(a.clock[w], a.v, ev.Iter)
		a.moveV()
	}
	for _, d := range decisions {
		if err := a.obey(ev, d); err != nil {
			return fmt.Errorf("%v: decision %v: %w", ev, d, err)
		}
	}
	if err := a.published(a.v > v, decisions); err != nil {
		return fmt.Errorf("%v: %w", ev, err)
	}
	if a.agrees && a.closed != a.v {
		return fmt.Errorf("%v: v is %d, but the scheme said that %d iterations are closed", ev, a.v, a.closed)
	}
	return nil
}

func (a *audit) obey(ev scheme.Event, d scheme.Decision) error {
	if d.Shard != Shard {
		return fmt.Errorf("shard is not %d", Shard)
	}
	switch d.Kind {
	case scheme.Fold:
		return a.fold(d)
	case scheme.Drop:
		return a.freeSlot(d)
	case scheme.Commit:
		return a.commit(d)
	case scheme.Reply:
		return a.reply(d)
	case scheme.Grant:
		return a.grant(d)
	case scheme.Revoke:
		return a.revoke(d)
	case scheme.WakeAt:
		if d.At <= ev.At {
			return fmt.Errorf("the time is already %v", ev.At)
		}
		return nil
	case scheme.Publish:
		if a.copies == scheme.Published && d.Iter == a.v && d.Src == scheme.SlotParams {
			return nil // published checks to whom and when
		}
	case scheme.Close:
		return a.close(d)
	case scheme.AskElsewhere:
		if a.left[d.Worker] || a.clock[d.Worker] <= a.v {
			return fmt.Errorf("nobody with the smallest clock waits elsewhere, nor one that has left")
		}
		return nil
	}
	return fmt.Errorf("schemetest has no rule for this kind")
}

// freeSlot frees the slot of a push.
func (a *audit) freeSlot(d scheme.Decision) error {
	id := pushID{d.Worker, d.Iter}
	if _, ok := a.landed[id]; !ok || d.Src != scheme.SlotPush {
		return fmt.Errorf("no such push has landed, or it was folded or dropped before")
	}
	delete(a.landed, id)
	return nil
}

func (a *audit) fold(d scheme.Decision) error {
	if a.means > 0 {
		return a.foldMeans(d)
	}
	samples := a.landed[pushID{d.Worker, d.Iter}]
	if err := a.freeSlot(d); err != nil {
		return err
	}
	first := a.pendingPushes == 0
	switch {
	case d.Dst != scheme.SlotPending:
		return fmt.Errorf("folds into %v", d.Dst)
	case first && d.Scale != 0:
		return fmt.Errorf("first fold after a commit keeps old sums")
	case !first && d.Scale != 1:
		return fmt.Errorf("scales sums that are not committed yet")
	case !a.hasWeights && d.Weight != 1 || !(d.Weight > 0 && d.Weight <= 1):
		return fmt.Errorf("weight %v", d.Weight)
	}
	a.pendingPushes++
	a.pendingSamples += samples
	a.weightedSamples += d.Weight * float64(samples)
	return nil
}

// foldMeans checks a fold of a scheme that has accumulators: a push is folded into an accumulator, and the accumulator
// into the pending sums.
func (a *audit) foldMeans(d scheme.Decision) error {
	mean := d.Dst
	if d.Dst == scheme.SlotPending {
		mean = d.Src
	}
	switch {
	case mean < scheme.SlotMean || int(mean-scheme.SlotMean) >= a.means:
		return fmt.Errorf("folds %v into %v, and there are %d means", d.Src, d.Dst, a.means)
	case d.Dst == scheme.SlotPending && a.written == (d.Scale == 0):
		return fmt.Errorf("pending sums: written since the last commit %v, kept with scale %v", a.written, d.Scale)
	case d.Dst == scheme.SlotPending:
		a.written = true
		return nil
	}
	a.pendingPushes++
	a.pendingSamples += a.landed[pushID{d.Worker, d.Iter}]
	return a.freeSlot(d)
}

func (a *audit) commit(d scheme.Decision) error {
	weight := 1 / float64(d.Samples)
	if a.hasWeights {
		weight = 1 / a.weightedSamples // a weighted mean
	}
	if a.means > 0 {
		weight = 1 // a mean is already over pushes and samples
	}
	switch {
	case a.means > 0 && (a.onePush && a.pendingPushes != 1 || !a.written):
		return fmt.Errorf("%d pushes went into means, pending sums written %v", a.pendingPushes, a.written)
	case a.pendingPushes == 0:
		return fmt.Errorf("nothing is pending")
	case d.Samples != a.pendingSamples:
		return fmt.Errorf("%d samples are pending", a.pendingSamples)
	case d.Weight != weight:
		return fmt.Errorf("weight %v is not %v", d.Weight, weight)
	case d.Scale <= 0 || d.Scale > 1:
		return fmt.Errorf("scale %v", d.Scale)
	}
	a.pendingPushes, a.pendingSamples, a.weightedSamples, a.written = 0, 0, 0, false
	return nil
}

func (a *audit) reply(d scheme.Decision) error {
	c, open := a.wanted[d.Worker]
	switch {
	case !open:
		return fmt.Errorf("no pull of this worker is open")
	case d.Iter < c || d.Iter != max(c, a.clock[d.Worker], a.v):
		return fmt.Errorf("the worker asked for %d and has clock %d", c, a.clock[d.Worker])
	case a.bounded && c-a.v > a.lead:
		return fmt.Errorf("lead %d is over the bound %d (c=%d v=%d)", c-a.v, a.lead, c, a.v)
	}
	delete(a.wanted, d.Worker)
	return nil
}

func (a *audit) grant(d scheme.Decision) error {
	iter, waits := a.announced[d.Worker]
	switch {
	case !waits || iter != d.Iter:
		return fmt.Errorf("no such push waits for a grant")
	case a.outstanding != nil:
		return fmt.Errorf("%v is still out", *a.outstanding)
	case d.Epoch <= a.epoch:
		return fmt.Errorf("epoch %d was revoked before", a.epoch)
	}
	delete(a.announced, d.Worker)
	a.outstanding = &d
	return nil
}

func (a *audit) revoke(d scheme.Decision) error {
	if a.outstanding == nil || a.outstanding.Worker != d.Worker || a.outstanding.Iter != d.Iter || a.outstanding.Epoch != d.Epoch {
		return fmt.Errorf("no such grant is out")
	}
	a.outstanding, a.epoch = nil, d.Epoch
	return nil
}

// published checks that each step of v, and nothing else, is published, once to each worker that was answered before
// and is not answered by this step.
func (a *audit) published(moved bool, decisions []scheme.Decision) error {
	times := make([]int, len(a.left))
	answered := make([]bool, len(a.left))
	for _, d := range decisions {
		switch d.Kind {
		case scheme.Publish:
			times[d.Worker]++
		case scheme.Reply:
			answered[d.Worker] = true
		}
	}
	for w, n := range times {
		want := 0
		if a.copies == scheme.Published && moved && a.subscribed[w] && !answered[w] {
			want = 1
		}
		if n != want {
			return fmt.Errorf("published %d times to w%d, want %d", n, w, want)
		}
		a.subscribed[w] = a.subscribed[w] || answered[w]
	}
	return nil
}

// close checks that iterations close in order, before v, and with all folds committed.
func (a *audit) close(d scheme.Decision) error {
	switch {
	case !a.agrees:
		return fmt.Errorf("this scheme must not say which iterations are closed")
	case d.Iter < a.closed || d.Iter >= a.v || a.pendingPushes > 0 || d.Worker != scheme.NoWorker:
		return fmt.Errorf("v is %d, %d iterations were closed before, %d pushes are pending", a.v, a.closed, a.pendingPushes)
	}
	a.closed = d.Iter + 1
	return nil
}

// end checks what must hold when every worker has left.
func (a *audit) end() error {
	switch {
	case len(a.landed) > 0:
		return fmt.Errorf("%d pushes were neither folded nor dropped: %v", len(a.landed), a.landed)
	case len(a.wanted) > 0:
		return fmt.Errorf("%d pulls were not answered: %v", len(a.wanted), a.wanted)
	case len(a.announced) > 0:
		return fmt.Errorf("%d pushes were not granted: %v", len(a.announced), a.announced)
	case a.pendingPushes > 0:
		return fmt.Errorf("%d pushes were folded but not committed", a.pendingPushes)
	}
	return nil
}
