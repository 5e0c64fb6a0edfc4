package tasks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

var update = flag.Bool("update", false, "write the scripts in testdata anew")

// drawing is the script of a run: the messages in order, and what each worker computes in each half millisecond.
type drawing struct {
	messages strings.Builder
	rows     [][]byte
}

const cell = 500 * time.Microsecond

func (d *drawing) of(m *model) {
	d.rows = make([][]byte, len(m.batches))
	m.said = func(now time.Duration, from, to int32, msg wire.Header) {
		if msg.Flags != wire.Gone {
			fmt.Fprintf(&d.messages, "%8.2f ms  worker %d -> %d  %s\n", float64(now)/1e6, from, to, messageText(m.spec.Policy, msg))
		}
	}
	m.worked = func(from, to time.Duration, by int32, t core.Task) {
		for i := int((from + cell/2) / cell); i < int((to+cell/2)/cell); i++ {
			for len(d.rows[by]) <= i {
				d.rows[by] = append(d.rows[by], '.')
			}
			d.rows[by][i] = byte('0' + t.Owner)
			if t.Owner == by && t.Part > 0 {
				d.rows[by][i] = 'b'
			}
		}
		if t.To > t.From {
			fmt.Fprintf(&d.messages, "%8.2f ms  worker %d       computes samples %d to %d of worker %d's iteration %d\n",
				float64(from)/1e6, by, t.From, t.To-1, t.Owner, t.Iter)
		}
	}
}

func (d *drawing) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Each column is half a millisecond: whose sample the worker computes; b: its own, which came back.\n\n")
	for w, row := range d.rows {
		fmt.Fprintf(&s, "worker %d  %s\n", w, row)
	}
	return s.String() + "\n" + d.messages.String()
}

// messageText is what a message says.
func messageText(policy string, m wire.Header) string {
	about := fmt.Sprintf("part %d of iteration %d", m.Part, m.Iter)
	switch m.Flags {
	case give:
		return fmt.Sprintf("give %s: samples %d to %d", about, m.Samples, m.Correct-1)
	case begun, done, recall, yours:
		return chunkKinds[m.Flags] + " " + about
	case landed:
		return "landed: the worker leaves"
	case told: // or idle
		if policy == "flexrr" {
			return fmt.Sprintf("told: %.2f of iteration %d is begun", m.Loss, m.Iter)
		}
		return fmt.Sprintf("idle in iteration %d, after %.2f ms, %.0f samples a second", m.Iter, float64(m.Blocked)/1e6, m.Loss)
	case offer:
		return fmt.Sprintf("offer of iteration %d: %d samples have not begun; it would take %.2f ms, at %.0f samples a "+
			"second", m.Iter, m.Samples, float64(m.Blocked)/1e6, m.Loss) +
			map[bool]string{true: "; the answer to take"}[m.Part == 1]
	case thread:
		return fmt.Sprintf("one of its threads, at the start of iteration %d", m.Iter)
	case take:
		return fmt.Sprintf("take %d samples of iteration %d", m.Samples, m.Iter)
	}
	panic(fmt.Sprintf("kind %d", m.Flags))
}

// One of three workers is three times slower: an iteration or two of each policy, drawn.
func TestOneIterationDrawn(t *testing.T) {
	for _, c := range []struct {
		name       string
		iterations int64
		set        func(*work.Spec)
	}{
		{"flexrr-chunks", 1, func(s *work.Spec) { s.Policy, s.Help.First, s.Help.Next = "flexrr", 0.125, 0.125 }},
		{"epsp", 2, func(s *work.Spec) { s.Policy = "epsp" }},
		{"epsp-threads", 3, func(s *work.Spec) { s.Policy, s.ThreadsMax = "epsp", 4 }},
		{"flexrr-one-request", 1, func(s *work.Spec) { s.Policy, s.Help.First, s.Help.Helpers = "flexrr", 0, 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := work.Defaults()
			s.Micro = 2
			c.set(&s)
			m := steady(t, s, 16, c.iterations, []float64{1, 3, 1})
			var d drawing
			d.of(m)
			m.run(10_000)
			got, path := d.String(), filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
