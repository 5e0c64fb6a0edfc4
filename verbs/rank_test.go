package verbs

import (
	"strings"
	"testing"
	"time"

	"fluentps/comm"
	"fluentps/configs"
)

// leaving is a transport of which only the end is looked at.
type leaving struct {
	comm.Transport
	codes chan int
}

func (leaving) Rank() int        { return 3 }
func (l leaving) Abort(code int) { l.codes <- code }

// Ranks that cannot take leave of each other leave all the same, with the code that they agreed on; not where
// stall.peer says never.
func TestAnEndThatDoesNotComeIsMade(t *testing.T) {
	var said strings.Builder
	tr := leaving{codes: make(chan int, 1)}
	cfg := &configs.Config{}
	cfg.Stall.Peer = time.Millisecond
	j := &job{input: &input{cfg: cfg}, warn: &said}
	j.endBy(tr, 75)
	if code := <-tr.codes; code != 75 || !strings.Contains(said.String(), "rank 3: the run is over, but not all ranks have left within stall.peer 1ms; leaving with code 75") {
		t.Errorf("code %d, said %q", code, said.String())
	}
	cfg.Stall.Peer = 0
	if !j.endBy(tr, 75).Stop() {
		t.Error("without a limit the end is made, too")
	}
}
