package scheme

import "fmt"

func nameOf(names []string, k int, kind string) string {
	if k < len(names) {
		return names[k]
	}
	return fmt.Sprintf("%s(%d)", kind, k)
}

var eventNames = []string{"offered", "pushed", "wanted", "ready", "sent", "alarm", "joined", "left", "closed",
	"waits elsewhere", "waited elsewhere"}

func (k EventKind) String() string { return nameOf(eventNames, int(k), "event") }

var decisionNames = []string{"fold", "drop", "commit", "reply", "publish", "grant", "revoke", "wakeat", "close", "ask elsewhere"}

func (k DecisionKind) String() string { return nameOf(decisionNames, int(k), "decision") }

var reasonNames = []string{"not dropped", "empty", "gone", "late", "surplus", "spent", "stale"}

func (r Reason) String() string { return nameOf(reasonNames, int(r), "reason") }

var slotNames = []string{"push", "pending", "params"}

func (s Slot) String() string {
	if s < 0 {
		return fmt.Sprintf("slot(%d)", int16(s))
	}
	if s >= SlotMean {
		return fmt.Sprintf("mean%d", s-SlotMean)
	}
	return nameOf(slotNames, int(s), "slot")
}

var scopeNames = []string{"shard", "server"}

func (s Scope) String() string { return nameOf(scopeNames, int(s), "scope") }

// String is one line for goldens and stall reports: kind, shard, worker, iteration, and the fields of the kind.
func (ev Event) String() string {
	head := fmt.Sprintf("%v s%d w%d", ev.Kind, ev.Shard, ev.Worker)
	switch ev.Kind {
	case Offered, Pushed:
		head += fmt.Sprintf(" i%d samples=%d", ev.Iter, ev.Samples)
		if ev.Parts != 1 {
			head += fmt.Sprintf(" part=%d/%d", ev.Part, ev.Parts)
		}
		if ev.Owner != ev.Worker {
			head += fmt.Sprintf(" owner=w%d", ev.Owner)
		}
		if ev.NormInf != 0 {
			head += fmt.Sprintf(" inf=%g", ev.NormInf)
		}
		if ev.Norm2 != 0 || ev.NormW != 0 {
			head += fmt.Sprintf(" norms=%g/%g", ev.Norm2, ev.NormW)
		}
	case Wanted, Joined:
		head += fmt.Sprintf(" c%d", ev.Iter)
	case Ready, Sent:
		head += fmt.Sprintf(" i%d", ev.Iter)
		if ev.Blocked != 0 {
			head += fmt.Sprintf(" blocked=%v", ev.Blocked)
		}
		if ev.Queued != 0 {
			head += fmt.Sprintf(" queued=%v", ev.Queued)
		}
	case Closed:
		head = fmt.Sprintf("%v s%d i%d of %d", ev.Kind, ev.Shard, ev.Iter, ev.Parts)
		if ev.Worker != NoWorker {
			head += fmt.Sprintf(" w%d", ev.Worker)
		}
	case Alarm:
		head = fmt.Sprintf("%v s%d at=%v", ev.Kind, ev.Shard, ev.At)
	}
	return head
}

// String is one line for goldens and stall reports; folds and commits are shown as assignments.
func (d Decision) String() string {
	head := fmt.Sprintf("%v s%d", d.Kind, d.Shard)
	if d.Worker != NoWorker {
		head += fmt.Sprintf(" w%d", d.Worker)
	}
	if d.Part > 0 {
		head += fmt.Sprintf(" part=%d", d.Part)
	}
	switch d.Kind {
	case Fold:
		sum := fmt.Sprintf("%g*%v", d.Weight, d.Src)
		if d.Scale != 0 {
			sum = fmt.Sprintf("%g*%v + %s", d.Scale, d.Dst, sum)
		}
		return fmt.Sprintf("%s i%d: %v = %s", head, d.Iter, d.Dst, sum)
	case Commit:
		text := fmt.Sprintf("%s i%d: update %.6g*%v at lr*%.6g, samples=%d", head, d.Iter, d.Weight, d.Src, d.Scale, d.Samples)
		if d.Approximate {
			text += ", approximate"
		}
		return text
	case Drop:
		return fmt.Sprintf("%s i%d: %v", head, d.Iter, d.Reason)
	case Grant, Revoke:
		return fmt.Sprintf("%s i%d epoch=%d", head, d.Iter, d.Epoch)
	case WakeAt:
		return fmt.Sprintf("%s at=%v", head, d.At)
	}
	return fmt.Sprintf("%s i%d", head, d.Iter)
}
