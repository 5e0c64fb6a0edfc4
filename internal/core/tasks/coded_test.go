package tasks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
	"fluentps/internal/policy/work/code"
)

func codedSpec(kind string, stragglers int) work.Spec {
	s := work.Defaults()
	s.Policy, s.Code.Kind, s.Code.Stragglers = work.Coded, kind, stragglers
	return s
}

// withAlpha is a spec whose workers push a private part first.
func withAlpha(s work.Spec, alpha float64) work.Spec {
	s.Code.Alpha = alpha
	return s
}

// What one worker does in three iterations: the first is closed when it has done all, the second at once, the third after a task.
func TestCodedScript(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		kind          string
		me            int32
		n, stragglers int
		alpha         float64
	}{{"cyclic", 3, 5, 2, 0}, {"fractional", 3, 6, 2, 0}, {"auto", 1, 4, 0, 0}, {"cyclic", 3, 5, 2, 3}} {
		fmt.Fprintf(&b, "worker %d of %d, %s, %d stragglers", c.me, c.n, c.kind, c.stragglers)
		if c.alpha > 0 {
			fmt.Fprintf(&b, " that take at most %g times as long", c.alpha)
		}
		b.WriteByte('\n')
		b.WriteString(script(New(withAlpha(codedSpec(c.kind, c.stragglers), c.alpha),
			Env{Me: c.me, Batches: slices.Repeat([]int{8}, c.n)}), c.me, []int{-1, 0, 1}))
		b.WriteByte('\n')
	}
	file := filepath.Join("testdata", "coded.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v; got\n%swant\n%s", err, b.String(), want)
	}
}

// A worker computes the coded samples of each of its partitions once and pushes their sum once, for itself and last;
// with alpha, before that its private samples. So of its own batch it computes each sample once. After it was
// answered it begins nothing.
func TestCodedPushesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "workers")
		s := rapid.IntRange(0, n-1).Draw(t, "stragglers")
		me := rapid.Int32Range(0, int32(n-1)).Draw(t, "me")
		batches := rapid.SliceOfN(rapid.IntRange(4, 40), n, n).Draw(t, "batches")
		alpha, private := 0.0, make([]int32, n)
		if s > 0 && rapid.Bool().Draw(t, "private parts") {
			alpha = rapid.Float64Range(1.1, 4).Draw(t, "alpha")
			for j, b := range batches {
				private[j] = int32(code.Private(b, s, alpha))
			}
		}
		p := New(withAlpha(codedSpec("cyclic", s), alpha), Env{Me: me, Batches: batches})
		for iter := range int64(3) {
			closes := rapid.IntRange(0, 2*n).Draw(t, "closes after")
			var want []string // in order
			if alpha > 0 {
				want = append(want, fmt.Sprintf("push part 0 of 2: samples 0 to %d of w%d", private[me], me))
			}
			of := map[bool]string{true: "part 1 of 2", false: "part 0 of 1"}[alpha > 0]
			for k := range s + 1 {
				j := (me + int32(k)) % int32(n)
				want = append(want, fmt.Sprintf("keep %s: samples %d to 0 of w%d", of, private[j], j))
			}
			if want = append(want, fmt.Sprintf("again %s: samples 0 to 0 of w%d", of, me)); s == 0 {
				want = []string{fmt.Sprintf("push %s: samples 0 to 0 of w%d", of, me)}
			}
			orders := p.Step(core.WorkEvent{Kind: core.Starting, Task: core.Task{Owner: me, Parts: 1, Iter: iter}}, nil)
			for done := 0; len(orders) > 0; done++ {
				now := orders[0].Task
				does := []string{"push", "keep", "again"}[now.Keep]
				if got := fmt.Sprintf("%s part %d of %d: samples %d to %d of w%d", does, now.Part, now.Parts, now.From, now.To,
					now.Owner); now.Iter != iter || len(want) == 0 || got != want[0] {
					t.Fatalf("%s of iteration %d; want %v of iteration %d", got, now.Iter, want, iter)
				}
				want = want[1:]
				if done == closes {
					p.Step(core.WorkEvent{Kind: core.Answered}, nil)
				}
				if orders = p.Step(core.WorkEvent{Kind: core.Computed, Task: now}, nil); done >= closes && len(orders) > 0 {
					t.Fatalf("begins %+v of a closed iteration", orders[0].Task)
				}
				if done < closes && len(orders) == 0 && len(want) > 0 {
					t.Fatalf("ends before %v", want)
				}
			}
			p.Step(core.WorkEvent{Kind: core.Answered}, nil)
		}
	})
}
