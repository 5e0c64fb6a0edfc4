package liveness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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
			if want := step >= PauseMin; (paused > 0) != want || want && paused != step {
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
