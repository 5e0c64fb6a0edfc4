package verbs

import (
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
)

// abortRecorder is a transport that records the codes of Abort.
type abortRecorder struct {
	comm.Transport
	codes chan int
}

func (abortRecorder) Rank() int        { return 3 }
func (r abortRecorder) Abort(code int) { r.codes <- code }

// A rank that waits longer than stall.peer for the others to close exits with the code that all agreed on. With stall.peer 0 it
// waits without limit.
func TestARankThatCannotCloseExitsAfterTheTimeout(t *testing.T) {
	var said strings.Builder
	tr := abortRecorder{codes: make(chan int, 1)}
	cfg := &configs.Config{}
	cfg.Stall.Peer = time.Millisecond
	j := &job{input: &input{cfg: cfg}, warn: &said}
	j.abortAfterTimeout(tr, 75)
	if code := <-tr.codes; code != 75 || !strings.Contains(said.String(), "rank 3: the run is over, but not all ranks "+
		"have left within stall.peer 1ms; this rank exits with code 75") {
		t.Errorf("code %d, said %q", code, said.String())
	}
	cfg.Stall.Peer = 0
	if !j.abortAfterTimeout(tr, 75).Stop() {
		t.Error("without a limit the rank exits, too")
	}
}
