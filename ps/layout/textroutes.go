package layout

import (
	"fmt"
	"strings"

	"fluentps/configs"
	"fluentps/ps/metrics"
)

// planRoutes prints the pieces of an iteration by their ways, provided that ranks of one host share memory.
func planRoutes(b *strings.Builder, t *Routes) {
	if Reduces(t.cfg) {
		return
	}
	var pushed, replied [ways]struct{ pieces, bytes int64 }
	for i := range t.plan.Pieces {
		p := &t.plan.Pieces[i]
		for w := range t.roles.Workers {
			push, reply := &pushed[t.Push(p.ID, int32(w))], &replied[t.Reply(p.ID, int32(w))]
			push.pieces, push.bytes = push.pieces+1, push.bytes+p.PushBytes
			reply.pieces, reply.bytes = reply.pieces+1, reply.bytes+p.ReplyBytes
		}
	}
	fmt.Fprintf(b, "\nRoutes of the pieces of an iteration, over all workers\n")
	fmt.Fprintf(b, "  %-29s  %8s  %10s  %8s  %10s\n", "", "pushed", "bytes", "replied", "bytes")
	for way := range ways {
		if push, reply := pushed[way], replied[way]; push.pieces+reply.pieces > 0 {
			fmt.Fprintf(b, "  %-29s  %8d  %10s  %8d  %10s\n", way, push.pieces, metrics.Size(push.bytes), reply.pieces, metrics.Size(reply.bytes))
		}
	}
	if t.cfg.Device.Kind == "cuda" && t.cfg.Device.CUDAAwareMPI != configs.CUDAAwareOff {
		sent, received := 0, 0
		for w := range t.roles.Workers {
			push, reply := t.Direct(int32(w))
			sent, received = sent+countTrue(push), received+countTrue(reply)
		}
		fmt.Fprintf(b, "  of these from and to the memory of GPUs, if MPI reaches that: %d pushed, %d replied\n", sent, received)
	}
}

func countTrue(list []bool) (n int) {
	for _, yes := range list {
		if yes {
			n++
		}
	}
	return n
}
