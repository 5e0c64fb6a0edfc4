package local

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write the answers in testdata anew")

// script is a file of testdata: what a policy is made from, and what a worker tells it, round by round, with the answers.
type script struct {
	Spec    Spec
	Workers int
	WarmUp  int64             `yaml:"warm_up"`
	Rates   []map[int]float64 // of each: from a step on, the learning rate
	Rounds  []told
}

// told is Now. A key that is left out is unknown.
type told struct {
	Step  int64
	Left  *int64
	Loss  *float64
	Share *float64
}

func (n *told) now() Now {
	now := Now{Step: n.Step, Left: -1, Loss: math.NaN(), Share: 1}
	if n.Left != nil {
		now.Left = *n.Left
	}
	if n.Loss != nil {
		now.Loss = *n.Loss
	}
	if n.Share != nil {
		now.Share = *n.Share
	}
	return now
}

func (s *script) env() Env {
	return Env{Workers: s.Workers, WarmUp: s.WarmUp, Rate: func(step float64) (rate float64) {
		for _, from := range s.Rates {
			for at, r := range from {
				if step >= float64(at) {
					rate = r
				}
			}
		}
		return rate
	}}
}

const answer = "  # -> "

// Each script is a dialogue: a policy gives the rounds that its file says.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := script{Spec: Defaults(), Workers: 4}
			if err := yaml.Unmarshal(src, &s); err != nil {
				t.Fatal(err)
			}
			if of, _, _ := strings.Cut(name, "-"); s.Spec.Policy != of && s.Spec.Period.Name != of {
				t.Fatalf("it scripts policy %s and period %s", s.Spec.Policy, s.Spec.Period.Name)
			}
			p, err := New(s.Spec, s.env())
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			k := 0
			for line := range strings.Lines(string(src)) {
				line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), answer)
				if strings.HasPrefix(line, "  - {step:") {
					line = strings.TrimRight(line, " ") + answer + roundText(p.Round(s.Rounds[k].now()))
					k++
				}
				out.WriteString(line + "\n")
			}
			if k == 0 || k != len(s.Rounds) {
				t.Fatalf("%d rounds, and %d lines that begin with `  - {step:`", len(s.Rounds), k)
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if out.String() != string(src) {
				t.Errorf("got\n%s\nwant\n%s\ngo test ./internal/policy/local -update writes it anew", &out, src)
			}
		})
	}
	for _, name := range append(All.Names()[1:], Periods.Names()...) {
		if !seen[name] {
			t.Errorf("%s has no script in testdata", name)
		}
	}
}

func roundText(r Round) string {
	text := fmt.Sprintf("steps %d, ahead %d", r.Steps, r.Ahead)
	if r.Open {
		text += ", open"
	}
	if r.Votes {
		text += ", votes"
	}
	return text
}
