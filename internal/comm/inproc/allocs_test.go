package inproc

import (
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/commtest"
)

func TestMessagesDoNotAllocate(t *testing.T) {
	if comm.Invariants {
		t.Skip("this build makes a new Buf for each Alloc")
	}
	commtest.Run(t, []commtest.Case{commtest.Allocations()}, newWorld, 2)
}
