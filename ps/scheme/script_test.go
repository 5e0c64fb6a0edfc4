package scheme

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fluentps/internal/policy/work/code"
)

// TestScripts runs testdata/<scheme>/*.txt; -rewrite regenerates their output. The commands:
//
//	new workers=N [stragglers=S code=KIND deadline=D private] [follows] [start=V] [clocks=(5,3,-1)] [fold=rank|arrival]
//	          [weight=X] [seed=S] [KEY=VALUE of the scheme]
//	run            one event per line of input; each prints the event, its decisions and a chart
//	  push wK [iC] [samples=N] [at=3s]    by default the next iteration, 32 samples, the time of the last event
//	          [inf=X] [norms=X/Y]         NormInf; Norm2 and NormW
//	  want wK [cC] [at=3s]                by default its clock
//	  step wK [samples=N] [at=3s]         push, then want; with private parts, the second push
//	  first wK [samples=N] [at=3s]        with private parts, the first push
//	  left wK | join wK
//	  waits wK | waited wK                asked with the newest version: it waits elsewhere, or goes on
//	  alarm at=3s                         the time of a WakeAt has come
//	  closed iC [wK...]                   with follows: the contributors that the leading shard names
//
// The chart has one line per worker: its clock, a # for each iteration it leads v, and a ] where the bound is:
//
//	w0 c4 ##]# delayed     leads by 3, one beyond a bound of 2
//	w1 c1 ..]              at v
func TestScripts(t *testing.T) {
	for _, name := range All.Names() {
		t.Run(name, func(t *testing.T) {
			found := false
			datadriven.Walk(t, "testdata/"+name, func(t *testing.T, path string) {
				found = true
				if e, _ := All.Lookup(name); e.Scope == PerServer {
					datadriven.RunTest(t, path, (&rotationScript{script: script{scheme: name}}).command)
					return
				}
				s := script{scheme: name}
				datadriven.RunTest(t, path, s.command)
			})
			if !found {
				t.Errorf("no script in testdata/%s", name)
			}
		})
	}
}

type script struct {
	scheme   string
	made     Scheme
	gate     *gate     // of made
	rotation *rotation // instead of the gate
	at       time.Duration
	commit   int64           // commits of the shard, from start= on
	seen     map[int32]int64 // commits at the last reply to a worker
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		return s.make(t, d)
	case "run":
		var b strings.Builder
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			for _, ev := range s.events(t, d, line) {
				fmt.Fprintf(&b, "%v\n", ev)
				if ev.Seen = s.seen[ev.Worker]; ev.Kind == WaitsElsewhere {
					ev.Seen = s.commit
				}
				for _, decision := range s.made.Step(ev, nil) {
					fmt.Fprintf(&b, "  > %v\n", decision)
					switch decision.Kind {
					case Commit:
						s.commit++
					case Reply:
						s.seen[decision.Worker] = s.commit
					}
				}
				b.WriteString(s.chart())
				s.invariants(t)
			}
		}
		return b.String()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (s *script) make(t *testing.T, d *datadriven.TestData) string {
	e, _ := All.Lookup(s.scheme)
	env := Env{Shards: []int32{0}, Servers: 1}
	common := Common{Fold: e.Fold}
	params := e.Params()
	seed, shards := uint64(1), int32(1)
	var spec code.Spec
	var after time.Duration
	private := false
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "workers":
			arg.Scan(t, 0, &env.Workers)
		case "start":
			arg.Scan(t, 0, &env.Start)
		case "clocks":
			for k := range arg.Vals {
				var c int64
				arg.Scan(t, k, &c)
				env.Clocks = append(env.Clocks, c)
			}
		case "fold":
			common.Fold = FoldOrder(arg.Vals[0])
		case "weight":
			_, err := fmt.Sscan(arg.Vals[0], &common.Weight)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
		case "stragglers":
			arg.Scan(t, 0, &spec.Stragglers)
		case "code":
			spec.Kind = code.Kind(arg.Vals[0])
		case "deadline":
			after, _ = time.ParseDuration(arg.Vals[0])
		case "private":
			private = true
		case "servers":
			arg.Scan(t, 0, &env.Servers)
		case "shards":
			arg.Scan(t, 0, &shards)
		case "follows":
			env.Follows = true
		case "seed":
			arg.Scan(t, 0, &seed)
		default:
			if err := SetKey(params, arg.Key, arg.Vals[0]); err != nil {
				d.Fatalf(t, "%v", err)
			}
		}
	}
	for k := int32(1); k < shards; k++ {
		env.Shards = append(env.Shards, k)
	}
	env.Seed = seed
	if spec.Kind != "" {
		c := NewTestCode(t, spec, env.Workers, after)
		c.IsPrivate = private
		env.Code = c
	}
	s.at, s.commit, s.seen = 0, env.Start, map[int32]int64{}
	made, err := e.New(env, common, params)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	s.made = made
	switch m := made.(type) {
	case *rotation:
		s.rotation = m
		return drawRotation(m)
	case *gate:
		s.gate = m
	case *publisher:
		s.gate = m.gate
	}
	return s.chart()
}

func (s *script) events(t *testing.T, d *datadriven.TestData, line string) []Event {
	words := strings.Fields(line)
	if len(words) < 2 {
		d.Fatalf(t, "%q is not an event", line)
	}
	var ev Event
	if words[0] == "closed" {
		return s.closed(t, d, line)
	}
	if words[0] == "alarm" {
		var err error
		if s.at, err = time.ParseDuration(strings.TrimPrefix(words[1], "at=")); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		return []Event{{Kind: Alarm, At: s.at}}
	}
	if _, err := fmt.Sscanf(words[1], "w%d", &ev.Worker); err != nil {
		d.Fatalf(t, "%q: %v", line, err)
	}
	ev.Owner, ev.Parts, ev.Samples = ev.Worker, s.gate.coded.parts(), 32
	if ev.Parts > 1 {
		ev.Samples = 24
	}
	ev.Iter = s.gate.clock[ev.Worker]
	for _, word := range words[2:] {
		if text, ok := strings.CutPrefix(word, "at="); ok {
			var err error
			if s.at, err = time.ParseDuration(text); err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			continue
		}
		if n, _ := fmt.Sscanf(word, "inf=%g", &ev.NormInf); n == 1 {
			continue
		}
		if n, _ := fmt.Sscanf(word, "norms=%g/%g", &ev.Norm2, &ev.NormW); n == 2 {
			continue
		}
		form, into := "samples=%d", &ev.Samples
		if word[0] == 'i' || word[0] == 'c' {
			form, into = word[:1]+"%d", &ev.Iter
		}
		if _, err := fmt.Sscanf(word, form, into); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
	}
	ev.At = s.at
	kinds := map[string][]EventKind{
		"push": {Pushed}, "first": {Pushed}, "want": {Wanted}, "step": {Pushed, Wanted}, "left": {Left}, "join": {Joined},
		"waits": {WaitsElsewhere}, "waited": {WaitedElsewhere},
	}[words[0]]
	if kinds == nil {
		d.Fatalf(t, "%q is not an event", line)
	}
	var events []Event
	for _, kind := range kinds {
		ev.Kind = kind
		if ev.Part = 0; kind == Pushed && words[0] != "first" {
			ev.Part = ev.Parts - 1
		}
		events = append(events, ev)
		ev.Iter++
	}
	return events
}

// closed reads the contributors of an iteration that the leading shard closed.
func (s *script) closed(t *testing.T, d *datadriven.TestData, line string) (events []Event) {
	words := strings.Fields(line)
	ev := Event{Kind: Closed, Worker: NoWorker, Parts: int32(len(words) - 2), At: s.at}
	if _, err := fmt.Sscanf(words[1], "i%d", &ev.Iter); err != nil {
		d.Fatalf(t, "%q: %v", line, err)
	}
	for _, word := range words[2:] {
		if _, err := fmt.Sscanf(word, "w%d", &ev.Worker); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		events = append(events, ev)
	}
	if events == nil {
		events = []Event{ev}
	}
	return events
}

// invariants checks that the counts of the gate are those that restoring it would derive.
func (s *script) invariants(t *testing.T) {
	again := *s.gate
	if what := again.broken(); what != "" {
		t.Errorf("%s: %v", what, s.gate)
	}
	if r := s.gate.rounds; r != nil {
		arrivals, missing := r.arrivals, r.missing
		if what := r.broken(&again); what != "" || r.arrivals != arrivals || r.missing != missing {
			t.Errorf("%d arrived and %d are missing; counted again %d and %d %s: %v", arrivals, missing, r.arrivals, r.missing, what, s.gate)
		}
	}
	if again.live != s.gate.live || again.live > 0 && !again.follows && again.atMin != s.gate.atMin || !again.follows &&
		again.atV != s.gate.atV || !slices.Equal(again.hasParked, s.gate.hasParked) {
		t.Errorf("live %d, at v %d and %d, waits %v; counted again %d, %d and %d, %v: %v", s.gate.live, s.gate.atMin,
			s.gate.atV, s.gate.hasParked,
			again.live, again.atMin, again.atV, again.hasParked, s.gate)
	}
}

// inTransit is the value of a worker's updates in transit with the bound on it, its push that waits, and the version
// that it computes on.
func inTransit(g *gate, w int32) string {
	l := g.transit
	text := " waits"
	if l.reads[w] != idle {
		text = fmt.Sprintf(" computes on version %d", l.reads[w])
	}
	sum := 0.0
	for _, u := range l.inTransit(w) {
		sum += l.weight * u.norm
	}
	if sum > 0 {
		text += fmt.Sprintf(", in transit %.3g of %.3g", sum, l.keys.V0/math.Sqrt(float64(g.v+1)))
	}
	for _, h := range l.held {
		if h.worker == w {
			text += fmt.Sprintf(", holds back %.3g", l.weight*h.norm)
		}
	}
	return text
}

// chart draws the state that String tells, so that a reader sees the gap between the workers.
func (s *script) chart() string {
	g := s.gate
	var b strings.Builder
	for w, c := range g.clock {
		fmt.Fprintf(&b, "    w%d ", w)
		if g.left[w] {
			b.WriteString("left\n")
			continue
		}
		bar := strings.Repeat("#", int(max(0, c-g.v)))
		if bound := g.limit.bound(c); bound != math.MaxInt64 {
			s := int(bound)
			bar += strings.Repeat(".", max(0, s-len(bar)))
			bar = bar[:s] + "]" + bar[s:]
		}
		line := fmt.Sprintf("c%d %s", c, bar)
		if c < g.v {
			line += fmt.Sprintf(" behind by %d", g.v-c)
		}
		if g.transit != nil {
			line += inTransit(g, int32(w))
		}
		if g.hasParked[w] {
			line += " delayed"
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String() + "    " + s.made.String() + "\n"
}
