package runtime

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/comm"
	"fluentps/comm/inproc"
)

// Whatever a rank's own clock jumps over: it accuses nobody of a silence that is shorter than the limit, nor of time in which it
// did not run itself, and whoever is silent for good is found within the limit of time in which it ran.
func TestSilenceIsCountedWhileThisRankRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.IntRange(1, 12).Draw(t, "limit")) * time.Second
		const peers = 3
		v := newVigil(limit, peers, 0)
		var now, ran time.Duration // ran: since the start, without what no look can tell from a stop
		var last [peers]time.Duration
		lastRan := [peers]time.Duration{}
		for i := range peers { // until its first word each has ten times as long
			last[i], lastRan[i] = 9*limit, 9*limit
		}
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			step := time.Duration(rapid.SampledFrom([]int{250, 250, 251, 300, 499, 5000, 70000}).Draw(t, "ms")) * time.Millisecond
			listens := rapid.IntRange(0, 9).Draw(t, "listens") > 0
			now += step
			if listens {
				ran += min(step, 2*lookEvery)
				for i := range peers - 1 { // the last one never says anything
					if rapid.IntRange(0, 7).Draw(t, "beat") == 0 {
						v.heard(i)
						last[i], lastRan[i] = now-step, ran-min(step, 2*lookEvery)
					}
				}
			}
			paused := v.look(now, listens)
			if want := step >= pauseMin; (paused > 0) != want || want && paused != step {
				t.Fatalf("a step of %v was a pause of %v", step, paused)
			}
			lost := fmt.Sprint(v.lost())
			for i := range peers {
				accused := strings.Contains(lost, fmt.Sprint(i))
				if accused && now-last[i] < limit {
					t.Fatalf("peer %d accused after %v, the limit is %v", i, now-last[i], limit)
				}
				if want := ran-lastRan[i] >= limit; accused != want {
					t.Fatalf("peer %d silent for %v of this rank's time, accused: %t", i, ran-lastRan[i], accused)
				}
			}
		}
	})
}

// A rank that could not listen has nobody to accuse, and is told apart.
func TestARankThatCannotListenIsStuck(t *testing.T) {
	v := newVigil(time.Second, 1, 0)
	v.heard(0)
	now := time.Duration(0)
	for range 3 {
		now += lookEvery
		v.look(now, false)
	}
	if v.stuck() {
		t.Error("stuck before the limit")
	}
	now += lookEvery
	if v.look(now, false); !v.stuck() || len(v.lost()) > 0 {
		t.Errorf("stuck %t, accused %v after the limit", v.stuck(), v.lost())
	}
	now += lookEvery
	if v.look(now, true); v.stuck() {
		t.Error("still stuck after it listened")
	}
}

// Without a limit there is nothing to beat for; with one, several beats fit into it.
func TestBeatsFitIntoTheLimit(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 0, time.Second: 40, time.Minute: 3, time.Hour: 3} {
		v := newVigil(limit, 1, 0)
		beats := 0
		for now := time.Duration(0); now < 12*time.Second; now += 100 * time.Millisecond {
			v.look(now, true)
			if v.due() {
				beats++
			}
		}
		if limit == time.Second {
			want = 120 // at each look
		}
		if beats != want {
			t.Errorf("limit %v: %d beats in 12 s, want %d", limit, beats, want)
		}
	}
}

// endsByItself runs a world that somebody must end with CodeStall, and gives what was said.
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

// A rank of which nothing is heard ends the run: it is named, and every other rank says where it stands.
func TestASilentRankEndsTheRun(t *testing.T) {
	for mute, name := range map[int]string{0: `rank 0, host here \(s0\)`, 3: `rank 3, host here \(w1\)`} {
		said := endsByItself(t, []string{"stall.peer=1s"}, func(o *Options) { o.mute = o.Transport.Rank() == mute })
		if want := `stall: no sign of life for 1s, the limit of stall.peer, of ` + name + `: killed, stopped or cut off.* exit code 4`; !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("rank %d is mute, and nobody said %q:\n%s", mute, want, said)
		}
		if n := strings.Count(said, "state after"); n < 5 {
			t.Errorf("rank %d is mute, and %d ranks printed their states, want all that are heard:\n%s", mute, n, said)
		}
	}
}

// The rank that gives up has all ranks print their states, also where it is not rank 0.
func TestAStallHasAllStatesPrinted(t *testing.T) {
	for _, worker := range []int{0, 3} { // all others wait for it, and one of them gives up
		said := endsByItself(t, []string{fmt.Sprintf("faults=[{worker: %d, slow: {sleep: 30s}}]", worker), "stall={warn: 100ms, abort: 400ms}"}, func(o *Options) {})
		if !strings.Contains(said, "giving up after stall.abort 400ms") {
			t.Errorf("nobody says why:\n%s", said)
		}
		if n := strings.Count(said, "state after"); n != 6 {
			t.Errorf("%d states, want 6:\n%s", n, said)
		}
	}
}

// A transport without heartbeats is no reason not to train.
func TestRunsWithoutHeartbeats(t *testing.T) {
	ts := inproc.New(6, inproc.Options{})
	for i, inner := range ts {
		ts[i] = struct{ comm.Transport }{inner}
	}
	if _, errs := over(t, ts, load(t, "stall.peer=1s"), nil); errors.Join(errs...) != nil {
		t.Error(errs)
	}
}
