package work

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// dumbRun is a coordinated run once more: it walks from plan to plan and keeps everything it ever saw.
type dumbRun struct {
	policy Policy
	plans  []Plan
	starts []int64
}

// Workers report in any order, leave at any time and are resumed at any time. All that are left have the same
// assignment, it begins where the one before ended, it is that of the dumb run, and whoever has reported gets an
// answer: nobody waits for ever.
func TestRandomRunsAreCoordinated(t *testing.T) {
	for _, name := range []string{"dbs", "r2sp_batch"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				e, costs := envOf(t)
				s := Defaults()
				s.Policy = name
				twin := &dumbRun{}
				twin.policy, _ = New(s, e)
				twin.plans, twin.starts = append(twin.plans, twin.policy.Start()), []int64{0}
				c, err := NewCoordinator(s, e, nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				left, reported := make([]bool, e.Workers), make([]bool, e.Workers)
				for range rapid.IntRange(1, 60).Draw(t, "events") {
					before := *c.Current()
					w := rapid.IntRange(0, e.Workers-1).Draw(t, "worker")
					plan := twin.plans[len(twin.plans)-1]
					dealt := false
					switch rapid.IntRange(0, 12).Draw(t, "what") {
					case 0:
						left[w] = true
						dealt = c.Step(Event{Kind: Left, Worker: w}) == Dealt
					case 1: // it resumes from a checkpoint: those that had reported report again
						if slices.Contains(left, true) { // no run resumes after a loss: the job has died
							continue
						}
						again, err := NewCoordinator(s, e, c.Save(), 1<<40)
						if err != nil {
							t.Fatal(err)
						}
						c = again
						clear(reported)
					default:
						if left[w] || reported[w] {
							continue
						}
						reported[w] = true
						dealt = c.Step(Event{Kind: Reported, Worker: w, Until: before.Until, Measured: measure(plan, e, costs)[w]}) == Dealt
					}
					complete := true
					for w := range left {
						complete = complete && (left[w] || reported[w])
					}
					if !slices.Contains(left, false) {
						if dealt {
							t.Fatal("an assignment was dealt to nobody")
						}
						return
					}
					if dealt != complete {
						t.Fatalf("left %v, reported %v: dealt %t", left, reported, dealt)
					}
					if !dealt {
						continue
					}
					clear(reported)
					measured := measure(plan, e, costs)
					for w := range left {
						if left[w] {
							measured[w] = Measured{}
						}
					}
					twin.starts = append(twin.starts, before.Until)
					twin.plans = append(twin.plans, twin.policy.Step(measured))
					now, want := c.Current(), twin.plans[len(twin.plans)-1]
					if !slices.Equal(now.Batches, want.Batches) || now.Until != before.Until+want.Iterations || now.Epoch != want.Epoch {
						t.Fatalf("dealt %+v, want %+v from iteration %d", now, want, before.Until)
					}
					same := now.Number == before.Number
					if same != (!want.Epoch && slices.Equal(now.Batches, before.Batches)) || same && now.From != before.From ||
						!same && (now.From != before.Until || now.Number != before.Number+1) {
						t.Fatalf("after %+v comes %+v", before, now)
					}
				}
			})
		})
	}
}

// A replay takes the measurements of its record, whatever is reported.
func TestAReplayIgnoresWhatIsMeasured(t *testing.T) {
	e := Env{Workers: 2, Batch: 30, Max: 30, Rows: 60}
	deal := func(replay Record) []int {
		c, err := NewCoordinator(Spec{Policy: "dbs"}, e, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.Replay = replay
		for w, took := range []time.Duration{time.Second, 2 * time.Second} {
			c.Step(Event{Kind: Reported, Worker: w, Until: 2, Measured: Measured{Iterations: 2, Samples: 30, Took: took, Median: took / 2}})
		}
		return c.Current().Batches
	}
	if got := deal(nil); !reflect.DeepEqual(got, []int{20, 10}) {
		t.Errorf("dealt %v", got)
	}
	same := Measured{Iterations: 2, Samples: 30, Took: time.Second}
	if got := deal(Record{2: {Measured: []Measured{same, same}}}); !reflect.DeepEqual(got, []int{15, 15}) {
		t.Errorf("replayed %v", got)
	}
}

func TestReportsThatCannotBeArePanics(t *testing.T) {
	e := Env{Workers: 2, Batch: 30, Max: 30, Rows: 60}
	for name, events := range map[string][]Event{
		"twice":           {{Worker: 0, Until: 2, Measured: Measured{Iterations: 2}}, {Worker: 0, Until: 2, Measured: Measured{Iterations: 2}}},
		"another end":     {{Worker: 0, Until: 3, Measured: Measured{Iterations: 2}}},
		"after it leaves": {{Kind: Left, Worker: 0}, {Worker: 0, Until: 2}},
	} {
		c, err := NewCoordinator(Spec{Policy: "dbs"}, e, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			for _, ev := range events {
				c.Step(ev)
			}
		}()
	}
	ok := Saved{Policy: "dbs", Env: e, Assignment: Assignment{Until: 2, Batches: []int{20, 10}, Epoch: true}}
	if _, err := NewCoordinator(Spec{Policy: "dbs"}, e, &ok, 0); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Saved){
		"a worker":          func(s *Saved) { s.Batches = []int{30} },
		"no sample":         func(s *Saved) { s.Batches = []int{30, 0} },
		"other samples":     func(s *Saved) { s.Batches = []int{20, 11} },
		"above the limit":   func(s *Saved) { s.Batches = []int{31, -1} },
		"before the run":    func(s *Saved) { s.From = -1 },
		"no iteration":      func(s *Saved) { s.From = 2 },
		"a negative number": func(s *Saved) { s.Number = -1 },
		"half an epoch":     func(s *Saved) { s.Until = 1 },
	} {
		s := ok
		if change(&s); s.Env != e {
			t.Fatal(name)
		}
		if _, err := NewCoordinator(Spec{Policy: "dbs"}, e, &s, 0); err == nil {
			t.Errorf("%s: %+v was accepted", name, s)
		}
	}
}

// A run of other workers, or of another policy, begins with a first plan at the iteration at which it resumes, under a number of its own.
func TestAnotherPolicyBeginsAnew(t *testing.T) {
	e := Env{Workers: 2, Batch: 30, Max: 30, Rows: 60}
	from := &Saved{Policy: "dbs", Env: e, Assignment: Assignment{Number: 4, From: 8, Until: 10, Batches: []int{20, 10}, Epoch: true}}
	more := e
	more.Workers = 3
	for name, c := range map[string]struct {
		policy string
		env    Env
	}{"another policy": {"r2sp_batch", e}, "other workers": {"dbs", more}} {
		s := Defaults()
		s.Policy = c.policy
		got, err := NewCoordinator(s, c.env, from, 9)
		if err != nil {
			t.Fatal(err)
		}
		if a := got.Current(); a.Number != 5 || a.From != 9 || a.Until <= 9 || slices.Max(a.Batches) != 30/c.env.Workers {
			t.Errorf("%s: begins with %+v", name, a)
		}
	}
}

// When a run ends, whoever waits for a batch is told, once, that none follows, and no plan is dealt any more.
func TestARunThatEndsDealsNoMore(t *testing.T) {
	e := Env{Workers: 2, Batch: 30, Max: 30, Rows: 60}
	c, err := NewCoordinator(Spec{Policy: "dbs"}, e, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	report := func(w int) Event {
		return Event{Worker: w, Until: 2, Measured: Measured{Iterations: 2, Samples: 30, Took: time.Second}}
	}
	for i, step := range []struct {
		e    Event
		want Answer
	}{{report(0), Nothing}, {Event{Kind: Ending, Worker: 1}, NoMore}, {Event{Kind: Ending, Worker: 0}, Nothing}, {report(1), Nothing}} {
		if got := c.Step(step.e); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
