package runtime

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
)

// endsByItself runs a world that some rank must end with CodeStall, and returns the log.
func endsByItself(t *testing.T, set []string, change func(*Options)) string {
	t.Helper()
	var said lines
	_, errs := world(t, load(t, append(set, "train.stop={time: 1h}", "evaluate.every_epochs=0")...), 6, func(o *Options) {
		o.Warn = &said
		change(o)
	})
	for i, err := range errs {
		var aborted *comm.AbortError
		if !errors.As(err, &aborted) || aborted.Code != CodeStall {
			t.Errorf("rank %d: %v, want an abort with code %d", i, err, CodeStall)
		}
	}
	return said.String()
}

// A silent rank ends the run: the log names it, and every other rank prints its state.
func TestASilentRankEndsTheRun(t *testing.T) {
	for mute, name := range map[int]string{0: `rank 0, host here \(s0\)`, 3: `rank 3, host here \(w1\)`} {
		said := endsByItself(t, []string{"stall.peer=1s"}, func(o *Options) { o.testing.mute = o.Transport.Rank() == mute })
		if want := `stall: no sign of life for 1s, the limit of stall.peer, of ` + name +
			`: killed, stopped or cut off.* exit code 4`; !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("rank %d is mute, and nobody said %q:\n%s", mute, want, said)
		}
		if n := strings.Count(said, "state after"); n < 5 {
			t.Errorf("rank %d is mute, and %d ranks printed their states, want all that are heard:\n%s", mute, n, said)
		}
	}
}

// The rank that gives up has all ranks print their states, also if it is not rank 0.
func TestAStallHasAllStatesPrinted(t *testing.T) {
	for _, worker := range []int{0, 3} { // all other ranks wait for this worker, and one of them gives up
		said := endsByItself(t,
			[]string{fmt.Sprintf("faults=[{worker: %d, slow: {sleep: 30s}}]", worker), "stall={warn: 100ms, abort: 400ms}"}, func(o *Options) {})
		if !strings.Contains(said, "giving up after stall.abort 400ms") {
			t.Errorf("nobody says why:\n%s", said)
		}
		if n := strings.Count(said, "state after"); n != 6 {
			t.Errorf("%d states, want 6:\n%s", n, said)
		}
	}
}

// A run trains over a transport without heartbeats.
func TestRunsWithoutHeartbeats(t *testing.T) {
	ts := inproc.New(6, inproc.Options{})
	for i, inner := range ts {
		ts[i] = struct{ comm.Transport }{inner}
	}
	if _, errs := runOver(t, ts, load(t, "stall.peer=1s"), nil); errors.Join(errs...) != nil {
		t.Error(errs)
	}
}
