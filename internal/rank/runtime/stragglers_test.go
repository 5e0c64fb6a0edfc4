package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics/timings"
)

// A worker sleeps for at least half of what is drawn for an iteration, not at all if nothing is drawn, and never less in all up to an
// iteration than what was drawn up to it: an overslept time shortens later sleeps, and nothing else does. The draws are those
// that a simulation makes, too, since both take them from Config.Stragglers.
func TestStragglersSleepWhatIsDrawn(t *testing.T) {
	set := []string{"seed=9", "cluster.servers=1", "train.stop={updates: 30}", `sync=[{match: "*", scheme: bsp}]`,
		`faults=[{worker: 0, slow: {kind: two_state, sleep: 2ms, enter: 0.3, leave: 0.3}}, {worker: "*", slow: {kind: fluentps, every: 2, sleep: 2ms, spread: 1}}, ` +
			`{worker: 1, slow: {kind: exponential, sleep: 1ms, from: 5}}, {worker: 3, pause: {at: 3ms, for: 20ms}}]`}
	_, all := recorded(t, 5, nil, set...)
	c := load(t, set...)
	paused := 0
	for w, of := range all {
		slow, _, err := c.Stragglers(w, len(all), 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		var asked, slept time.Duration
		sleeps := 0
		for _, it := range of {
			drawn := slow.Within(it.Iter).Sleep + slow.Before(it.Iter)
			if w == 3 && it.Injected >= 20*time.Millisecond {
				paused++
				continue
			}
			asked, slept = asked+drawn, slept+it.Injected
			switch {
			case drawn == 0 && it.Injected != 0, it.Injected < drawn/2, slept < asked:
				t.Errorf("worker %d, iteration %d: slept %v, %v drawn; so far %v of %v", w, it.Iter, it.Injected, drawn, slept, asked)
			case drawn > 0:
				sleeps++
			}
		}
		if want := w < 3; (sleeps > 3) != want {
			t.Errorf("worker %d slept in %d of %d iterations", w, sleeps, len(of))
		}
	}
	if paused != 1 {
		t.Errorf("worker 3 paused in %d iterations, want 1", paused)
	}
}

// A run replays the iterations of another: up to each, it computes as long as there, but for what
// one of them computes by itself. A file that lacks a worker is refused.
func TestARunReplaysATrace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, timings.FileName)
	rows := string(timings.Header()) + "0,0,0,0.004,0.001,0,0,0,8\n0,1,0,0.002,0,0.001,0,0,8\n1,0,0,0.001,0,0,0,0,8\n"
	if err := os.WriteFile(path, []byte(rows), 0o666); err != nil {
		t.Fatal(err)
	}
	set := []string{"cluster.servers=1", "train.stop={updates: 6}", `faults=[{worker: "*", slow: {kind: trace, path: ` + path + "}}]"}
	_, all := recorded(t, 3, nil, set...)
	for w, of := range all {
		var want, took, own time.Duration
		for _, it := range of {
			recorded := []time.Duration{2 * time.Millisecond, time.Millisecond}[w]
			if w == 0 && it.Iter == 0 {
				recorded = 3 * time.Millisecond
			}
			want, took = want+recorded, took+it.Compute
			own = max(own, it.Compute-it.Injected) // the sleep comes before all of it is known, and goes by that of the last iterations
			if took < want-own || it.Compute < recorded/2-own {
				t.Errorf("worker %d, iteration %d: %v of computing, recorded %v; so far %v of %v", w, it.Iter, it.Compute, recorded, took, want)
			}
		}
	}
	if _, errs := world(t, load(t, set...), 4, nil); errs[0] == nil ||
		!strings.Contains(errs[0].Error(), "has the times of 2 workers, but 3 compute") {
		t.Error(errs[0])
	}
}
