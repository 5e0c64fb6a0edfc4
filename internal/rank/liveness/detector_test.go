package liveness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However a rank's own clock jumps, the rank reports no peer for a silence shorter than the limit, nor for time in
// which it did not run itself. It finds a peer that stays silent within the limit of its own running time.
func TestSilenceIsCountedWhileThisRankRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.IntRange(1, 12).Draw(t, "limit")) * time.Second
		const peers = 3
		v := newDetector(limit, peers, 0)
		var now, ran time.Duration // ran: running time since the start, without the time that a poll cannot distinguish from a stop
		var last [peers]time.Duration
		lastRan := [peers]time.Duration{}
		for i := range peers { // before its first beat each peer has ten times as long
			last[i], lastRan[i] = 9*limit, 9*limit
		}
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			step := time.Duration(rapid.SampledFrom([]int{250, 250, 251, 300, 499, 5000, 70000}).Draw(t, "ms")) * time.Millisecond
			listens := rapid.IntRange(0, 9).Draw(t, "listens") > 0
			now += step
			if listens {
				ran += min(step, 2*pollEvery)
				for i := range peers - 1 { // the last one never beats
					if rapid.IntRange(0, 7).Draw(t, "beat") == 0 {
						v.heard(i)
						last[i], lastRan[i] = now-step, ran-min(step, 2*pollEvery)
					}
				}
			}
			paused := v.poll(now, listens)
			if want := step >= PauseMin; (paused > 0) != want || want && paused != step {
				t.Fatalf("a step of %v was a pause of %v", step, paused)
			}
			lost := fmt.Sprint(v.lost())
			for i := range peers {
				reported := strings.Contains(lost, fmt.Sprint(i))
				if reported && now-last[i] < limit {
					t.Fatalf("peer %d reported after %v, the limit is %v", i, now-last[i], limit)
				}
				if want := ran-lastRan[i] >= limit; reported != want {
					t.Fatalf("peer %d silent for %v of this rank's time, reported: %t", i, ran-lastRan[i], reported)
				}
			}
		}
	})
}

// A rank that could not listen reports no peer; it is stuck itself.
func TestARankThatCannotListenIsStuck(t *testing.T) {
	v := newDetector(time.Second, 1, 0)
	v.heard(0)
	now := time.Duration(0)
	for range 3 {
		now += pollEvery
		v.poll(now, false)
	}
	if v.stuck() {
		t.Error("stuck before the limit")
	}
	now += pollEvery
	if v.poll(now, false); !v.stuck() || len(v.lost()) > 0 {
		t.Errorf("stuck %t, reported %v after the limit", v.stuck(), v.lost())
	}
	now += pollEvery
	if v.poll(now, true); v.stuck() {
		t.Error("still stuck after it listened")
	}
}

// Without a limit a rank never beats; with one, several beats fit into it.
func TestBeatsFitIntoTheLimit(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 0, time.Second: 40, time.Minute: 3, time.Hour: 3} {
		v := newDetector(limit, 1, 0)
		beats := 0
		for now := time.Duration(0); now < 12*time.Second; now += 100 * time.Millisecond {
			v.poll(now, true)
			if v.due() {
				beats++
			}
		}
		if limit == time.Second {
			want = 120 // at each poll
		}
		if beats != want {
			t.Errorf("limit %v: %d beats in 12 s, want %d", limit, beats, want)
		}
	}
}
