package core

import (
	"fmt"
	"math"
	"strings"

	"fluentps/internal/comm/wire"
)

var inputNames = [...]string{"Begin", "Forwarded", "PieceReady", "TaskDone", "PieceSent", "PieceLanded", "Arrived",
	"ReplySent", "Alarm", "StopNow", "SaveSoon", "ReplyPieceSent", "PauseNow", "Voted", "StepBegun", "Normed", "Written"}

func (k InputKind) String() string { return inputNames[k] }

var effectNames = [...]string{"Send", "SendPiece", "Expect", "ExpectBeside", "Adopt", "Keep", "AddLocal", "Compute",
	"Stage", "Unstage", "Fold", "Commit", "Reply", "SendServer", "SendBarrier", "Norm", "Close", "Snapshot", "WakeAt", "Done",
	"Read", "Merge", "Own", "Save", "Cancel", "SendWorker", "ReplyPiece", "Changed"}

func (k EffectKind) String() string { return effectNames[k] }

// String is the input on one line, with only the fields that its kind uses.
func (in Input) String() string {
	switch in.Kind {
	case PieceReady, PieceSent:
		return fmt.Sprintf("%v p%d", in.Kind, in.Piece)
	case PieceLanded:
		return fmt.Sprintf("%v p%d slot%d", in.Kind, in.Piece, in.Slot)
	case Arrived:
		return "Arrived " + Describe(in.Msg)
	case ReplySent:
		return fmt.Sprintf("%v shard%d buf%d w%d", in.Kind, in.Shard, in.Buf, in.Worker)
	case ReplyPieceSent:
		return fmt.Sprintf("%v p%d w%d", in.Kind, in.Piece, in.Worker)
	case Alarm:
		return fmt.Sprintf("%v shard%d at=%v", in.Kind, in.Shard, in.At)
	case Normed:
		return fmt.Sprintf("%v shard%d squares=%.4g", in.Kind, in.Shard, in.Squares)
	case Written:
		return fmt.Sprintf("%v shard%d", in.Kind, in.Shard)
	case Forwarded:
		return fmt.Sprintf("%v samples=%d", in.Kind, in.Msg.Samples)
	default:
		return in.Kind.String()
	}
}

// String is the effect on one line, with only the fields that its kind uses.
func (e Effect) String() string {
	switch e.Kind {
	case Send, SendServer, SendBarrier, SendWorker:
		return fmt.Sprintf("%v to=%d %s", e.Kind, e.To, Describe(e.Msg))
	case SendPiece:
		return fmt.Sprintf("%v to=%d p%d", e.Kind, e.To, e.Piece)
	case Expect, ExpectBeside, Adopt:
		return fmt.Sprintf("%v shard%d", e.Kind, e.Shard)
	case Keep:
		return fmt.Sprintf("%v shard%d slot%d", e.Kind, e.Shard, e.Slot)
	case AddLocal:
		return fmt.Sprintf("%v shard%d += %.4g*%.4g*slot%d", e.Kind, e.Shard, e.Scale, e.Weight, e.Slot)
	case Compute, Cancel:
		if t := e.Task(); t.Parts != 1 || t.From > 0 || t.To > 0 {
			return fmt.Sprintf("%v iter=%d owner=%d part=%d/%d from=%d to=%d", e.Kind, e.Iter, t.Owner, t.Part, t.Parts, t.From, t.To)
		}
		return fmt.Sprintf("%v iter=%d", e.Kind, e.Iter)
	case Stage, Unstage:
		return fmt.Sprintf("%v shard%d w%d slot%d", e.Kind, e.Shard, e.To, e.Slot)
	case Fold:
		return fmt.Sprintf("%v shard%d pending = %g*pending + %g*slot%d", e.Kind, e.Shard, e.Scale, e.Weight, e.Slot)
	case Commit:
		return fmt.Sprintf("%v shard%d buf%d = step(buf%d, %.4g*pending, lr*%.4g, clock %.4g) samples=%d version=%d",
			e.Kind, e.Shard, e.Dst, e.Src, e.Weight, e.Scale, e.Clock, e.Samples, e.Iter)
	case Reply:
		return fmt.Sprintf("%v to=%d buf%d %s", e.Kind, e.To, e.Src, Describe(e.Msg))
	case Read:
		return fmt.Sprintf("%v shard%d buf%d", e.Kind, e.Shard, e.Src)
	case Merge:
		return fmt.Sprintf("Merge shard%d slot%d += slot%d w%d iter=%d", e.Shard, e.Dst, e.Slot, e.To, e.Iter)
	case Own:
		return fmt.Sprintf("%v shard%d w%d slot%d", e.Kind, e.Shard, e.To, e.Slot)
	case ReplyPiece:
		return fmt.Sprintf("%v to=%d buf%d p%d", e.Kind, e.To, e.Src, e.Piece)
	case Changed:
		return fmt.Sprintf("%v iter=%d changes=%d w%d times=%.3g", e.Kind, e.Iter, e.Src, e.To, e.Scale)
	case Norm:
		return fmt.Sprintf("%v shard%d %.4g*pending", e.Kind, e.Shard, e.Weight)
	case WakeAt:
		return fmt.Sprintf("%v shard%d at=%v", e.Kind, e.Shard, e.At)
	case Close:
		return fmt.Sprintf("%v shard%d iter=%d", e.Kind, e.Shard, e.Iter)
	case Snapshot:
		return fmt.Sprintf("%v shard%d buf%d index=%d", e.Kind, e.Shard, e.Src, e.Iter)
	case Save:
		return fmt.Sprintf("%v shard%d buf%d iter=%d", e.Kind, e.Shard, e.Src, e.Iter)
	default:
		return e.Kind.String()
	}
}

// Describe is a control message on one line, with only the fields that its kind uses.
func Describe(m wire.Header) string {
	var b strings.Builder
	switch m.Kind {
	case wire.Push:
		fmt.Fprintf(&b, "Push w%d shard%d iter=%d seen=%d samples=%d", m.Worker, m.Shard, m.Iter, m.Version, m.Samples)
		if m.Flags&wire.Save != 0 {
			b.WriteString(" save")
		}
		if m.Flags&wire.Change != 0 {
			b.WriteString(" change")
		}
	case wire.Pull:
		fmt.Fprintf(&b, "Pull w%d shard%d iter=%d", m.Worker, m.Shard, m.Iter)
	case wire.Reply, wire.Publish:
		fmt.Fprintf(&b, "%s w%d shard%d iter=%d version=%d v=%d",
			map[wire.Kind]string{wire.Reply: "Reply", wire.Publish: "Publish"}[m.Kind], m.Worker, m.Shard, m.Iter, m.Version, m.Clock)
		if m.Flags&wire.Stop != 0 {
			b.WriteString(" stop")
		}
		if m.Flags&wire.Save != 0 {
			b.WriteString(" save")
		}
		if m.Flags&wire.Change != 0 {
			b.WriteString(" change")
		}
	case wire.Taken:
		fmt.Fprintf(&b, "Taken w%d shard%d version=%d", m.Worker, m.Shard, m.Version)
	case wire.Ended:
		fmt.Fprintf(&b, "Ended w%d shard%d versions=%d", m.Worker, m.Shard, m.Iter)
	case wire.Ack:
		fmt.Fprintf(&b, "Ack w%d shard%d iter=%d", m.Worker, m.Shard, m.Iter)
	case wire.PushReady:
		fmt.Fprintf(&b, "PushReady w%d shard%d iter=%d", m.Worker, m.Shard, m.Iter)
	case wire.Grant, wire.Revoke:
		fmt.Fprintf(&b, "%s w%d shard%d iter=%d epoch=%d",
			map[wire.Kind]string{wire.Grant: "Grant", wire.Revoke: "Revoke"}[m.Kind], m.Worker, m.Shard, m.Iter, m.Epoch)
	case wire.Peer:
		fmt.Fprintf(&b, "Peer w%d owner=%d part=%d/%d iter=%d flags=%d", m.Worker, m.Owner, m.Part, m.Parts, m.Iter, m.Flags)
	case wire.Left:
		fmt.Fprintf(&b, "Left w%d", m.Worker)
	case wire.Closed:
		fmt.Fprintf(&b, "Closed shard%d iter=%d number=%d part=%d of %d workers=%#x", m.Shard, m.Iter, m.Version, m.Part,
			m.Parts, uint64(m.Samples))
		if m.Flags&wire.Over != 0 {
			fmt.Fprintf(&b, " over lives=%d", m.Clock)
		}
	case wire.Normed:
		fmt.Fprintf(&b, "Normed shard%d iter=%d squares=%.4g", m.Shard, m.Iter, math.Float64frombits(uint64(m.Samples)))
	case wire.AskWaits, wire.Waits:
		fmt.Fprintf(&b, "%s w%d shard%d question=%d",
			map[wire.Kind]string{wire.AskWaits: "AskWaits", wire.Waits: "Waits"}[m.Kind], m.Worker, m.Shard, m.Version)
		if m.Flags&wire.Over != 0 {
			b.WriteString(" over")
		}
	case wire.Barrier:
		fmt.Fprintf(&b, "Barrier w%d iter=%d", m.Worker, m.Iter)
	case wire.Release:
		fmt.Fprintf(&b, "Release w%d iter=%d", m.Worker, m.Iter)
	case wire.Joined:
		fmt.Fprintf(&b, "Joined w%d", m.Worker)
	default:
		fmt.Fprintf(&b, "kind%d", m.Kind)
	}
	return b.String()
}
