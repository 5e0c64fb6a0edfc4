package scheme

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// rotationScript runs the scripts of r2sp. new may have servers=N and shards=N too; the events are
//
//	ready wK [at=3ms]               a push of the worker's next iteration is ready; blocked=1ms and queued=1ms say what it waited
//	push wK [sN] [samples=N] [at=]  it lands, of shard N or of all
//	turn wK [samples=N] [at=]       it lands, and for all shards the pull comes, and the reply leaves
//	want wK | sent wK               of all shards
//	alarm at=3ms
//	left wK | join wK
//
// The chart has one line per worker: its iterations, a | at its slot with a dot for each gap of the round, and what it
// does:
//
//	w0 c4 |..
//	w1 c3 .|. turn, ready, slot at 130ms
type rotationScript struct{ script }

func (s *rotationScript) command(t *testing.T, d *datadriven.TestData) string {
	if d.Cmd != "run" {
		return s.script.command(t, d)
	}
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		for _, ev := range s.events(t, d, line) {
			fmt.Fprintf(&b, "%v at %v\n", ev, ev.At)
			for _, decision := range s.rotation.Step(ev, nil) {
				fmt.Fprintf(&b, "  > %v\n", decision)
			}
			if what := s.rotation.clone().broken(); what != "" {
				t.Errorf("%s: %v", what, s.rotation)
			}
		}
		b.WriteString(drawRotation(s.rotation))
	}
	return b.String()
}

func (s *rotationScript) events(t *testing.T, d *datadriven.TestData, line string) (events []Event) {
	ev := Event{Parts: 1, Samples: 32}
	shards := s.rotation.shards
	words := strings.Fields(line)
	for _, word := range words[1:] {
		var err error
		switch text, timed := strings.CutPrefix(word, "at="); {
		case timed:
			s.at, err = time.ParseDuration(text)
		case strings.HasPrefix(word, "blocked="):
			ev.Blocked, err = time.ParseDuration(word[len("blocked="):])
		case strings.HasPrefix(word, "queued="):
			ev.Queued, err = time.ParseDuration(word[len("queued="):])
		case word[0] == 'w':
			_, err = fmt.Sscanf(word, "w%d", &ev.Worker)
		case strings.HasPrefix(word, "samples="):
			_, err = fmt.Sscanf(word, "samples=%d", &ev.Samples)
		default:
			var k int32
			_, err = fmt.Sscanf(word, "s%d", &k)
			shards = []int32{k}
		}
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
	}
	ev.Owner, ev.At = ev.Worker, s.at
	kinds := map[string][]EventKind{"ready": {Ready}, "push": {Pushed}, "turn": {Pushed, Wanted, Sent}, "want": {Wanted}, "sent": {Sent},
		"alarm": {Alarm}, "left": {Left}, "join": {Joined}}[words[0]]
	if kinds == nil {
		d.Fatalf(t, "%q is not an event", line)
	}
	for _, kind := range kinds {
		if ev.Kind = kind; kind != Pushed && kind != Wanted && kind != Sent {
			shards = shards[:1]
		}
		for _, shard := range shards {
			k := slices.Index(s.rotation.shards, shard)
			ev.Shard, ev.Iter = shard, s.rotation.clocks[k].clock[ev.Worker]
			if words[0] == "turn" && kind != Pushed {
				ev.Iter++
			}
			events = append(events, ev)
		}
	}
	return events
}

// drawRotation draws the state that String tells, so that a reader sees which worker may push when.
func drawRotation(r *rotation) string {
	var b strings.Builder
	for i := range r.workers {
		w := &r.workers[i]
		fmt.Fprintf(&b, "    w%d ", i)
		if w.left {
			b.WriteString("left\n")
			continue
		}
		line := fmt.Sprintf("c%d ", r.clockOf(int32(i)))
		if r.period > 0 && w.rank >= 0 {
			dots := []byte(strings.Repeat(".", int(r.slotCount)))
			dots[w.rank] = '|'
			line += string(dots) + " "
		}
		var does []string
		if r.turn == int32(i) {
			does = append(does, "turn")
		}
		if r.turn == int32(i) && r.granted {
			does = append(does, "granted")
		}
		if w.ready {
			does = append(does, "ready")
		}
		if w.ready && r.slot(w) > r.now {
			does = append(does, fmt.Sprintf("slot at %v", r.slot(w)))
		}
		if w.suspended {
			does = append(does, "out")
		}
		b.WriteString(strings.TrimRight(line+strings.Join(does, ", "), " ") + "\n")
	}
	return b.String() + "    " + r.String() + "\n"
}
