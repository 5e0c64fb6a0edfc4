package commtest

import (
	"errors"
	"fmt"
	"testing"

	"fluentps/internal/comm"
)

// Abort runs the cases in which one rank ends the world, each in a world of its own. Over MPI they would end the test.
func Abort(t *testing.T, mk func(t *testing.T, n int) []comm.Transport) {
	for _, n := range []int{1, 2, 5} {
		for _, where := range []string{"drive", "barrier", "handler"} {
			t.Run(fmt.Sprintf("%s/ranks=%d", where, n), func(t *testing.T) {
				onAll(t, mk(t, n), func(t testing.TB, tr comm.Transport) { abort(t, tr, where) })
			})
		}
	}
}

func abort(t testing.TB, tr comm.Transport, where string) {
	r := begin(t, tr)
	last := r.n - 1
	// Every rank has operations in flight, and frees their memory right after the abort.
	b, err := r.Alloc(1 << 20)
	if err != nil {
		t.Fatalf("Alloc: %v", err)
	}
	r.Isend(comm.Peer((r.me+1)%r.n), comm.Data, 1, b, 0, b.Len(), nil)
	r.Irecv(comm.AnyPeer, comm.Data, 2, b, 0, b.Len(), func(d comm.Done) { t.Errorf("received a message that no rank sent: %+v", d) })
	if r.me == last {
		switch where {
		case "handler":
			r.Post(func() { r.Abort(7) })
		default:
			go r.Abort(7)
		}
	}
	if where == "barrier" && r.me != last {
		err = r.Barrier()
	} else {
		err = r.Drive(func() bool { return false })
	}
	b.Free()
	for range 2 {
		var a *comm.AbortError
		if !errors.As(err, &a) || a.Rank != last || a.Code != 7 {
			t.Errorf("after Abort(7) on rank %d: %v", last, err)
		}
		err = r.Barrier()
	}
	r.Tick()
	if err := r.Close(); err == nil {
		t.Errorf("Close of an aborted world succeeded")
	}
	if err := r.Close(); err == nil {
		t.Errorf("second Close succeeded")
	}
}
